# The doors of the house. `make demo` and `make test` do all set-up themselves.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CONFORMANCE_DIR ?= ../shared/conformance
PYTEST_WORKERS ?= 2
SCENARIOS ?=
ARGS ?=

.PHONY: help demo up test lint types imports conformance e2e e2e-node e2e-kind image bench crds sizes clean

help:
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml constraints.txt
	@echo "Preparing $(VENV) (once; a minute or two, more where downloads are slow) ..."
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; set PYTHON=...")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY)  ## run four gangs and a refused queue on an embedded cluster, to the end
	@$(BIN)/stromboli demo $(ARGS)

up: $(READY)  ## start the embedded cluster, the three processes and the dashboard, and keep them running
	@$(BIN)/stromboli up $(ARGS)

test: $(READY) lint  ## lint, types, unit, property, conformance and end-to-end tests
	$(BIN)/pytest -n $(PYTEST_WORKERS) tests
	$(BIN)/pytest e2e

lint: $(READY)  ## ruff, mypy strict, import contracts
	$(BIN)/ruff check src tests e2e benchmarks images
	$(BIN)/ruff format --check src tests e2e benchmarks images
	$(BIN)/mypy src tests e2e images
	$(BIN)/lint-imports

conformance: $(READY)  ## run the vectors in CONFORMANCE_DIR
	@$(BIN)/python -m tests.conformance $(CONFORMANCE_DIR)

e2e: $(READY)  ## the end-to-end suite on a real kube-apiserver (builds it once, with Go), or on the cluster of E2E_KUBECONFIG
	@$(BIN)/python -m e2e.realcluster

e2e-node: $(READY)  ## the chart on real kubelets, in namespaces of their own (builds them once, with Go; needs root)
	@$(BIN)/python -m e2e.realnode $(ARGS)

e2e-kind: $(READY)  ## the chart on kind (needs Docker, kind, kubectl and Helm)
	@$(BIN)/python -m e2e.kind $(ARGS)

image: $(READY)  ## build the container image as an archive, without a container engine (Debian, apt)
	@$(BIN)/python -m images.build --output build/image

bench: $(READY)  ## benchmark scenarios, one JSON object a line
	@$(BIN)/python -m benchmarks $(SCENARIOS)

crds: $(READY)  ## write the CRDs into the chart
	@$(BIN)/python -m stromboli.api.crds charts/stromboli/definitions

sizes: $(READY)  ## lines per file and function, per room
	@$(BIN)/python -m benchmarks.sizes

clean:  ## remove what the doors made
	rm -rf $(VENV) .stromboli build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
