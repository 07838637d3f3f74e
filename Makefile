# Everything here works from a fresh clone: the virtual environment and the control plane's programs are
# made when they are first needed. The programs are cached outside of the tree (see tests/controlplane).

# The newest of each version that runs: of pyenv's shims in PATH some only say what is not installed.
PYTHONS = $(shell for version in 3.14 3.13 3.12 3.11; do for python in $$(which -a python$$version); do \
	$$python -c 'import ensurepip, ssl' 2>/dev/null && echo $$python && break; done; done)
PYTHON ?= $(or $(firstword $(PYTHONS)),$(error Python 3.11 or later with the module venv is needed; PYTHON= names one))
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Where it is set, each of the thousands of processes that tests start would compile all of crdkeeper again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: venv
venv: $(READY) ## Make the virtual environment

.PHONY: controlplane
controlplane: $(READY) ## Build etcd, kube-apiserver, kube-controller-manager and kubectl (once, about 6 minutes)
	$(BIN)/python -m tests.controlplane build

.PHONY: demo
demo: controlplane ## Show a migration on a real API server, then clean up
	$(BIN)/python -m demo

.PHONY: demo-conversion
demo-conversion: controlplane ## Show how rules convert between versions, then clean up
	$(BIN)/python -m demo conversion

.PHONY: demo-composites
demo-composites: controlplane ## Show an API of your own, what it stands for, its changes and its deletion, then clean up
	$(BIN)/python -m demo composites

.PHONY: demo-retirement
demo-retirement: controlplane ## Show how a version of a CRD is taken out of service, then clean up
	$(BIN)/python -m demo retirement

# The longest first: in this order they start where some run beside each other.
.PHONY: test
test: test-cluster test-composites test-composing test-faults test-definitions test-unit ## Run all tests but those of the image and of nodes (image-check, e2e)

# Each suite remembers which tests failed. With AGAIN=1, as in .ci/run, they fail nothing yet: test-again does.
SUITE = $(BIN)/pytest -o cache_dir=.run/pytest/$@
UNLESS_AGAIN = || { test $$? = 1 && test -n "$(AGAIN)" && grep -q :: .run/pytest/$@/v/cache/lastfailed; }

.PHONY: test-unit
test-unit: $(READY) ## Run the tests that need no control plane
	nice -n 5 $(SUITE) tests/unit tests/property $(UNLESS_AGAIN)

# The programs of a control plane collect garbage less often: they serve one test at a time, with memory to spare.
test-cluster test-faults test-definitions test-composites test-composing test-again: export GOGC ?= 400

# Targets of their own only because they run beside each other.
DEFINITION_TESTS := $(addprefix tests/cluster/,conversion definitions deployment)

.PHONY: test-cluster
test-cluster: controlplane ## Run the tests that need a control plane, but for those of the next four targets
	$(SUITE) tests/controlplane tests/cluster tests/benchmark \
		$(addprefix --ignore ,tests/cluster/composition $(DEFINITION_TESTS)) $(UNLESS_AGAIN)

.PHONY: test-faults
test-faults: controlplane ## Run those of kills, outages, and changes of leaders
	$(SUITE) tests/faults $(UNLESS_AGAIN)

.PHONY: test-definitions
test-definitions: controlplane ## Run those of conversion, of definitions and of the deployment
	$(SUITE) $(DEFINITION_TESTS) $(UNLESS_AGAIN)

.PHONY: test-composites
test-composites: controlplane ## Run the tests of composites that need a control plane, but for those of test-composing
	$(SUITE) tests/cluster/composition --ignore-glob '*/test_composer_[a-d]*' $(UNLESS_AGAIN)

.PHONY: test-composing
test-composing: controlplane ## Run the other tests of composites that need a control plane
	$(SUITE) tests/cluster/composition/test_composer_[a-d]* $(UNLESS_AGAIN)

