# The README's commands. `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/.programs/bin:$(PATH)
# Spark finds Java on the PATH; a JAVA_HOME that it can't use would win over that.
unexport JAVA_HOME SPARK_HOME
# The shell reads it from there: a tag may hold what a shell would run.
export TAG
# Tests wait more than they work: two at a time, each file by one process, with a Spark of its own.
TWO := --numprocesses 2 --dist loadfile
LINES ?= 3.5 4.0 4.1 4.2 4.3
DIST ?= dist
# Tools of a release, at the versions of the lock, each in an environment of its own.
TOOLS := .venv-tools/bin
TOOL = $(TOOLS)/uv tool run --constraints requirements.lock --from

.PHONY: $(shell grep -oE '^[a-z-]+:' Makefile | tr -d :)

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

setup:  ## environments from PyPI, programs from Debian's packages; again at no cost
	@$(PYTHON) scripts/setup.py 4.3 3.5 programs

demo: setup  ## watch the agent at work on a local Spark
	@$(BIN)/streamgauge demo $(DEMO)

check: setup  ## lint, format, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: setup  ## the tests that need PyPI and Debian's packages alone: newest Spark, then oldest
	$(BIN)/python -m pytest $(PYTEST) $(TWO) --ignore tests/faults -m "not integration and not lab"
	$(BIN)/python -m pytest $(PYTEST) tests/faults -m "not integration and not lab"
	.venv-3.5/bin/python -m pytest $(PYTEST) $(TWO) -m "spark and not integration and not lab"

setup-integration: setup  ## what else the integration tests need: programs built with Go, jars by Maven, npm's packages; again at no cost
	@$(PYTHON) scripts/setup.py browser
	@$(PYTHON) scripts/setup_npm.py grafana/preview tests/dashboards/schema
	@$(PYTHON) scripts/setup_integration.py

test-integration: setup-integration  ## the tests that need the Go module proxy or take long
	$(BIN)/python -m pytest $(PYTEST) $(TWO) --ignore tests/kafka --ignore tests/delta --ignore tests/stack -m "integration and not lab"
	$(BIN)/python -m pytest $(PYTEST) $(TWO) tests/kafka -m integration
	.venv-3.5/bin/python -m pytest $(PYTEST) $(TWO) tests/checkpoint tests/spark/test_providers.py tests/kafka/test_kafka_query.py::test_throttled_then_hung -m integration
	.venv-delta/bin/python -m pytest $(PYTEST) tests/delta -m integration
	$(BIN)/python -m pytest $(PYTEST) tests/stack -m integration

test-matrix: setup  ## the Spark tests on 3.5, 4.0, 4.1, 4.2 and 4.3; LINES="4.1 4.2" for some of them
	@$(PYTHON) scripts/setup.py $(LINES)
	for venv in $(patsubst .venv-4.3,.venv,$(addprefix .venv-,$(LINES))); do \
	  $$venv/bin/python -m pytest $(PYTEST) $(TWO) -m "spark and not integration and not lab" || exit 1; done

bench: setup  ## measure the agent's published figures again (under 10 minutes) and write docs/performance.md
	$(BIN)/python bench/run.py

bench-traces: setup  ## measure what tracing costs, and a collector that dies (about 16 minutes)
	$(BIN)/python bench/run.py traces

bench-fleet: setup  ## what 1,000 and 10,000 queries cost a Prometheus with a week behind it; docs/scale.md (10 minutes)
	$(BIN)/python bench/run.py fleet

docs: setup  ## write the generated pages
	$(BIN)/python scripts/write_docs.py

rules: setup  ## write the alert rules, the Alertmanager example and the runbook index anew
	$(BIN)/python -m streamgauge.grafana.alerts.documents .

dashboards: setup  ## write the dashboards, their provisioning files and the list in the docs anew
	$(BIN)/python -m streamgauge.grafana.dashboards.documents .

recording: setup  ## nine minutes of a real Spark with every fault of the lab, scraped by a real Prometheus, for the pictures
	@$(PYTHON) scripts/setup_integration.py kafka
	$(BIN)/python tests/dashboards/recording.py

