# Everything a contributor or CI runs. A target creates the environment it needs: Python 3.11+, pip and make suffice.
#
#   PYTHON=python3.13   another interpreter (with VENV=.venv-3.13, to keep both)
#   ARGS="-k receipt"   passed on to the program that the target runs

PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
ARGS ?=

PY := $(VENV)/bin/python
PIP = $(PY) -m pip install -qq --disable-pip-version-check -c $(CONSTRAINTS)
CLI := $(VENV)/installed-cli
DEV := $(VENV)/installed-dev
BENCH := $(VENV)/installed-bench

.PHONY: help demo example test check mutants bench packaging lowest api format clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 18

demo: $(CLI) ## processes index the standard library; one stalls and is locked out, two are killed
	@$(VENV)/bin/coordinator demo $(ARGS)

example: $(CLI) ## an ordering system whose orders a person approves; its runner is killed at twenty random moments
	@$(PY) -m examples.reorder $(ARGS)

test: $(DEV) ## the tests
	@$(PY) -m pytest $(ARGS)

check: $(DEV) ## ruff, pyright, layers
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(VENV)/bin/pyright --project pyproject.toml --pythonpath $(PY)
	@$(PY) -m pytest -q tests/test_layers.py

mutants: $(DEV) ## break each protection in turn: a test must notice
	@$(PY) -m tests.mutants $(ARGS)

bench: $(BENCH) ## speed and memory beside raw SQLite and other libraries; writes docs/performance.md
	@$(PY) -m benchmarks.run $(ARGS)

packaging: $(DEV) ## build sdist and wheel, install the wheel elsewhere, use it
	@$(PY) -m pytest tests/packaging $(ARGS)

lowest: ## the tests on the lowest versions that pyproject.toml allows
	@$(MAKE) --no-print-directory test VENV=.venv-lowest CONSTRAINTS=.venv-lowest/constraints.txt

api: $(DEV) ## write docs/api.txt again
	@$(PY) -m tests.test_public_names

format: $(DEV) ## let ruff mend what it can
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

clean: ## remove environments, caches and builds
	rm -rf .venv .venv-* build dist .hypothesis .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The build backend comes first and from the pins, so that building the project downloads nothing of its own.
$(VENV)/installed-%: pyproject.toml build_hook.py $(CONSTRAINTS) | $(PY)
	@echo "installing the extra '$*' into $(VENV)"
	@$(PIP) hatchling
	@$(PIP) --no-build-isolation -e '.[$*]'
	@touch $@

.venv-lowest/constraints.txt: pyproject.toml constraints.txt tests/packaging/lowest.py | $(PY)
	@$(PY) tests/packaging/lowest.py > $@

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; name one with make PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "$(PYTHON) cannot create environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
