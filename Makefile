# Every target sets up what it needs. PYTHON=/path/to/python3 picks the interpreter, ATTUNE_HOME where state lives.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help up demo test test-long bench lint format openapi clean .venv

RUN := .venv/bin/python
# on two cores, two test processes; the long ones want the machine for themselves
TEST_PROCESSES ?= 2
BENCH ?= list

help: ## Say what there is
	@grep -hE '^[a-z.-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.venv: ## Install the pinned packages into .venv (done by every target that needs them)
	@requirements/install

up: .venv ## Run the whole platform here; Ctrl-C stops it, the next `make up` resumes
	@exec $(RUN) -m embedded.up

demo: .venv ## A scripted user says once what they want; see what becomes of it
	@exec $(RUN) manage.py demo $(DEMO_ARGS)

test: .venv ## Unit, app and API tests, and one end-to-end test with the real engine and trainer
	@$(RUN) -m pytest -n $(TEST_PROCESSES) --dist loadgroup -m 'not long and not gpu' $(TEST_ARGS)

test-long: .venv ## Tests that take minutes
	@$(RUN) -m pytest -m long $(TEST_ARGS)

bench: .venv ## Measure one thing side by side: make bench BENCH=name; writes var/bench/name.json
	@test -f tests/load/$(BENCH).py || { echo 'there is no benchmark $(BENCH)'; $(RUN) -m tests.load.list; exit 2; }
	@exec $(RUN) -m tests.load.$(BENCH) $(BENCH_ARGS)

lint: .venv ## Style, types, imports between rooms, migrations, compose file
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	.venv/bin/lint-imports
	DJANGO_SETTINGS_MODULE=config.settings.test $(RUN) -W ignore manage.py makemigrations --check --dry-run
	.venv/bin/check-jsonschema --builtin-schema vendor.compose-spec deploy/compose.yaml

format: .venv ## Rewrite the code in the house style
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

openapi: .venv ## Write docs/openapi.json anew from the views, and the typed client in deploy/client from that
	DJANGO_SETTINGS_MODULE=config.settings.test $(RUN) -W ignore manage.py spectacular \
	  --format openapi-json --validate --fail-on-warn --file docs/openapi.json
	$(RUN) deploy/client/generate.py

clean: ## Remove .venv and caches; var/ with its data stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -not -path './var/*' -prune -exec rm -rf {} +