.PHONY: test-again
test-again: controlplane ## Run once more, alone, what failed in the last runs of these targets, test-unit and e2e
	$(BIN)/python -m checks.again .run/pytest

.PHONY: test-pythons
test-pythons: $(READY) ## Run them on the newest and the oldest Python from 3.11 on in PATH that test-unit does not use
	@set -e; for python in $(sort $(firstword $(PYTHONS)) $(lastword $(PYTHONS))); do \
		name=$$(basename $$python); venv=.run/pythons/$$name; \
		if [ -e $(BIN)/$$name ]; then continue; fi; \
		if ! [ $$venv/.ready -nt requirements/dev.txt ] || ! [ $$venv/.ready -nt pyproject.toml ]; then \
			rm -rf $$venv; $$python -m venv $$venv; \
			$$venv/bin/pip install --quiet --require-hashes -r requirements/dev.txt; \
			$$venv/bin/pip install --quiet --no-deps --no-build-isolation --editable .; touch $$venv/.ready; \
		fi; \
		$$venv/bin/python --version; nice -n 5 $$venv/bin/pytest tests/unit tests/property; \
	done

.PHONY: test-long
test-long: controlplane ## Run all tests, with the long versions of the random ones
	CRDKEEPER_RETIREMENT_FAULTS=1 \
		HYPOTHESIS_PROFILE=long CRDKEEPER_KILLS=50 CRDKEEPER_EACH_RIGHT=1 CRDKEEPER_SHARD_KILLS=15 CRDKEEPER_SHARD_SERVERS=1 CRDKEEPER_FLIPS=20 CRDKEEPER_VARIANTS=5000 CRDKEEPER_EXPRESSIONS=10000 CRDKEEPER_COSTS=4000 CRDKEEPER_UPDATES=150 CRDKEEPER_PUBLISHED=4000 CRDKEEPER_OBJECTS=20000 CRDKEEPER_CELLS=200000 CRDKEEPER_SCALES=5000 \
		CRDKEEPER_UPGRADES=1000 CRDKEEPER_CONVERSIONS=20 CRDKEEPER_ANSWERS=4000 CRDKEEPER_LISTED=5000 CRDKEEPER_COUNTED_OBJECTS=100000 CRDKEEPER_COUNT_KILLS=5 CRDKEEPER_REHEARSALS=107 CRDKEEPER_COMPOSITES=300 CRDKEEPER_DELETED_COMPOSITES=5000 CRDKEEPER_COMPOSED_OBJECTS=1000 CRDKEEPER_PREVIEWED=1000 CRDKEEPER_PROTECT_ROUNDS=90 CRDKEEPER_HELD_OBJECTS=10000 CRDKEEPER_AUTOSCALERS=10000 CRDKEEPER_SCALED_OBJECTS=10000 CRDKEEPER_DEMO=1 CRDKEEPER_FAULT_SECONDS=120 CRDKEEPER_COMPOSING_FAULTS=1 CRDKEEPER_LABELLED_OBJECTS=10000 CRDKEEPER_PROTECTED_OBJECTS=10000 CRDKEEPER_PROTECTED_DEFINITIONS=2000 CRDKEEPER_SECRETS=10000 CRDKEEPER_RETIRED_OBJECTS=10000 CRDKEEPER_CHANGE_OBJECTS=10000 CRDKEEPER_CHANGE_KILLS=50 CRDKEEPER_CHANGE_ROTATION=1 CRDKEEPER_CONCERNS=20 $(BIN)/pytest --timeout 1800

# Those that take schemas or rules from published CRDs if there are any, besides their own.
CORPUS_TESTS := $(addprefix tests/,unit/core/lint/test_noise.py unit/core/conversion/test_proposals.py \
	cluster/definitions cluster/objects cluster/cel/test_cel_compiles_agree.py cluster/conversion/test_conversion_corpus.py \
	cluster/rehearsal/test_rehearse_predictions.py cluster/composition/test_definitions_of_corpus.py \
	cluster/composition/test_definitions_agree.py)

