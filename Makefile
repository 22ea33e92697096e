# Each target makes what it needs: a virtual environment in the checkout, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two processes of one thread each: more would wait for each other on two cores.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# Where this is set, every process that a test starts compiles the library anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all lint bench docs clean

demo: $(VENV)/.plot
	$(BIN)/imparo demo --output imparo-demo.html

test: lint
	$(PYTEST) -m "not slow"

test-all: lint
	$(PYTEST)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build
	@echo "open docs/_build/index.html"

clean:
	rm -rf $(VENV) docs/_build docs/generated docs/gallery build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| (echo "imparo needs Python 3.11 or newer; set PYTHON=/path/to/one" >&2; exit 1)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.plot: $(BIN)/python pyproject.toml src/imparo/__init__.py
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml src/imparo/__init__.py
	$(BIN)/python -m pip install --quiet --editable . --group test
	@touch $@

$(VENV)/.docs: $(BIN)/python pyproject.toml src/imparo/__init__.py
	$(BIN)/python -m pip install --quiet --editable . --group docs
	@touch $@