panels: setup  ## ask every panel's queries of a real Prometheus after a real Spark run with every fault of the lab
	@$(PYTHON) scripts/setup_integration.py kafka
	$(BIN)/python -m pytest tests/dashboards -m lab

screenshots: setup  ## pictures of the dashboards' previews from the recording, which is made if there is none
	@$(PYTHON) scripts/setup.py browser
	@$(PYTHON) scripts/setup_npm.py grafana/preview
	@test -f artifacts/recording/recording.json || $(MAKE) recording
	$(BIN)/python scripts/take_screenshots.py

faults: setup  ## the fault lab: real Spark, Prometheus and Alertmanager, one fault after the other
	@$(PYTHON) scripts/setup.py clock
	rm -f artifacts/faults.jsonl
	$(BIN)/python -m pytest tests/faults
	$(BIN)/python tests/faults/write_table.py

faults-unscaled: setup  ## three faults with the rules as they are shipped, all at the same time (20 minutes); the table in docs/alerts.md
	$(BIN)/python tests/faults/unscaled.py

connect: setup  ## the tests against a real Connect server: killed, restarted, cut off
	$(BIN)/python -m pytest tests/spark/connect

forecast: setup  ## restart real checkpoints on the newest and oldest Spark; the table in docs/restarts.md
	$(BIN)/python tests/checkpoint/forecast_table.py --write docs/restarts.md
	.venv-3.5/bin/python tests/checkpoint/forecast_table.py --write docs/restarts.md

lock: setup  ## write requirements.lock anew
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --group release --universal --python-version 3.11 \
	  --no-emit-index-url --no-annotate --no-header --no-emit-package pyspark --no-emit-package py4j \
	  --upgrade --output-file requirements.lock

stack:  ## the whole stack on loopback, without containers: Kafka, Spark, Prometheus, Alertmanager, Jaeger, dashboards' preview
	@$(PYTHON) scripts/setup.py 4.3 programs
	@$(PYTHON) scripts/setup_npm.py grafana/preview
	@$(PYTHON) scripts/setup_integration.py jaeger kafka
	@$(BIN)/python -B scripts/stack.py up

stack-down:  ## end it; only its logs stay, in artifacts/stack/logs
	@$(BIN)/python -B scripts/stack.py down

stack-fault:  ## break its demo job: FAULT=hang, fail or slow; FAULT=well mends it
	@$(BIN)/python -B scripts/stack.py fault $(FAULT)

setup-tools:  ## what builds a release: no Spark, no Prometheus
	@$(PYTHON) scripts/setup.py tools

wheel: setup-tools  ## sdist and wheel into dist/, and what an index and a user's cluster would say of them
	rm -rf $(DIST)
	$(TOOLS)/python -m build --installer uv --outdir $(DIST)
	$(TOOL) twine twine check --strict $(DIST)/*
	$(TOOL) check-wheel-contents check-wheel-contents --toplevel streamgauge $(DIST)/*.whl

sbom: wheel  ## what an installed agent consists of, at the versions of the lock, as CycloneDX
	@mkdir -p artifacts
	$(TOOLS)/uv venv --quiet --clear artifacts/installed
	$(TOOLS)/uv pip install --quiet --python artifacts/installed --constraint requirements.lock \
	  --find-links $(DIST) "streamgauge[all]==$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' src/streamgauge/version.py)"
	$(TOOL) cyclonedx-bom cyclonedx-py environment --output-reproducible \
	  --output-file artifacts/streamgauge.cdx.json artifacts/installed/bin/python
	rm -rf artifacts/installed

release-notes: setup  ## the changelog's section of TAG=v1.2.3, if the tag, the version and the changelog agree
	@mkdir -p artifacts
	$(BIN)/python scripts/release_notes.py "$$TAG" > artifacts/release-notes.md

clean:  ## remove what setup brought
	rm -rf .venv .venv-* .programs grafana/preview/node_modules tests/dashboards/schema/node_modules
