# `make demo` and `make test` set everything up by themselves, in .venv.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: install demo test test-generic lint bench studies docs notebooks clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	@echo "installing into .venv (a few minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: install
	$(BIN)/identica demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/pytest -n 2

# the arithmetic again, with other instructions than this machine's best: sums in another order
NUMERICAL := spaces families samplers mixing process heads encoders losses training theory metrics
FILES := $(wildcard $(NUMERICAL:%=src/identica/%*) $(NUMERICAL:%=tests/test_%.py) $(NUMERICAL:%=tests/%))
test-generic: install
	cache=$$(mktemp -d) && trap 'rm -rf "$$cache"' EXIT && \
	  ATEN_CPU_CAPABILITY=default NUMBA_CPU_NAME=generic NUMBA_CACHE_DIR="$$cache" $(BIN)/pytest -n 2 $(FILES)

bench: install
	$(BIN)/python -m benchmarks

# hours; finished runs are found again, so it can be stopped and started at will
studies: install
	for study in theorem1 icml-table1 icml-table2 workshop-table1 marginals; do \
	  $(BIN)/identica reproduce $$study --out results/$$study || exit $$?; done
	$(BIN)/identica reproduce workshop-table5 --rows 3-8,10-15 --seeds 0-9 --out results/workshop-table5  # needs KITTI Masks
	$(BIN)/identica reproduce workshop-table5 --out results/workshop-table5
	for study in workshop-table2 workshop-table3 workshop-table4; do \
	  $(BIN)/identica reproduce $$study --out results/$$study || exit $$?; done
	$(BIN)/identica reproduce icml-table4 --rows 1 --seeds 0-5 --workers 3 --out results/icml-table4
	$(BIN)/identica reproduce icml-table4 --seeds 0-2 --out results/icml-table4
	$(BIN)/python -m benchmarks.budget
	-$(BIN)/python -m validation.fresh  # needs the weights of row 1, which git does not keep

# the examples as notebooks, without output
notebooks: install
	$(BIN)/python docs/gallery.py --notebooks build/notebooks

# runs the examples that have changed
docs: install
	$(BIN)/python docs/gallery.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf .venv build dist site
