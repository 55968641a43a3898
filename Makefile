# `make demo` and `make test` work on a fresh machine with Python 3.11+: each creates .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# One BLAS thread: on a shared machine, threads slow down small matrices a hundredfold.
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1
export MPLBACKEND := Agg

.PHONY: help env demo test quick coverage check format notebooks site page results experiments-smoke clean

help:
	@echo "make demo               set up everything and search for a network on the diabetes data (1-2 minutes)"
	@echo "make test               set up everything and run all tests"
	@echo "make quick              run the tests except the slow ones"
	@echo "make coverage           run all tests and print their coverage"
	@echo "make check              check the format, style and types (ruff, mypy)"
	@echo "make notebooks          execute every notebook into build/notebooks"
	@echo "make site               build the documentation into build/site; a warning is an error"
	@echo "make page               write the page of results and the figure of the README from experiments/results"
	@echo "make results            run every experiment in full (many hours); finished runs are reused"
	@echo "make experiments-smoke  run every experiment with --smoke in a temporary folder"
	@echo "make env                create .venv"
	@echo "make format             format the code"
	@echo "make clean              remove .venv and caches"

env: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml .ci/constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "bonas needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (a minute or two the first time) ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c .ci/constraints.txt -e ".[dev,notebooks,site]"
	@touch $@

# Start a new study each time; its files stay in results/.
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

# Execute again if the notebook or the library has changed. MPLBACKEND would hide the figures.
build/notebooks/%.ipynb: notebooks/%.py $(shell find bonas -name '*.py') | env
	@mkdir -p $(@D)
	@echo "executing $<"
	@$(BIN)/jupytext --quiet --to ipynb --output $@ $<
	@env -u MPLBACKEND $(BIN)/jupyter-execute --NbClientApp.log_level=ERROR --inplace $@

.DELETE_ON_ERROR:

# Build from scratch: pages depend on docstrings, tests and scripts, and their code is executed.
site: env notebooks
	@mkdir -p notebooks/site/notebooks && cp $(NOTEBOOKS) notebooks/site/notebooks  # Sphinx only reads its own folder
	env -u MPLBACKEND $(BIN)/sphinx-build -E -W --keep-going -n -q notebooks/site build/site
	@echo "Written to build/site/index.html"

page: env
	$(BIN)/python -m experiments.render
	$(BIN)/python -m experiments.readme_figure

# The list in experiments/README.md names the scripts and their flags: "twist.search --seeds 20".
LISTED := sed -n 's/^| `\([a-z]*\.[a-z0-9_]*[^`]*\)`.*/\1/p' experiments/README.md

# Skips a benchmark whose other libraries are not installed, so that its recorded numbers keep them.
results: env
	@$(LISTED) | while read -r line; do \
		script=$${line%% *}; name=$$(echo $$script | tr . _); rivals=$${line##*--rivals }; \
		if test "$$rivals" != "$$line" && ! test -x "$$rivals"; then echo "skipped, because $$rivals does not exist: $$line"; continue; fi; \
		echo "python -m experiments.$$line"; \
		$(BIN)/python -m experiments.$$line < /dev/null || exit 1; \
		cp results/$$name/$$name*.json experiments/results/ || exit 1; \
	done
	$(MAKE) page

experiments-smoke: env
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	for script in $$($(LISTED) | cut -d ' ' -f 1); do \
		name=$$(echo $$script | tr . _); echo "python -m experiments.$$script --smoke"; \
		$(BIN)/python -m experiments.$$script --smoke --out "$$folder/$$name" < /dev/null || exit 1; \
		cp "$$folder/$$name/$$name"*.json "$$folder" || exit 1; \
	done && $(BIN)/python -m experiments.render --results "$$folder" --page "$$folder/results.md"

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache *.egg-info
