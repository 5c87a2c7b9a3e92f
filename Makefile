# `make run` does the main job, `make test` passes the tests. Each sets up what it needs the first time:
# .venv with locked versions, and a Chromium if the machine has none. A second call sets up nothing.

PYTHON ?= python3
OUT ?=
JOBS ?= 2
PYTEST_ARGS ?= -n 2 --dist loadfile

VENV := .venv/bin

# Nothing here is allowed to look for models on the network.
export HF_HUB_OFFLINE := 1
export TOKENIZERS_PARALLELISM := false

.DEFAULT_GOAL := help
.PHONY: help setup run smoke test models lint format lock bench-browsergym clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 26

setup: ## environment and browser (the others call it by themselves)
	@PYTHON=$(PYTHON) scripts/setup.sh

run: setup ## the whole job: three rounds of either stage, every checkpoint evaluated (JOBS=2 at a time), report
	$(VENV)/advsim run configs/tiny.yaml --jobs $(JOBS) $(if $(OUT),--out $(OUT))

smoke: setup ## the same with one small round of either stage (a few minutes)
	$(VENV)/advsim run configs/smoke.yaml --jobs $(JOBS) $(if $(OUT),--out $(OUT))

test: lint models ## lint, type check and all tests
	$(VENV)/python -m pytest $(PYTEST_ARGS)

models: setup ## SmolLM2, a real language model that a test and configs/smollm2.yaml use
	$(VENV)/python scripts/get_smollm2.py

lint: setup ## ruff and mypy
	$(VENV)/ruff check .
	$(VENV)/ruff format --check .
	$(VENV)/mypy

format: setup ## let ruff rewrite what it can
	$(VENV)/ruff check --fix .
	$(VENV)/ruff format .

lock: setup ## write requirements.lock from what .venv holds
	scripts/lock.sh

bench-browsergym: ## the environment of benchmarks/browsergym_speed.py, in .venv-browsergym
	@PYTHON=$(PYTHON) benchmarks/browsergym_env.sh

clean: ## remove environments and caches (runs stay)
	rm -rf .venv .venv-browsergym build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find advsim benchmark_forms browser_eval tests benchmarks scripts -name __pycache__ -prune -exec rm -rf {} +