.PHONY: test-corpus
test-corpus: controlplane ## Run the tests that use published CRDs with those of a folder: CRDKEEPER_CORPUS=FOLDER
	@test -d "$$CRDKEEPER_CORPUS" || { echo "Set CRDKEEPER_CORPUS to a folder with files *.yaml of CRDs." >&2; exit 2; }
	$(BIN)/pytest --timeout 1800 $(CORPUS_TESTS)

.PHONY: lint
lint: $(READY) ## Check style, types, the direction of imports, and that readers find their way
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m checks.tree

.PHONY: format
format: $(READY) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: generate
generate: $(READY) ## Generate crds/ and the pages of docs/ that come from the code
	$(BIN)/python -m crdkeeper.api.crdgen crds
	$(BIN)/python -m generate.lint > docs/lint.md
	$(BIN)/python -m generate.reports > docs/reports.md
	$(BIN)/python -m generate.diff > docs/diff.md
	$(BIN)/python -m generate.upgrademanifest > docs/upgrade-manifest.md

PYTHON_IMAGE ?=
IMAGE := $(BIN)/python -m image $(if $(PYTHON_IMAGE),--python-image $(PYTHON_IMAGE))

.PHONY: image
image: $(READY) ## Build the container image without Docker, to .run/image/, with an SBOM (as root, with buildah)
	$(IMAGE) build

.PHONY: image-check
image-check: $(READY) ## Build it twice, which must give the same bytes; run it as a cluster does
	$(IMAGE) check
	$(BIN)/pytest tests/image

.PHONY: nodes
nodes: controlplane ## Build containerd, kubelet and the rest of a node (once, about 7 minutes)
	$(BIN)/python -m tests.node build

.PHONY: e2e
e2e: nodes ## Run the tests of what is deployed: pods on real nodes (as root)
	$(SUITE) tests/node -rs $(UNLESS_AGAIN)

# Not as a prerequisite: make would start e2e only after everything else.
.PHONY: check-nodes
check-nodes: ## image-check, then e2e: for runs with --jobs, as both build the image in one place
	$(MAKE) image-check
	$(MAKE) e2e

NODE ?=

.PHONY: cluster
cluster: controlplane ## Start a control plane to play with; prints how to use it. NODE=2: with that many nodes, as root
	$(BIN)/python -m $(if $(NODE),tests.node up --nodes $(NODE),tests.controlplane up)

.PHONY: cluster-down
cluster-down: $(READY) ## End it
	$(BIN)/python -m tests.controlplane down
	$(BIN)/python -m tests.node down

# How many objects are rewritten: unless given, each benchmark has a number of its own.
OBJECTS ?=
WITH_OBJECTS = $(if $(OBJECTS),--objects $(OBJECTS))
ROUNDS ?= 3
# More than 100,000 objects, or KILLS=10: the operator and the command alone, killed so many times each.
KILLS ?=
# Milliseconds between clients and API server, and whether etcd waits for its disk (FSYNC=1).
DELAY ?= 0

.PHONY: bench-attacks
bench-attacks: $(READY) ## Show what a network neighbour of the conversion webhook can do to API servers
	$(BIN)/python -m tests.benchmark.webhookattacks

.PHONY: bench-schema
bench-schema: $(READY) ## Compare validations and CEL evaluations per second with the naive use of libraries
	$(BIN)/python -m tests.benchmark.schema

.PHONY: bench-migration
bench-migration: controlplane ## Compare our rate with the API server's ceiling, the in-tree migrator and one at a time
	$(BIN)/python -m tests.benchmark.migration $(WITH_OBJECTS) --rounds $(ROUNDS) --delay $(DELAY) $(if $(FSYNC),--fsync) $(if $(KILLS),--kills $(KILLS))

LOADS ?= 0 0.5 1
# Requests in flight, and objects a second (maxObjectsPerSecond).
FIXED ?= 2 4 8 16 32 64
RATES ?= 50 100 200
# Of the API server's seats, in a priority level of their own, as in manifests/priority.
SHARES ?= 2

