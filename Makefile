# make demo [DATA=<dir with train/dev/test in CoNLL columns>]   fine-tune and compare the losses
# make test                                                     lint, types and the tests of a few minutes
# make test-all                                                 the same with all tests
# make test-lowest                                              the suite with the lowest versions allowed
# make docs                                                     the site, in docs/_build/html
# make dist                                                     source archive and wheel, checked
# make test-wheel                                               the wheel in an empty environment
# make bench [DATA=<dir with the corpora>]                      speed and memory against contenders
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SOURCES := pyproject.toml constraints.txt

.PHONY: demo test test-all test-lowest docs dist test-wheel bench clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo-installed: $(SOURCES) | $(BIN)/python
	$(PIP) -e ".[offline,plot]"
	touch $@

$(VENV)/.test-installed: $(SOURCES) | $(BIN)/python
	$(PIP) -e ".[offline,dev]"
	touch $@

$(VENV)/.docs-installed: $(SOURCES) | $(BIN)/python
	$(PIP) -e ".[offline,docs]"
	touch $@

demo: $(VENV)/.demo-installed
	$(BIN)/python examples/demo.py $(if $(DATA),--data "$(DATA)")

# A thread for each of two processes, and for those that they start, which find modules compiled.
test: SELECTED := -m "not slow"
test test-all: $(VENV)/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist worksteal $(SELECTED)

# The floors of pyproject.toml as pins, so each floor has to be a release. Only torch keeps its version of
# constraints.txt: few indexes have older builds for the CPU, and those for CUDA are gigabytes.
build/lowest.txt: $(SOURCES)
	mkdir -p build
	grep -oE '"[A-Za-z_-]+>=[0-9.]+"' pyproject.toml | tr -d '"' | sed 's/>=/==/; /^torch==/d' > $@
	grep '^torch==' constraints.txt >> $@

# Old packages warn of what newer ones deprecate, which is an error in `make test` only.
test-lowest: build/lowest.txt
	rm -rf build/lowest-env
	$(PYTHON) -m venv build/lowest-env
	build/lowest-env/bin/python -m pip install --quiet --disable-pip-version-check -c build/lowest.txt -e ".[offline,dev]"
	OMP_NUM_THREADS=1 build/lowest-env/bin/python -m pytest -n 2 --dist worksteal -W default::DeprecationWarning -W default::FutureWarning

# An example runs again when its script has changed; without docs/auto_examples all of them run, for 12 minutes.
docs: $(VENV)/.docs-installed
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -b html docs docs/_build/html

dist: $(BIN)/python
	$(PIP) build twine
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*

test-wheel: dist
	rm -rf build/wheel-env
	$(PYTHON) -m venv build/wheel-env
	build/wheel-env/bin/python -m pip install --quiet -c constraints.txt dist/*.whl
	build/wheel-env/bin/python tests/packaging/fit_installed.py
	build/wheel-env/bin/skdice --help > /dev/null

bench: $(VENV)/.test-installed
	$(BIN)/python -m benchmarks.speed $(if $(DATA),--data "$(DATA)")

clean:
	rm -rf $(VENV) build dist demo-output docs/_build docs/auto_examples docs/api/generated
