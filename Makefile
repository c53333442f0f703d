# What CI calls is what a person calls. Every target sets up all it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MODULES := build/modules
SOURCES := $(wildcard src/linkgauge tests bench)
NATIVE := CMakeLists.txt $(wildcard native/*)
# Two OpenCL devices of the CPU, so that device-to-device code truly runs.
TEST_ENV := POCL_DEVICES="pthread pthread"

.PHONY: run test test-long check format bench clean

run: $(STAMP)
	$(BIN)/linkgauge run --profile quick $(ARGS)

test: $(STAMP)
	$(TEST_ENV) $(BIN)/python -m pytest -m "not long" $(ARGS)

test-long: $(STAMP)
	$(TEST_ENV) LINKGAUGE_CAMPAIGN=full $(BIN)/python -m pytest $(ARGS)

check: $(STAMP)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports --no-cache
	$(BIN)/clang-format --dry-run -Werror $(wildcard native/*.cpp native/*.hpp)
	PYTHON=$(BIN)/python tools/check-tree

format: $(STAMP)
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/clang-format -i $(wildcard native/*.cpp native/*.hpp)

bench: $(STAMP)
	$(BIN)/python bench/host_copy.py

clean:
	rm -rf $(VENV) build

$(STAMP): pyproject.toml constraints.txt $(NATIVE) $(MODULES)
	PYTHON=$(PYTHON) tools/set-up $(VENV)
	touch $@

# An editable installation knows each module by its file: it is renewed when one comes or goes.
$(MODULES): FORCE
	@mkdir -p $(@D)
	@find src -name '*.py' | sort | cmp -s - $@ || find src -name '*.py' | sort >$@
FORCE:
