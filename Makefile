# Every target makes the environments it needs first; a second run finds them ready.
PYTHON ?= python3
AIRFLOW ?= 3.3
LANGUAGE ?=
ENVIRONMENT = $(PYTHON) scripts/environment.py
RUN = .venv-3.3/bin/python

.PHONY: help venv environments constraints lint test test-full test-language docs demo bench-hitl bench-answers bench-language bench-sdks bench-capabilities features clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

venv: ## Make .venv-$(AIRFLOW) (AIRFLOW=3.1|3.2|3.3); .venv is 3.3
	@$(ENVIRONMENT) $(AIRFLOW)

environments: ## Make the environments of all Airflow versions
	@$(ENVIRONMENT) all

constraints: ## Resolve constraints/airflow-*.txt anew
	@$(ENVIRONMENT) --compile

.venv-%/ready: FORCE
	@$(ENVIRONMENT) $*

FORCE:

lint: .venv-3.3/ready ## Check style, types and import directions
	@$(RUN) scripts/check.py lint

test: environments ## Lint, unit tests on all versions, one system smoke on each
	@$(RUN) scripts/check.py test

test-full: environments ## System tests with the real components of all versions
	@scripts/install-tools.sh
	@$(RUN) scripts/check.py test-full

test-language: environments ## The tests of one language's SDK (LANGUAGE=rust|node|java|go|...)
	@$(RUN) scripts/check.py test-language $(LANGUAGE)

docs: .venv-3.3/ready ## Build docs/_build/html; warnings are errors
	@$(RUN) -m sphinx -W --keep-going -q -b html docs docs/_build/html

demo: .venv-3.3/ready ## A person holds up a run, live (KEEP=1 leaves Airflow up)
	@$(RUN) scripts/demo.py $(if $(KEEP),--keep)

bench-hitl: environments ## Ours beside the standard provider: waiting cost and answer latency
	@$(RUN) benchmarks/hitl.py

bench-answers: environments ## What becomes of answers under load, the standard provider beside
	@$(RUN) benchmarks/answers.py resume
	@$(RUN) benchmarks/answers.py settle
	@$(RUN) benchmarks/answers.py settle --executor CeleryExecutor
	@$(RUN) benchmarks/guard.py

bench-language: environments ## Ours beside the stock coordinators: start-up, throughput, logs
	@$(RUN) benchmarks/language.py

bench-sdks: .venv-3.3/ready ## Our SDKs beside C and a bare script: launch and round trips
	@$(RUN) benchmarks/sdks.py

bench-capabilities: .venv-3.3/ready ## The hooks' start and fifty manifests, against their limits
	@$(RUN) benchmarks/capabilities.py

features: environments ## Record what the system tests show on each Airflow, and render the tables
	@$(RUN) -m pytest tests/system -m proves --record-features
	@$(RUN) -m airflow_handoff.cli capabilities matrix

clean: ## Remove environments, caches and build results
	rm -rf .venv .venv-* .tools build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
