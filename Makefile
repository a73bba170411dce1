# `make demo` shows tusk at work, `make test` checks it; `make quick` is for in between.
# Each target makes the virtual environment that it needs (Python 3.11 to 3.13) and may be run again at any time.

PYTHON ?= python3
VENV ?= .venv
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check

.PHONY: demo test quick lint wheel docs clean browser

demo: $(VENV)/.installed
	$(VENV)/bin/tusk demo

test: $(VENV)/.installed-dev lint browser
	$(VENV)/bin/python -m pytest

# A browser for the tests of pages, where there is none and the machine can install one. Without it they are skipped, and
# say why: a test run never fails for want of a browser.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable chrome msedge; do \
		command -v $$name >/dev/null && exit 0; \
	done; \
	if command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
		echo "installing chromium for the tests of pages"; \
		(apt-get update -qq && DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends chromium) \
			>/dev/null 2>&1 || echo "chromium could not be installed: the tests of pages will be skipped"; \
	else \
		echo "there is no browser: the tests of pages will be skipped"; \
	fi

# Without the tests that are marked slow: under 90 seconds on two cores.
quick: $(VENV)/.installed-dev
	$(VENV)/bin/python -m pytest -m "not slow"

lint: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --platform win32
	$(VENV)/bin/mypy --platform darwin
	$(VENV)/bin/lint-imports --no-cache

wheel: $(VENV)/.installed-dev
	rm -rf dist
	$(VENV)/bin/python -m hatchling build

docs: $(VENV)/.installed-docs
	$(VENV)/bin/python -m mkdocs build --strict

# The constraints file locks every package, so that all targets get what was tested.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14) and "tusk needs Python 3.11 to 3.13: set PYTHON=python3.11")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt torch==2.13.0
	$(PIP) install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
