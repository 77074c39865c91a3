# Everything a person or a machine does with this project.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= demo
unexport PYTHONDONTWRITEBYTECODE # else each of the processes that tests begin would compile Fyke anew

.DEFAULT_GOAL := help
.PHONY: help setup crawl check format test test-again fuzz bench docs dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Fyke needs Python 3.11 or newer; say make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@touch $@

setup: $(VENV)/ready ## make .venv with Fyke, its extras, and all that tests need

crawl: setup ## crawl the synthetic web on this machine, with everything set up
	$(BIN)/python examples/first_crawl.py $(DEMO)

check: setup ## format, lint, types, import floors
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## put the code in form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: setup ## run the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-again: setup ## run those tests that failed the last time, one after the other
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

fuzz: setup ## run those tests that draw their examples, with new ones
	HYPOTHESIS_PROFILE=drawn $(BIN)/python -m pytest -n 2 --dist worksteal -m hypothesis

bench: setup ## race Fyke against what is installed (needs nginx), and measure its memory
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python benches/race.py
	$(BIN)/python benches/flat_memory.py

docs: setup ## make the documentation as a site, in dist/site
	$(BIN)/python -m mkdocs build --quiet

dist: setup ## make the wheel, the man page and shell completion, in dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(BIN)/python -m fyke.cli.manual dist

clean: ## remove what was made
	rm -rf $(VENV) $(DEMO) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
