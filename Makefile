# Targets take a Python with PYTHON=python3.13; the environment is made once, in VENV.
PYTHON ?= python3
VENV ?= .venv
RELEASE ?= 0.5.9
WORKER ?= EAGLEWorker

SPECMAP = $(VENV)/bin/specmap
STAMP = $(VENV)/.installed

.PHONY: demo docs env test tests-releases test-live rewritten test-page page lint types contracts check format scan-all bench-scan bench-lint bench-trace bench-ranks bench-report argument-history random-launches mutants clean

# A fresh environment, then the code paths of one worker of a real release.
demo:
	rm -rf output/demo-venv
	$(PYTHON) -m venv output/demo-venv
	output/demo-venv/bin/pip install --quiet .
	output/demo-venv/bin/specmap scan sglang==$(RELEASE) --worker $(WORKER)
	output/demo-venv/bin/specmap scan sglang==$(RELEASE) --worker $(WORKER) --format svg || ! command -v dot

env: $(STAMP)

test: $(STAMP)
	$(VENV)/bin/pytest -n auto

# Real SGLang wheels from the package index, kept in the user's cache.
tests-releases: $(STAMP)
	$(VENV)/bin/pytest tests/releases

# Real SGLang workers on the CPU, in environments of their own (2 GB each, kept in the cache).
test-live: $(STAMP)
	$(VENV)/bin/pytest tests/live

# Rewritten releases beside the published ones, every worker and page size; a quarter of an hour.
rewritten: $(STAMP)
	$(VENV)/bin/python -m tests.live.rewritten

# Pages in a headless Chromium; Node, npm and Chromium are the system's.
test-page: $(STAMP)
	$(VENV)/bin/python -m tests.page.environment
	$(VENV)/bin/pytest tests/page

# The front end of `specmap report`, from its sources (needs Node; the result is in git).
page:
	cd specmap/report/page/app && npm ci --no-audit --no-fund && npm run build

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(STAMP)
	$(VENV)/bin/mypy

contracts: $(STAMP)
	$(VENV)/bin/lint-imports

check: lint types contracts test

format: $(STAMP)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# Every release on the package index.
scan-all: $(STAMP)
	$(VENV)/bin/python benchmarks/scan_all.py

# The documentation site in output/site: open index.html there. A warning is an error, but not with
# --quiet, which drops warnings before they are counted.
docs: $(STAMP)
	$(VENV)/bin/pip install --quiet --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

bench-scan: $(STAMP)
	$(VENV)/bin/python benchmarks/bench_scan.py

# One changed file, warm cache.
bench-lint: $(STAMP)
	$(VENV)/bin/python -m benchmarks.bench_lint

# What the tracer costs a cycle of a real worker on the CPU, beside torch profiler.
bench-trace: $(STAMP)
	$(VENV)/bin/python -m benchmarks.bench_trace

# Logs of 8 ranks of 1,000,000 cycles, then of 100 ranks, read and reported; 6 GB of scratch space.
bench-ranks: $(STAMP)
	$(VENV)/bin/python -m benchmarks.bench_ranks

# The HTML page of 0.5.23 after a warm scan, and the timeline of a long run.
bench-report: $(STAMP)
	$(VENV)/bin/python -m benchmarks.bench_report
	$(VENV)/bin/python -m benchmarks.page_ready

# Which releases know which launch argument (rules/arguments.toml), from their wheels.
argument-history: $(STAMP)
	$(VENV)/bin/python benchmarks/argument_history.py

# The monotone property of launch facts on 200 random launches a release.
random-launches: $(STAMP)
	SPECMAP_RANDOM_LAUNCHES=200 $(VENV)/bin/pytest tests/releases/test_launch_properties.py

# Faults injected into real releases: how many does lint find, and does it cry wolf?
SEED ?= 1
mutants: $(STAMP)
	$(VENV)/bin/python -m tests.mutations.score --seed $(SEED)

clean:
	rm -rf $(VENV) output dist

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --editable '.[dev]'
	touch $(STAMP)
