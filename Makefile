# Two commands set up a fresh machine: `make demo` shows tusk at work, `make test` checks it.
# Each makes the virtual environment that it needs and may be run again at any time.

PYTHON ?= python3
VENV ?= .venv
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check

.PHONY: demo test lint clean

demo: $(VENV)/.installed
	$(VENV)/bin/tusk demo

test: $(VENV)/.installed-dev lint
	$(VENV)/bin/python -m pytest

lint: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# The constraints file locks every package, so that both commands get what was tested.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tusk needs Python 3.11 or newer: set PYTHON=python3.11")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt torch==2.13.0
	$(PIP) install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
