# Every command sets up what it needs in .venv by itself; nothing touches the network while .venv is up to date.
# `make help` lists the commands.

PYTHON ?= python3
SEEDS  ?= 500
ORDERS ?= 120

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.ready

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test check sim bench fmt clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv, with the pinned requirements and this checkout in it

demo: $(STAMP) ## run a batch of orders through eight agents, with faults on
	$(BIN)/agentgate demo --orders $(ORDERS)

test: check ## check, then every test; core and model must be covered to the last branch
	$(BIN)/python -m pytest tests/core tests/properties -n 2 --dist loadfile \
		--cov=agentgate.core --cov=agentgate.model --cov-branch --cov-fail-under=100
	$(BIN)/python -m pytest tests --ignore=tests/core --ignore=tests/properties -n 2 --dist loadfile

check: $(STAMP) ## style, format, types and import contracts; changes nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

sim: $(STAMP) ## run whole platforms in virtual time, one per seed (SEEDS=500)
	$(BIN)/python -m agentgate.testing.sim --seeds $(SEEDS)

bench: $(STAMP) ## measure what the gate costs per call, beside other gateways, and its wait graph
	$(BIN)/python -m bench.link
	$(BIN)/python -m bench.http
	$(BIN)/python -m bench.waits

fmt: $(STAMP) ## format, and fix what can be fixed without judgement
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean: ## remove .venv and everything the tools remember
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .coverage.*
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The stamp comes last, so a set-up that was cut off is done again. A .venv that cannot run pip is made anew.
$(STAMP): requirements/gate.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'AgentGate needs Python 3.11 or newer: make PYTHON=python3.12 ...' >&2; exit 1; }
	@$(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements/gate.txt -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
