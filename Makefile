# make demo and make test each do their whole set-up: Python 3.11 to 3.13 with pip and venv, git and make are all they need.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.ready
PIP     = $(BIN)/pip --disable-pip-version-check install --quiet

.PHONY: demo test lint bench lock clean help

help:
	@echo "make demo   a pre-registered sweep on a real model: tables, verdicts, a report"
	@echo "make test   the test suite, with the small real model"
	@echo "make lint   ruff"
	@echo "make bench  the benchmarks"
	@echo "make lock   renew the locks (needs uv)"

$(READY): requirements.lock requirements-build.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else "Called Shot needs Python 3.11 to 3.13, this is %d.%d: make PYTHON=python3.12 ..." % v)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements-build.lock
	$(PIP) --require-hashes --no-build-isolation -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $(READY)

demo: $(READY)
	$(BIN)/calledshot models fetch $$($(BIN)/calledshot run experiment=quick --models)
	$(BIN)/calledshot run experiment=quick

test: $(READY)
	$(BIN)/calledshot models fetch smollm2-135m
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(READY)
	for each in $$(cd tests/bench && ls *.py); do $(BIN)/python -m tests.bench.$${each%.py} || exit 1; done

# --no-header and the two --no-emit options keep every address out of the locks.
COMPILE = uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --python-version 3.11
lock:
	$(COMPILE) --upgrade pyproject.toml --extra dev -o requirements.lock
	printf 'setuptools\nwheel\n' | $(COMPILE) --upgrade - -o requirements-build.lock

clean:
	rm -rf $(VENV) build *.egg-info
