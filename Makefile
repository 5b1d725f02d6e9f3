# make demo [DATA=<dir with train/dev/test in CoNLL columns>]   fine-tune and compare the losses
# make test                                                     lint, types and the whole test suite
# make docs                                                     the site, in docs/_build/html
# make bench [DATA=<dir with the corpora>]                      speed and memory against contenders
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SOURCES := pyproject.toml constraints.txt

.PHONY: demo test docs bench clean

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

test: $(VENV)/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n 2 --dist worksteal

docs: $(VENV)/.docs-installed
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -b html docs docs/_build/html
	$(BIN)/python -m pytest skdice tests/docs

bench: $(VENV)/.test-installed
	$(BIN)/python -m benchmarks.speed $(if $(DATA),--data "$(DATA)")

clean:
	rm -rf $(VENV) demo-output docs/_build docs/auto_examples docs/api/generated
