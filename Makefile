# Everything that a contributor does, one word each: `make help` lists them.
PYTHON ?= python3
BIN = .venv/bin

.DEFAULT_GOAL := help
.PHONY: help set-up test slow engines nightly hunt lint format types docs page bench all

help: ## what there is
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

set-up: ## an environment in .venv with all that the rest needs
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"

test: ## the tests, without the slow ones
	$(BIN)/pytest

slow: ## the slow tests
	$(BIN)/pytest -m slow

ENGINES = vllm sglang megatron-core torchtitan torchtune mlx mlx-cpu
PACKAGES = timm PoPE-pytorch fla-core nemo_toolkit==1.23.0

# Their own dependencies are left out: only files that encode are run. flash-attn comes as source.
engines: ## encodings against vLLM's, SGLang's, timm's and others' own files (500 MB)
	$(BIN)/pip install --quiet --no-deps --upgrade --target build/engines $(ENGINES) $(PACKAGES)
	rm -rf build/engines/tests # NeMo's, which would stand before ours
	FLASH_ATTENTION_SKIP_CUDA_BUILD=TRUE $(BIN)/pip download --quiet --no-deps --no-build-isolation --dest build/engines flash-attn
	tar -xzf build/engines/flash_attn-*.tar.gz -C build/engines --strip-components=1
	PYTHONPATH=build/engines $(BIN)/pytest -m slow tests/numerics/arithmetic/test_engines.py tests/encodings/test_other_packages.py

nightly: ## what takes too long for each change: slow tests, random cases, other processors
	tests/nightly

hunt: ## ten minutes of random cases
	$(BIN)/python -m tests.fuzz --minutes 10 --jobs 2

lint: ## what ruff, import-linter and codespell have to say
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

format: ## what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: ## what pyright has to say
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: ## the site, into docs/_build/html; warnings are errors
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html

page: ## the explorer, into explorer.html
	$(BIN)/posenc explore --output explorer.html

bench: ## the benchmarks, small
	$(BIN)/python -m benchmarks --quick

all: ## everything that a change must pass, in a fresh copy
	.ci/run