.PHONY: bench-pace
bench-pace: controlplane ## Compare fixed numbers of requests in flight with the adapted one, and what another client sees meanwhile
	$(BIN)/python -m tests.benchmark.paces $(WITH_OBJECTS) --rounds $(ROUNDS) --fixed $(FIXED) --rates $(RATES) --shares $(SHARES) --loads $(LOADS) --delay $(DELAY) $(if $(FSYNC),--fsync)

.PHONY: bench-overhead
bench-overhead: controlplane ## Show what a migration costs the API server beside the patches, part by part
	$(BIN)/python -m tests.benchmark.overhead $(WITH_OBJECTS) --rounds $(ROUNDS)

.PHONY: bench-several
bench-several: controlplane ## Compare crdkeeper migrate of several resources with one command after the other
	$(BIN)/python -m tests.benchmark.several $(WITH_OBJECTS) --rounds $(ROUNDS)

COUNTED ?= 1000000

.PHONY: bench-census
bench-census: controlplane ## Count a million objects within the budget of requests, with an operator that is killed on the way
	$(BIN)/python -m tests.benchmark.census --objects $(COUNTED)

SHARED ?= 3000

.PHONY: bench-shards
bench-shards: controlplane ## Measure the rate of a migration by 1, 2, 4 processes through 1, 2, 3 API servers
	$(BIN)/python -m tests.benchmark.shards --objects $(SHARED) --rounds $(ROUNDS)

.PHONY: bench-server
bench-server: controlplane ## Show what the API server does while objects are rewritten, and what each form of request costs it
	$(BIN)/python -m tests.benchmark.serverpart $(WITH_OBJECTS)

.PHONY: bench-conversion
bench-conversion: controlplane ## Compare our conversion webhook with one written by hand in Go
	$(BIN)/python -m tests.benchmark.conversion --rounds $(ROUNDS)

.PHONY: bench-rehearsal
bench-rehearsal: controlplane ## Measure how long crdkeeper rehearse takes, by the engine and with all proved by the API server
	$(BIN)/python -m tests.benchmark.rehearsal --rounds $(ROUNDS)
	$(BIN)/python -m tests.benchmark.rehearsal --rounds $(ROUNDS) -- --shadow always

DEFINITIONS ?= 2000
FIELDS ?= 150

.PHONY: bench-reports
bench-reports: controlplane ## Measure the reports on many CRDs: time to ready, memory, from a change to its report, a storm of changes
	$(BIN)/python -m tests.benchmark.reports --definitions $(DEFINITIONS) --fields $(FIELDS) $(if $(STARTS),--starts)

INSTANCES ?= 1000
PARTS ?= 4

.PHONY: bench-composites
bench-composites: controlplane ## Compare the composer with kro's controller: time, CPU, memory, requests, for the same API
	$(BIN)/python -m tests.benchmark.composites --instances $(INSTANCES) --objects $(PARTS)

COMPILE = CUSTOM_COMPILE_COMMAND="make requirements" $(BIN)/pip-compile --quiet --generate-hashes --strip-extras \
	--allow-unsafe --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options

.PHONY: requirements
requirements: $(READY) ## Update the pinned dependencies of pyproject.toml
	$(BIN)/pip install --quiet pip-tools
	$(COMPILE) --output-file requirements/runtime.txt pyproject.toml
	$(COMPILE) --extra pykube --extra dev --constraint requirements/runtime.txt --output-file requirements/dev.txt pyproject.toml
	$(COMPILE) --constraint requirements/dev.txt --output-file requirements/build.txt requirements/build.in

.PHONY: clean
clean: ## End what make cluster has started, and remove what was made in the tree; the cache of the control plane stays
	$(if $(wildcard .run/cluster/pids .run/node/pids),$(MAKE) cluster-down)
	rm -rf $(VENV) .run build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf operator/crdkeeper.egg-info
