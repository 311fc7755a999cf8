# `make demo` and `make test` do all the set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# mypy names modules after their folders, so a link in this folder names the package.
TYPED := $(VENV)/typed
WORKFLOWS := $(wildcard .github/workflows/*.yml) $(wildcard docs/github/*.yml)

.PHONY: demo test test-all test-lowest test-random simulate lint lint-text lint-types docs approve bench pictures clean

# The command alone.
$(BIN)/memhouse: pyproject.toml | $(VENV)/pyvenv.cfg
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# All that developing it takes. Python compiles what it imports: of the packages that is the least.
$(BIN)/pytest: pyproject.toml | $(VENV)/pyvenv.cfg
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[dev]'
	for version in 1.4.5 1.5.5; do PIP_CONSTRAINT= $(BIN)/python -m pip install --quiet --no-compile --no-deps --upgrade \
		--target $(VENV)/clients/$$version duckdb==$$version || exit; done
	@touch $(BIN)/memhouse $@

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

demo: $(BIN)/memhouse
	rm -f demo.duckdb
	$(BIN)/memhouse ingest --db demo.duckdb tests/data/dumps/*
	$(BIN)/memhouse peaks --db demo.duckdb

# Tests in minutes, for whoever changes the code. Tests that share what is dear to set up are a
# group: one worker does it.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup
test: $(BIN)/pytest
	$(PYTEST) -m "not slow"

# All tests, which `.ci/run` runs: also kills, disks, races, hostile input, browsers and Spark.
test-all: $(BIN)/pytest
	$(PYTEST)

# The same; those that try at random try more often, and not what they tried before.
test-random: $(BIN)/pytest
	MEMHOUSE_TEST_ROUNDS=10 $(PYTEST)

# Random commands and faults for so many seconds, from a seed on: see tests/simulator/simulation.py.
SECONDS ?= 3600
SEED ?= 1
simulate: $(BIN)/pytest
	$(BIN)/python -m tests.simulator --seconds $(SECONDS) --seed $(SEED) --go-on --shorten

# The tests on the lowest versions of every dependency that pyproject.toml allows.
test-lowest:
	$(PYTHON) -m venv $(VENV)/lowest
	$(VENV)/lowest/bin/python -m pip install --quiet uv
	$(VENV)/lowest/bin/uv pip install --quiet --python $(VENV)/lowest/bin/python \
		--resolution lowest-direct --editable '.[dev]'
	$(VENV)/lowest/bin/python -m pytest -n auto -m "not slow"

# Two halves of one length: with `make --jobs 2` they run side by side.
lint: lint-text lint-types

lint-text: $(BIN)/pytest
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/sqlfluff lint queries schema
	$(BIN)/codespell
	$(BIN)/shellcheck -x .ci/* .github/action/*.sh
	$(BIN)/actionlint -shellcheck $(BIN)/shellcheck $(WORKFLOWS)
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml

lint-types: $(BIN)/pytest
	mkdir -p $(TYPED)
	ln -sfn ../.. $(TYPED)/memhouse
	cd $(TYPED) && ../bin/mypy --config-file memhouse/pyproject.toml \
		-m memhouse -m memhouse.spark \
		-p memhouse.cli -p memhouse.ingest -p memhouse.queries -p memhouse.schema -p memhouse.xla \
		-p memhouse.compile -p memhouse.advice -p memhouse.oom -p memhouse.report \
		-p memhouse.mcp_server -p memhouse.pytest_plugin
	cd $(TYPED) && MYPYPATH=memhouse/benchmarks ../bin/mypy --explicit-package-bases \
		--config-file memhouse/pyproject.toml memhouse/tests memhouse/benchmarks
	$(BIN)/mypy .github/action/base_run.py .github/action/comment.py

# Builds site/, the documentation as a site, with the pages that are generated from the comments in
# schema/ and queries/, from the commands and from the notebook. Fails if there is a warning, such
# as a broken link.
docs: $(BIN)/pytest
	$(BIN)/python docs/build_site.py site

# Renews what is approved, for a review to look at: the sentences that the program can say, the rows
# of the samples, and what the documentation shows.
approve: $(BIN)/pytest
	$(BIN)/python -m tests.support.approve

# Draws the pictures of the README anew; needs Chromium.
pictures: $(BIN)/pytest
	$(BIN)/python -m tests.support.pictures

# Runs the benchmarks of benchmarks/README.md on the dumps in DUMPS and prints one table.
DUMPS ?= tests/data/dumps
bench: $(BIN)/pytest
	$(BIN)/python benchmarks/bench.py $(DUMPS) $(OPTIONS)

clean:
	rm -rf $(VENV) site demo.duckdb
