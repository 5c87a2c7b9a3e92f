"""Language models: the backbone and its adapters, engines that generate, and the policies made of both."""

import os

# Before torch is loaded: OpenMP threads that wait for each other sleep instead of spinning. Where cores are shared (a
# browser, other runs) spinning ones steal the time of the one that works: measured, 50 s became 3 s.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
