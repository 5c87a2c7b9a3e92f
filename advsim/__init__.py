"""AdvSim: train and measure web agents against indirect prompt injection."""

__version__ = "0.1.0"

from gymnasium.envs.registration import register as _register
from gymnasium.envs.registration import registry as _registry

# `gymnasium.make("advsim/Forms-v0")` needs no more than `import advsim`. In a process that did not import it (a spawned
# worker, say) `gymnasium.make("advsim:advsim/Forms-v0")` does both; `make_vec` takes care of it by itself.
if "advsim/Forms-v0" not in _registry:
    _register(id="advsim/Forms-v0", entry_point="advsim.env:FormsEnv")
