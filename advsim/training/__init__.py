"""Training: the learner (one update), the two stages, and the steps that a run is made of."""
