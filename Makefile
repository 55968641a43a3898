# `make demo` and `make test` work on a fresh machine with Python 3.11+: each sets up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# One thread for BLAS before any process starts: small matrices lose a hundredfold to threads on a shared machine.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MPLBACKEND := Agg

.PHONY: help env demo test quick coverage check format notebooks site page results experiments-smoke clean

help:
	@echo "make demo    set up everything and search for a network on the diabetes data, in one or two minutes"
	@echo "make test    set up everything and pass the tests"
	@echo "make quick   the tests without the slow ones"
	@echo "make coverage  all tests, and the lines of bonas that they reach"
	@echo "make check   ruff format --check, ruff check, mypy"
	@echo "make notebooks  every notebook, executed, in build/notebooks"
	@echo "make site    the documentation in build/site; a warning is an error"
	@echo "make page    the page of results in notebooks/site and README's figure, from the numbers in experiments/results"
	@echo "make results            every experiment in full, many hours; what is known is not run again"
	@echo "make experiments-smoke  every experiment, small, into a folder that is removed"
	@echo "make env     set up .venv alone"
	@echo "make format  rewrite the code the way make check wants it"
	@echo "make clean   remove .venv and caches"

env: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml .ci/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "bonas needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (a minute or two the first time) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e ".[dev,notebooks,site]"
	@touch $@

# A new study each time, so that there is something to watch; what it finds stays in results/.
demo: env
	@mkdir -p results && rm -f results/demo.db results/demo.db-wal results/demo.db-shm
	$(BIN)/bonas search diabetes --study results/demo.db

test: env
	$(BIN)/python -m pytest -n 2 --dist loadfile

quick: env
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

coverage: env
	$(BIN)/python -m pytest -n 2 --dist loadfile --cov=bonas --cov-report=term

check: env
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: env
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

NOTEBOOKS := $(patsubst notebooks/%.py,build/notebooks/%.ipynb,$(wildcard notebooks/*.py))

notebooks: env $(NOTEBOOKS)

# Executed again when it, or the library, has changed. With MPLBACKEND set, figures of notebooks are not shown.
build/notebooks/%.ipynb: notebooks/%.py $(shell find bonas -name '*.py') | env
	@mkdir -p $(@D)
	@echo "executing $<"
	@$(BIN)/jupytext --quiet --to ipynb --output $@ $<
	@env -u MPLBACKEND $(BIN)/jupyter-execute --NbClientApp.log_level=ERROR --inplace $@

.DELETE_ON_ERROR:

# Made anew each time, from docstrings, tests and scripts as they are; the code of its pages is run.
site: env notebooks
	@mkdir -p notebooks/site/notebooks && cp $(NOTEBOOKS) notebooks/site/notebooks  # Sphinx reads what is below it alone
	env -u MPLBACKEND $(BIN)/sphinx-build -E -W --keep-going -n -q notebooks/site build/site
	@echo "written to build/site/index.html"

page: env
	$(BIN)/python experiments/results_page.py

# What is run, and with which flags, is said by the list in experiments/README.md.
LISTED := sed -n 's/^| `\([a-z0-9_]*\.py[^`]*\)`.*/\1/p' experiments/README.md | grep -v -e readme_example -e results_page

# A benchmark whose rivals are not installed is left out, so that the numbers that are kept still have them.
results: env
	@$(LISTED) | while read -r line; do \
		name=$${line%%.py*}; rivals=$${line##*--rivals }; \
		if test "$$rivals" != "$$line" && ! test -x "$$rivals"; then echo "left out, as $$rivals is not there: $$line"; continue; fi; \
		echo "python experiments/$$line"; \
		$(BIN)/python experiments/$$line < /dev/null || exit 1; \
		cp results/$$name/$$name*.json experiments/results/ || exit 1; \
	done
	$(BIN)/python experiments/results_page.py

experiments-smoke: env
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	for name in $$($(LISTED) | sed 's/\.py.*//'); do \
		echo "python experiments/$$name.py --smoke"; \
		$(BIN)/python experiments/$$name.py --smoke --out "$$folder/$$name" < /dev/null || exit 1; \
		cp "$$folder/$$name/$$name"*.json "$$folder" || exit 1; \
	done && $(BIN)/python experiments/results_page.py --results "$$folder" --page "$$folder/results.md"

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache *.egg-info
