# Every target sets up what it needs: a .venv with the package and its pinned dependencies.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo docs test test-slow lint format clean bench install

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python examples/demo.py

# Processes side by side, each on one core; whoever is done first takes over tests from the others.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

test: $(STAMP)
	$(PYTEST)

# Thousands of random allocation problems: some four minutes on two cores.
test-slow: $(STAMP)
	$(PYTEST) -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, into site/: open site/index.html. A broken link or anchor fails, and so does a page that needs the network.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean

# Each prints its figures and asserts its bars; quiet machines only.
bench: $(STAMP)
	$(BIN)/python benchmarks/bench_round.py
	$(BIN)/python benchmarks/bench_memory.py
	$(BIN)/python benchmarks/bench_allocation.py
	$(BIN)/python benchmarks/bench_cell.py
	$(BIN)/python -m pytest benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis demo site
