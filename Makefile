# Every target sets up what it needs: a .venv with the package and its pinned dependencies.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Flower holds back other libraries: it has a .venv-flower of its own.
FLOWER_VENV := .venv-flower
FLOWER_BIN := $(FLOWER_VENV)/bin
FLOWER_STAMP := $(FLOWER_VENV)/.installed

.PHONY: demo demo-flower dist docs test test-slow test-processes test-wheel lint format clean bench bench-flower install notebooks

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)

$(FLOWER_STAMP): pyproject.toml constraints-flower.txt
	test -x $(FLOWER_BIN)/python || $(PYTHON) -m venv $(FLOWER_VENV)
	$(FLOWER_BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints-flower.txt --editable ".[learn,tensorboard,flower,test]"
	touch $(FLOWER_STAMP)

demo: $(STAMP)
	$(BIN)/fedwave demo
	@echo "(fedwave is in $(BIN): . $(BIN)/activate)"

# One SuperLink and four SuperNodes as processes on this machine, three rounds over TLS, all stopped again.
demo-flower: $(FLOWER_STAMP)
	$(FLOWER_BIN)/python examples/flower/run_federation.py

# Processes side by side, each on one core; whoever is done first takes over tests from the others.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

test: $(STAMP)
	$(PYTEST)

# Thousands of random allocation problems: some four minutes on two cores.
test-slow: $(STAMP)
	$(PYTEST) -m slow

# Real clusters, federations and browsers on this machine, one at a time: killed workers, drivers and nodes. Flower's tests on a grid in one
# process come along, and the commands with the typer that Flower needs.
test-processes: $(STAMP) $(FLOWER_STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m processes
	OMP_NUM_THREADS=1 $(FLOWER_BIN)/python -m pytest -n auto tests/flower tests/cli
	OMP_NUM_THREADS=1 $(FLOWER_BIN)/python -m pytest -m processes tests/flower

# notebooks/NAME.ipynb of NAME.py, which is the one to edit.
notebooks: $(STAMP)
	$(BIN)/python -m tools.notebooks

# Wheel and sdist, into dist/; and the wheel in an empty environment.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

test-wheel: $(STAMP)
	$(BIN)/python -m pytest -m slow tests/release/test_wheel.py

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

# Each prints its figures and asserts its bars; quiet machines only. Ratios are kept in benchmarks/history.jsonl: commit it if they are to be.
bench: $(STAMP)
	$(BIN)/python benchmarks/history.py benchmarks/bench_round.py
	$(BIN)/python benchmarks/bench_memory.py
	$(BIN)/python benchmarks/history.py benchmarks/bench_executors.py
	$(BIN)/python benchmarks/history.py benchmarks/bench_allocation.py
	$(BIN)/python benchmarks/bench_cell.py
	$(BIN)/python benchmarks/bench_explore.py
	$(BIN)/python benchmarks/bench_load.py
	$(BIN)/python -m pytest benchmarks

bench-flower: $(FLOWER_STAMP)
	$(FLOWER_BIN)/python benchmarks/bench_flower.py

clean:
	rm -rf $(VENV) $(FLOWER_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis demo dist site
