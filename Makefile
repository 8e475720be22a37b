# `make` lists the targets. Everything runs from .venv, which any target builds when it has to.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
SEEDS ?= 1000
WORKERS ?=

BIN := .venv/bin
READY := .venv/.ready

# A log has no use for colours and progress bars.
ifeq ($(CI),true)
export NO_COLOR := 1
export PIP_NO_COLOR := 1
export PIP_PROGRESS_BAR := off
endif

.PHONY: help setup demo test proof check coverage pins bench simulate docs lock clean

help:  ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/\1\t\2/' \
		| while IFS=$$'\t' read -r target text; do printf '  %-10s %s\n' "$$target" "$$text"; done

setup: $(READY)  ## Build .venv from requirements.lock (PYTHON=python3.12 picks the interpreter)
	@echo "Ready: .venv"

$(READY): pyproject.toml requirements.lock tools/bootstrap.py
	@began=$$SECONDS; $(PYTHON) tools/bootstrap.py; echo "Set up .venv in $$((SECONDS - began)) s"
	@touch $@

demo: $(READY)  ## Watch processes compete, die and take over, and check each claim made
	@$(BIN)/leasehold demo

test: $(READY)  ## Run every test in some world, in minutes; says at its end what it left out
	@$(BIN)/python tools/suite.py test$(if $(WORKERS), --workers $(WORKERS))

proof: $(READY)  ## Run everything else: all worlds, full lengths, branches of the laws, long chaos
	@$(BIN)/python tools/suite.py proof$(if $(WORKERS), --workers $(WORKERS))

check: $(READY)  ## Check format, lint, types, import rings and generated files
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/generate_sync.py --check
	$(BIN)/python tools/generate_reference.py --check

coverage: $(READY)  ## Check that the tests of the laws reach every branch of them (part of proof)
	@$(BIN)/python tools/suite.py coverage$(if $(WORKERS), --workers $(WORKERS))

pins: $(READY)  ## Search again for the seeds that tests of the simulator's own alertness are pinned to
	@$(BIN)/python tools/pins.py

bench: $(READY)  ## Measure speed beside the raw floor and the peers, as ratios
	@$(BIN)/python -m bench

simulate: $(READY)  ## Run the simulator: SEEDS=1000 for that many worlds nobody has seen, SEED=42 to replay one
	@$(BIN)/python -m simulator $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --fresh)

docs: $(READY)  ## Write the generated reference pages
	@$(BIN)/python tools/generate_reference.py

lock:  ## Resolve the dependencies anew into requirements.lock (needs uv)
	@uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --upgrade --quiet \
		--custom-compile-command "make lock" --output-file requirements.lock

clean:  ## Remove .venv, caches and build output
	@rm -rf .venv build dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache
	@find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
