"""Training: the learner (one update), the two stages, and the steps that a run is made of."""

import advsim.llm  # noqa: F401  # sets how torch's threads wait, before torch is loaded
