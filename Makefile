# `make demo` and `make test` set up everything they need in .venv; nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test lint bench checks clean

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

demo: setup
	$(BIN)/streamgp demo

test: setup
	$(BIN)/pytest -n 2 --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/streamgp bench all

checks: setup
	$(BIN)/python -m streamgp_lab.checks.carry
	$(BIN)/python -m streamgp_lab.checks.pruning
	$(BIN)/python -m streamgp_lab.checks.coverage
	$(BIN)/python -m streamgp_lab.checks.river_stream

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
