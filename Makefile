# The front door. Every target brings along what it needs, on a machine that has nothing but Python, pip and make.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?=
export PYTHON
WORKERS ?= auto
ARGS ?=
bin := .venv/bin

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/.runtime: pyproject.toml requirements/build.txt requirements/runtime.txt
	@tools/setup runtime
	@touch $@

.venv/.dev: pyproject.toml requirements/dev.txt
	@tools/setup dev
	@touch .venv/.runtime $@

.tools/fuzz/.stamp: requirements/fuzz.txt
	@tools/setup fuzz
	@touch $@

.tools/reference/.stamp: requirements/reference.txt
	@tools/setup reference
	@touch $@

.PHONY: setup
setup: .venv/.runtime bytecode ## Install Assent into .venv (leaves .venv/bin/assent)

.PHONY: bytecode
bytecode: .venv/.runtime
	@$(bin)/python -m compileall -q src/assent

.PHONY: demo
demo: setup ## Start Assent with a ready-made agent, on this machine only
	@$(bin)/assent demo $(ARGS)

.tools/javascript/.stamp: tests/e2e/js/package.json tests/e2e/js/package-lock.json
	@tools/setup-javascript

.PHONY: javascript
javascript: .tools/javascript/.stamp

.PHONY: chromium
chromium: .venv/.dev
	@tools/setup-chromium

.PHONY: test
test: check chromium javascript .tools/reference/.stamp ## Run the checks and the whole test suite (ARGS="-k name" narrows it)
	@tools/run-tests -n $(WORKERS) $(ARGS)

.PHONY: quick
quick: .venv/.dev ## Run the tests for the loop while you work: units, contract on SQLite, REST
	@$(bin)/python -m pytest -n $(WORKERS:auto=logical) tests/unit tests/contract tests/api -k "not postgres and not missing_defence" $(ARGS)

.PHONY: check
check: .venv/.dev ## Lint, types, direction of imports
	@$(bin)/ruff check
	@$(bin)/ruff format --check
	@$(bin)/mypy
	@$(bin)/lint-imports --no-logo

.PHONY: fmt
fmt: .venv/.dev ## Format the code and fix what can be fixed
	@$(bin)/ruff check --fix
	@$(bin)/ruff format

.PHONY: bench
bench: .venv/.dev .tools/reference/.stamp bytecode ## Measure against floor and peers (ARGS="name" chooses)
	@$(bin)/python -m bench $(ARGS)

.PHONY: scoreboard
scoreboard: chromium ## Run the promises' measures at full count and write docs/scoreboard.md
	@$(bin)/python -m pytest -m scoreboard --scoreboard --timeout=0 $(ARGS)

.PHONY: lock
lock: ## Resolve the dependencies again (ARGS="--upgrade" takes newer versions)
	@tools/lock $(ARGS)

.PHONY: clean
clean: ## Remove environments, caches and build results
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
