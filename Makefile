# Every target sets up what it needs: a virtual environment in .venv with axir installed editable.
# Another interpreter: make test PYTHON=python3.12

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
# Libraries written for JAX, without JAX.
ECOSYSTEM := .venv-ecosystem
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null \
	&& echo $$python && break; done)
# The comparison with JAX runs on the CPU, whatever else the machine has.
export JAX_PLATFORMS := cpu

##@ Try it
.PHONY: demo
demo: $(VENV)/.installed-demo ## Differentiate, compile and train a model on handwritten digits
	$(BIN)/python examples/digits.py

##@ Develop
.PHONY: test
test: $(VENV)/.installed-test ## Run all tests: unit, doctests of code and documents, golden files
	$(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

.PHONY: test-long
test-long: $(VENV)/.installed-test ## Run random programs (RANDOM_PROGRAMS=2000 LONG_PROGRAMS=200 RANDOM_SEED=n)
	RANDOM_PROGRAMS=$${RANDOM_PROGRAMS:-2000} LONG_PROGRAMS=$${LONG_PROGRAMS:-200} \
		RANDOM_SEED=$${RANDOM_SEED:-$$RANDOM} \
		$(BIN)/python -m pytest -o faulthandler_timeout=0 tests/frontend/test_random_programs.py \
		tests/frontend/test_long_random_programs.py $(PYTEST_ARGS)

.PHONY: test-ecosystem
test-ecosystem: $(VENV)/.installed-test $(ECOSYSTEM)/.installed ## Run programs of JAX libraries where JAX is absent
	ECOSYSTEM_PYTHON=$(abspath $(ECOSYSTEM)/bin/python) $(BIN)/python -m pytest -n 2 \
		tests/ecosystem $(PYTEST_ARGS)

.PHONY: test-applications
test-applications: $(VENV)/.installed-test $(ECOSYSTEM)/.installed-applications ## Run the programs of all libraries of docs/libraries.md so
	ECOSYSTEM_PYTHON=$(abspath $(ECOSYSTEM)/bin/python) $(BIN)/python -m pytest -n 2 \
		tests/ecosystem $(PYTEST_ARGS)

.PHONY: test-gpu
test-gpu: $(VENV)/.installed-test ## Run the op table and programs on this machine's GPU (CUDA, else Vulkan)
	TEST_GPU=$${TEST_GPU:-any} GPU_TESTS=$${GPU_TESTS:-all} $(BIN)/python -m pytest -rs tests/gpu $(PYTEST_ARGS)

.PHONY: smoke
smoke: $(VENV)/.installed-test ## Run the whole chain on tiny functions, in seconds
	$(BIN)/python -m pytest -q tests/test_tiny.py

.PHONY: golden
golden: $(VENV)/.installed-test ## Run the golden tests alone (lit and filecheck)
	$(BIN)/lit -v tests/filecheck

.PHONY: lint
lint: $(VENV)/.installed-lint build/typecheck ## Check style and format (ruff), and types (mypy)
	@status=0; set -o pipefail; \
	$(BIN)/ruff check . || status=1; \
	$(BIN)/ruff format --check --quiet . || { status=1; echo "Run: make format" >&2; }; \
	(cd build/typecheck && ../../$(BIN)/mypy --config-file ../../pyproject.toml -p axir -m public_types) \
		| sed -E 's#^axir/(dialect|passes|runtime)/#\1/#; s#^axir/#frontend/#' || status=1; \
	exit $$status

.PHONY: format
format: $(VENV)/.installed-lint ## Sort imports and lay out the code as `make lint` wants it
	$(BIN)/ruff check --select I --fix .
	$(BIN)/ruff format .

.PHONY: hooks
hooks: $(VENV)/.installed-lint $(VENV)/.installed-hooks ## Check before each commit and push of this clone
	$(BIN)/pre-commit install

.PHONY: bench
bench: $(VENV)/.installed-test ## Measure speed, first calls and memory beside JAX; keep and draw it
	$(BIN)/python benchmarks --cold --keep --png benchmarks/ratios.png
	$(BIN)/python -m benchmarks.imported --keep

.PHONY: bench-imported
bench-imported: $(VENV)/.installed-test ## Measure models of PyTorch and ONNX beside their own runtimes
	$(BIN)/python -m benchmarks.imported --keep $(BENCH_ARGS)

.PHONY: bench-gpu
bench-gpu: $(VENV)/.installed-test ## Measure programs on this machine's GPU, beside JAX or PyTorch there
	JAX_PLATFORMS= $(BIN)/python benchmarks/gpu.py $(BENCH_ARGS)

.PHONY: gpu-bundle
gpu-bundle: $(VENV)/.installed-test ## Make the folder that reports on a GPU of a machine without a network
	$(BIN)/python -m benchmarks.gpu_report.bundle $(BUNDLE_ARGS)

.PHONY: bench-compare
bench-compare: $(VENV)/.installed-test ## Show what became slower between the last two runs kept
	$(BIN)/python benchmarks --compare

.PHONY: docs
docs: $(VENV)/.installed-test ## Rewrite the documents that are generated from tables
	$(BIN)/python docs/generate.py

.PHONY: pictures
pictures: $(VENV)/.installed-docs ## Draw the pictures of the pages and of the examples again, in full
	$(BIN)/python docs/pictures.py

SPHINX := $(BIN)/python -m sphinx -c docs/site build/site/source
.PHONY: site
site: $(VENV)/.installed-docs ## Build the pages and the reference as a site, in build/site/html
	$(BIN)/python docs/make_site.py build/site/source
	$(SPHINX) build/site/html --quiet --fail-on-warning --keep-going --nitpicky --jobs auto
	@echo "Open build/site/html/index.html"

.PHONY: site-links
site-links: site ## Follow the site's links to other sites (needs a network)
	$(SPHINX) build/site/links --builder linkcheck --quiet

.PHONY: irdl
irdl: $(VENV)/.installed-test ## Rewrite dialect/text/jaxpr.irdl.mlir from the op table
	$(BIN)/python -m axir.dialect.text.irdl

.PHONY: docs-check
docs-check: $(VENV)/.installed-test ## Run the examples in docstrings and documents; check links
	$(BIN)/python -m pytest -n 2 tests/repository/test_doctests.py tests/repository/test_documents.py

.PHONY: check-wheel
check-wheel: $(VENV)/.installed-test ## Build the wheel, install it elsewhere, import every module
	$(BIN)/python -m pytest tests/repository/test_wheel.py

.PHONY: lock
lock: $(VENV)/.installed-test $(VENV)/.installed-lint ## Write the installed versions to requirements.lock
	@echo "# What the tests passed with on $$($(BIN)/python --version); written by make lock." > $@.new
	@$(BIN)/python -m pip freeze --exclude-editable --all --exclude pip >> $@.new
	@mv $@.new requirements.lock

.PHONY: clean
clean: ## Remove what was built, but not .venv
	rm -rf build dist axir.egg-info demo-output .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: help
help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Type checkers do not follow the editable install, so they get the folders in their installed layout.
.PHONY: build/typecheck
build/typecheck:
	@rm -rf $@/axir && mkdir -p $@
	@cp -r frontend $@/axir && cp -r dialect passes runtime $@/axir/
	@cp tests/repository/public_types.py $@/

$(VENV)/.installed-%: pyproject.toml setup.py | $(BIN)/python
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

$(ECOSYSTEM)/.installed: tests/ecosystem/requirements.txt pyproject.toml setup.py | $(BIN)/python
	$(PYTHON) -m venv $(ECOSYSTEM)
	PYTHONWARNINGS=ignore $(ECOSYSTEM)/bin/python -m pip install --quiet \
		--disable-pip-version-check --editable .
	PYTHONWARNINGS=ignore $(ECOSYSTEM)/bin/python -m pip install --quiet \
		--disable-pip-version-check --no-deps --requirement $<
	@! $(ECOSYSTEM)/bin/python -c 'import jax' 2>/dev/null || { \
		echo "JAX is installed in $(ECOSYSTEM); remove the folder." >&2; exit 1; }
	@touch $@

# All that the table of docs/libraries.md was measured with, of the same versions.
$(ECOSYSTEM)/.installed-applications: tests/ecosystem/applications.txt $(ECOSYSTEM)/.installed
	PYTHONWARNINGS=ignore $(ECOSYSTEM)/bin/python -m pip install --quiet \
		--disable-pip-version-check --no-deps --requirement $<
	@touch $@

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "axir needs Python 3.10 or newer, and none was found." >&2; \
		echo "Install one, or name it: make test PYTHON=/path/to/python3" >&2; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
		echo "axir needs Python 3.10 or newer; $(PYTHON) is older or does not run." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot create a virtual environment, because its venv module is missing." >&2; \
		echo "On Debian and Ubuntu: sudo apt install python3-venv" >&2; exit 1; }
