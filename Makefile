# What CI calls is what a person calls. Every target sets up all it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV := $(VENV)/.dev
MODULES := build/modules
SOURCES := $(wildcard src/linkgauge tests bench examples notebooks tools/bounds tools/circles tools/core-names tools/dashboard tools/hashes tools/man tools/notebook tools/record tools/recordings tools/schemas tools/screens tools/site_markdown.py)
NATIVE := CMakeLists.txt $(wildcard native/*.cpp native/*.hpp)
NATIVE_SOURCES := $(wildcard native/*.?pp native/test/*.?pp)
# Those that a cross-compiler is there for (Debian: g++-aarch64-linux-gnu, g++-riscv64-linux-gnu).
CROSS := aarch64-linux-gnu riscv64-linux-gnu
TARGETS := native $(foreach cross,$(CROSS),$(if $(shell command -v $(cross)-g++),$(cross)))
# None depends on timing being good: they may share a machine with each other. One more than the
# CPUs of a small machine, since some wait, for a limit to pass or for processes to end.
TEST_PROCESSES ?= 3
# Two OpenCL devices of the CPU, so that device-to-device code truly runs.
TEST_ENV := POCL_DEVICES="pthread pthread"

.PHONY: run dist try-dist deb try-deb try-container man test test-native test-long test-ai test-gpu test-gpu-pairs sanitize check docs screens format bench clean

run: $(STAMP)
	$(BIN)/linkgauge run --profile quick $(ARGS)

# An sdist and a wheel in dist/, for machines of this kind and this Python (or any from 3.12 on);
# CPUS="aarch64 riscv64": wheels for those. zig compiles them all, against glibc 2.28.
dist: $(DEV)
	PYTHON=$(BIN)/python tools/dist $(CPUS)

# Installs that wheel into an empty environment, and measures with it.
try-dist: $(DEV)
	PYTHON=$(BIN)/python tools/try-dist

# A Debian package in dist/, for the release of Debian or Ubuntu that this machine has.
deb:
	tools/deb

# Installs it into an empty Debian, as far as the machine lets this user, and measures there.
try-deb:
	tools/try-deb

# Builds the Containerfile's image, as root by buildah, and measures in it.
try-container:
	tools/try-container

# Where both are asked for, what is tried is made first: make -j2 dist try-dist.
try-dist: $(filter dist,$(MAKECMDGOALS))
try-deb: $(filter deb,$(MAKECMDGOALS))

# Man pages of all commands in build/man, made from their help: man -l build/man/linkgauge-run.1
man: $(STAMP)
	$(BIN)/python tools/man

test: $(DEV)
	$(TEST_ENV) $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal -m "not ai and not gpu and not gpu_pairs" $(ARGS)

# Builds the test program of native/ for this CPU, and for others where their compilers are there.
# Tests run it: `make -C native/test run TARGET=aarch64-linux-gnu` runs one alone.
test-native:
	$(foreach target,$(TARGETS),$(MAKE) --silent -j2 -C native/test TARGET=$(target) &&) true
	$(MAKE) --silent -j2 -C native/test SANITIZE=address,undefined

test-long: $(DEV)
	$(TEST_ENV) LINKGAUGE_CAMPAIGN=full $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal -m "not ai and not gpu and not gpu_pairs" $(ARGS)

# On a GPU. With PYTHON=python3 given, that interpreter and its packages are used as they are, and
# nothing is downloaded.
GPU_TESTS := tests/conformance tests/backends
ifneq ($(filter environment command,$(firstword $(origin PYTHON))),)
GPU_SITE := build/site
GPU_RUN := PYTHONPATH=$(GPU_SITE):$$PYTHONPATH $(PYTHON)
AI := $(GPU_SITE)
AI_RUN := $(GPU_RUN)
$(GPU_SITE): $(NATIVE) $(shell find src -type f -not -name '*.pyc')
	$(PYTHON) -m pip install --quiet --no-deps --no-build-isolation --upgrade --target $@ .
	touch $@
else
GPU_SITE := $(DEV)
GPU_RUN := $(BIN)/python
AI := $(VENV)-ai/.installed
AI_RUN := $(VENV)-ai/bin/python
endif

test-gpu: $(GPU_SITE)
	$(GPU_RUN) -m pytest -m gpu $(GPU_TESTS) $(ARGS)

test-gpu-pairs: $(GPU_SITE)
	$(GPU_RUN) -m pytest -m gpu_pairs $(GPU_TESTS) $(ARGS)

# What needs torch, which lies in a virtual environment of its own upon .venv. No GPU is needed.
# With PYTHON=python3 given, that interpreter and its packages are used as they are.
AI_TESTS := tests/conformance tests/backends tests/benchmarks tests/cli tests/cluster
test-ai: $(AI)
	$(AI_RUN) -m pytest -m ai $(AI_TESTS) $(ARGS)

# compute-sanitizer (of NVIDIA's toolkit) over every kernel.
sanitize: $(GPU_SITE)
	$(GPU_RUN) bench/sanitize.py $(ARGS)

check: $(DEV)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-cache
	PYTHONPATH=src $(BIN)/python tools/circles
	$(BIN)/clang-format --dry-run -Werror $(NATIVE_SOURCES)
	PYTHON=$(BIN)/python tools/check-tree
	$(BIN)/python tools/core-names
	$(MAKE) --silent docs

# The pages as a site that opens offline: build/site-docs/index.html.
docs: $(DEV)
	PYTHONPATH=tools $(BIN)/zensical build --config-file mkdocs.yml --clean --strict

# What the README and the pages show of commands and of recorded runs, pictures, and the
# dashboard for Grafana.
screens: $(DEV)
	$(BIN)/python tools/screens
	$(BIN)/python tools/notebook
	$(BIN)/python tools/dashboard
	$(BIN)/python tools/recordings
	$(BIN)/python tools/bounds

format: $(DEV)
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/clang-format -i $(NATIVE_SOURCES)

bench: $(STAMP)
	$(BIN)/python bench/host_copy.py
	$(BIN)/python bench/host_primes.py
	$(BIN)/python bench/host_latency.py
	$(BIN)/python bench/host_stream.py
	$(BIN)/python bench/concurrent_copies.py
	$(BIN)/python bench/network.py

clean:
	rm -rf $(VENV) $(VENV)-ai build

$(STAMP): pyproject.toml $(wildcard constraints*.txt) tools/set-up $(NATIVE) $(MODULES)
	@PYTHON=$(PYTHON) tools/set-up $(VENV)
	@touch $@

# What tests and checks need beside it.
$(DEV): $(STAMP)
	@PYTHON=$(PYTHON) tools/set-up $(VENV) dev
	@touch $@

# What tests of torch need upon it.
$(VENV)-ai/.installed: tools/set-up-ai constraints-ai.txt pyproject.toml | $(DEV)
	@tools/set-up-ai $(VENV)-ai
	@touch $@

# An editable installation knows each module by its file: it is renewed when one comes or goes, and
# when a GPU's driver does.
$(MODULES): FORCE
	@mkdir -p $(@D)
	@{ $(PYTHON) tools/cuda-extra; find src -name '*.py' | sort; } >$@.now
	@cmp -s $@.now $@ || cp $@.now $@
FORCE:
