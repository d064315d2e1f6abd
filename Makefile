# `make demo` and `make test` set up everything they need in .venv; nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test lint wheel docs bench clean

setup: .venv/ready

.venv/ready: pyproject.toml lab/pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]' --editable lab
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

# Builds the wheel, installs it without extras into an empty environment, runs the quick start there.
wheel: setup
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet build/wheel/*.whl
	build/wheel/venv/bin/python tests/quick_start.py README.md

# The documentation as a site in build/site. Warnings, such as broken links, are errors.
docs: setup
	$(BIN)/pip install --quiet --editable '.[docs]'
	$(BIN)/mkdocs build --strict

bench: setup
	$(BIN)/streamgp-lab bench all

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
