VENV := .venv
KSHOT := $(VENV)/bin/kshot
PY := $(VENV)/bin/python
BASE_PYTHON ?= python3
SHARED := ../shared
.DEFAULT_GOAL := help

.PHONY: help bench test test-slow lint types contracts check benchmarks readme clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml
	$(BASE_PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

bench: $(VENV)/.installed  ## run the embedded study and write its report
	$(KSHOT) run studies/embedded.toml
	$(KSHOT) report records/embedded

test: $(VENV)/.installed  ## run the tests
	$(PY) -m pytest -n 2 -m "not slow"

test-slow: $(VENV)/.installed  ## run the tests that take minutes
	$(PY) -m pytest -m slow

lint: $(VENV)/.installed  ## style of the code
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/.installed  ## static types
	$(VENV)/bin/pyright

contracts: $(VENV)/.installed  ## which room may import which
	$(VENV)/bin/lint-imports

check: lint types contracts test  ## everything that CI runs

readme: bench  ## put the tables of `make bench` into the README
	$(PY) tests/docs/update_readme.py

benchmarks: $(VENV)/.installed  ## speed, as ratios against named baselines
	$(PY) -m benchmarks

clean:  ## forget the environment and everything computed
	rm -rf $(VENV) features records
