# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# mypy names modules after their folders: this link gives the packages their own name.
TYPED := $(VENV)/typed

.PHONY: demo test lint docs bench warehouse-sample clean

$(BIN)/memhouse: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

# The sample dumps of tests/data in a warehouse, and their peaks.
demo: $(BIN)/memhouse
	rm -f demo.duckdb
	$(BIN)/memhouse ingest --db demo.duckdb tests/data/dumps/*
	$(BIN)/memhouse peaks --db demo.duckdb

test: $(BIN)/memhouse
	$(BIN)/python -m pytest -n auto

lint: $(BIN)/memhouse
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/sqlfluff lint queries schema
	mkdir -p $(TYPED)
	ln -sfn ../.. $(TYPED)/memhouse
	cd $(TYPED) && ../bin/mypy --config-file memhouse/pyproject.toml \
		-m memhouse -p memhouse.cli -p memhouse.ingest -p memhouse.queries -p memhouse.schema

# The generated parts of docs/, from the comments in schema/ and queries/.
docs: $(BIN)/memhouse
	$(BIN)/python -m memhouse.queries.dictionary > docs/data-dictionary.md

# The warehouse that later versions must be able to upgrade: once for each schema version.
warehouse-sample: $(BIN)/memhouse
	$(BIN)/python -m tests.support.upgrade_samples

# What benchmarks/README.md lists, on the dumps of your choice, as one table.
DUMPS ?= tests/data/dumps
bench: $(BIN)/memhouse
	$(BIN)/python benchmarks/all.py $(DUMPS)

clean:
	rm -rf $(VENV) demo.duckdb
