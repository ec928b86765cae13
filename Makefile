# `make test` and `make demo` need nothing but Python 3.10 or later: they set up .venv on the first call.
PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
INSTALLED := .venv/.installed
NATIVE := $(wildcard $(addprefix src/semprola/_native_src/,*.cpp *.h *.hpp))

.PHONY: help demo test lint format bench clean

help: ## Show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

demo: $(INSTALLED) ## Compare the layer with its alternatives on a small task
	$(BIN)/python -m experiments.demo

test: lint ## Run every check: lint, types, tests, doctests, the code in README and docs
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

lint: $(INSTALLED) ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict

format: $(INSTALLED) ## Put every file into the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Peers want other versions of what they share with us, so they get an environment of their own.
bench: .venv-bench/.installed ## Measure speed beside other packages; writes docs/speed.md
	.venv-bench/bin/python -m benchmarks.engine --docs docs/speed.md

.venv-bench/.installed: pyproject.toml setup.py constraints.txt $(NATIVE)
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install -c constraints.txt torch setuptools
	.venv-bench/bin/python -m pip install klaycircuits libcirkit
	.venv-bench/bin/python -m pip install --no-build-isolation -e ".[cli,plot]"
	touch $@

# The native library lies in src/ in an editable install, so the stamp goes with it.
clean: ## Remove everything built, except .venv
	rm -rf build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis $(INSTALLED)
	rm -f src/semprola/_native*.so src/semprola/_native*.pyd
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# torch first: it is by far the largest, and its pinned version must be settled before anything else pulls in another.
# The package is built with the pinned setuptools, not with whatever an isolated build would fetch.
$(INSTALLED): pyproject.toml setup.py constraints.txt $(NATIVE)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -c constraints.txt torch setuptools
	$(BIN)/python -m pip install -c constraints.txt --no-build-isolation -e ".[dev]"
	touch $@
