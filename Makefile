# The front door. Every target brings along what it needs, on a machine that has nothing but Python, pip and make.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?=
export PYTHON
# Without compiled modules, every test worker compiles some of its tools again.
export PYTHONDONTWRITEBYTECODE :=
WORKERS ?= auto
ARGS ?=
bin := .venv/bin

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/.runtime: pyproject.toml requirements/build.txt requirements/runtime.txt
	@tools/setup runtime
	@touch $@

.venv/.extras: .venv/.runtime requirements/extras.txt
	@tools/setup extras
	@touch $@

.venv/.dev: pyproject.toml requirements/dev.txt
	@tools/setup dev
	@touch .venv/.runtime .venv/.extras $@

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
	@$(bin)/python -m compileall -q -j 2 src/assent

.PHONY: extras
extras: .venv/.extras ## Add the optional parts: the assistant, GraphQL, import from checkpointers, the triage screen

.PHONY: demo
demo: setup extras ## Start Assent with a ready-made agent, on this machine only
	@$(bin)/assent demo $(ARGS)

.tools/javascript/.stamp: tests/e2e/js/package.json tests/e2e/js/package-lock.json
	@tools/setup-javascript javascript

.tools/langgraphjs/.stamp: tests/federation/js/package.json tests/federation/js/package-lock.json
	@tools/setup-javascript langgraphjs

.PHONY: javascript
javascript: .tools/javascript/.stamp .tools/langgraphjs/.stamp

.tools/aegra/.stamp: requirements/aegra.txt
	@tools/setup aegra
	@touch $@

.PHONY: deployments
deployments: .tools/reference/.stamp .tools/langgraphjs/.stamp .tools/aegra/.stamp

.PHONY: chromium
chromium: .venv/.dev
	@tools/setup-chromium

.PHONY: test
test: check bytecode chromium javascript deployments ## Run the checks and the whole test suite (ARGS="-k name" narrows it)
	@tools/run-tests -n $(WORKERS) $(ARGS)

# The stores named `memory` run the code of `sqlite`: `make test` has them.
quick := not postgres and not procrastinate and not [memory and not missing_defence and not test_browser_fixture

.PHONY: quick
quick: .venv/.dev bytecode ## Run the tests for the loop while you work: units, contract on SQLite, REST
	@$(bin)/python -m pytest -n $(WORKERS:auto=logical) tests/unit tests/contract tests/api -k "$(quick)" $(ARGS)

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
bench: .venv/.dev .tools/reference/.stamp bytecode ## Measure against floor and peers, into docs/benchmarks.md (ARGS="name" chooses)
	@tools/setup installed
	@$(bin)/python -m bench --write $(ARGS)

.PHONY: profile
profile: .venv/.dev bytecode ## Show where a server spends its processor time (ARGS="chat --long 500"; ARGS="--calls" counts calls)
	@tools/setup installed
	@$(bin)/python -m bench.profile $(ARGS)

.PHONY: scoreboard
scoreboard: chromium deployments ## Run the promises' measures at full count and write docs/scoreboard.md
	@$(bin)/python -m pytest -m scoreboard --scoreboard --timeout=0 $(ARGS)

.PHONY: lock
lock: ## Resolve the dependencies again (ARGS="--upgrade" takes newer versions)
	@tools/lock $(ARGS)

.PHONY: clean
clean: ## Remove environments, caches and build results
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
