# The two commands: `make course` sets everything up and builds it, `make test` proves it.
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python,$(shell command -v $(name) 2>/dev/null)))
TORCH ?=
PORT ?= 8000
VENV := .venv
RUN := $(VENV)/bin/python
# Four processes, on two cores too: many tests wait, for a browser, a jail or a deadline.
PYTEST := $(RUN) -m pytest autograder/tests -n 4 --dist loadscope

.PHONY: help course venv book editions slides exercises sample before-tests compiled-tests test quick full bench record gpu-test gpu-hour serve lint format clean
.DEFAULT_GOAL := help
# Where several processes share the cores, torch's threads must not spin while they wait for each other.
course book test quick full: export OMP_WAIT_POLICY := PASSIVE

help:
	@echo "make course     set up, build the book, write the exercises, grade the sample class   (TORCH=cpu: no CUDA build of PyTorch)"
	@echo "make test       everything that a change can break"
	@echo "make serve      read the book at http://127.0.0.1:$(PORT)   (PORT=...)"
	@echo "make editions   the whole book as one PDF, in _build/html/editions (needs a Chromium)"
	@echo "make slides     a lecture of forty minutes for each chapter, in _build/html/slides"
	@echo "make quick      a sample in about a minute: no book, no browser, nothing slow, at most 3 cases of each test"
	@echo "make full       all of it, with make course on a fresh clone and an empty pip cache (hours)"
	@echo "make bench      how fast this machine runs the SIMT engine, what sandbox and class cost beside nbgrader, and each task's check"
	@echo "make record     measure on this GPU what the book has no record of   (EXPERIMENT=name: only that one)"
	@echo "make gpu-test   the tests that need a CUDA device"
	@echo "make gpu-hour   records, tests and comparisons on a CUDA machine, in calls of under nine minutes   (MINUTES=..., OUT=folder)"
	@echo "make lint       form, names, layers and types, without running anything   (make format: mend the form)"
	@echo "make venv | book | exercises | sample     one step of make course"

course: venv
	@$(RUN) -m workshop.course

venv:
	@$(if $(PYTHON),$(PYTHON) autograder/workshop/bootstrap.py --venv $(VENV) --torch "$(TORCH)",echo "make: no Python found, but the course needs 3.11, 3.12 or 3.13; install one (Debian and Ubuntu: apt-get install python3 python3-venv) and run make again" >&2; exit 1)

book exercises sample: venv
	@$(RUN) -m workshop.course $@

# Pages that are up to date are not built again; the start page offers what was made.
editions: book
	@$(RUN) -m workshop.editions

slides: book
	@$(RUN) -m workshop.slides

# Form, names and layers: everything that can be said of the code without running it.
LINT := --config autograder/pyproject.toml
CODE := autograder chapters solutions .github/picture.py nbgrader_config.py
lint: venv
	@$(RUN) -m ruff check --quiet $(LINT) $(CODE)
	@$(RUN) -m ruff format --quiet --check $(LINT) $(CODE) || { echo "make: some files are not formatted; run make format" >&2; exit 1; }
	@$(RUN) -m codespell_lib --toml autograder/pyproject.toml *.md chapters solutions autograder --skip "*/axe/*,*_writing.yml,*.svg,*.bib,*.json,*.ipynb,*/LICENSE,*.egg-info,*.pyc"
	@PYTHONPATH=autograder $(VENV)/bin/lint-imports --no-cache $(LINT) > _build/imports.log || { cat _build/imports.log; exit 1; }
	@$(VENV)/bin/basedpyright -p autograder/pyproject.toml
	@$(RUN) -m workshop.line_budget

format: venv
	@$(RUN) -m ruff check --quiet --fix --select I $(LINT) $(CODE)
	@$(RUN) -m ruff format --quiet $(LINT) $(CODE)

# Sphinx writes the pages on one core: the other checks form and types meanwhile, and compiles the tests once for all processes.
before-tests: venv
	@nice -n 19 $(MAKE) --no-print-directory lint compiled-tests & beside=$$!; $(RUN) -m workshop.course book && wait $$beside || { kill $$beside 2> /dev/null; exit 1; }

compiled-tests:
	@$(PYTEST) -n 0 --collect-only -q > /dev/null 2>&1 || true

test: before-tests
	$(PYTEST)

quick: venv
	$(PYTEST) -n 2 --at-most 3 -m "not gpu and not full and not slow and not browser"

full: before-tests
	$(PYTEST) -m "not gpu"

# A bare CUDA machine has no environment and few packages: any Python with torch, numba-cuda, NumPy, PyYAML, msgspec, IPython and pytest will do, and
# only the files that hold GPU tests are read.
GPU_PYTHON = $(if $(wildcard $(RUN)),$(RUN),$(PYTHON))
gpu-test:
	@$(GPU_PYTHON) -c "import sys; from numba import cuda; sys.exit(not cuda.is_available())" || { echo "make: $(GPU_PYTHON) finds no CUDA device; the GPU tests need an NVIDIA GPU with its driver, torch, numba-cuda, NumPy, PyYAML, msgspec, IPython and pytest" >&2; exit 1; }
	PYTHONPATH=autograder$${PYTHONPATH:+:$$PYTHONPATH} $(GPU_PYTHON) -m pytest -m gpu $$(grep -rl --include='test_*.py' 'mark\.gpu' autograder/tests)

MINUTES ?= 8.5
OUT ?= _build/gpu-hour
gpu-hour:
	@PYTHONPATH=autograder$${PYTHONPATH:+:$$PYTHONPATH} $(GPU_PYTHON) -m workshop.gpu_hour --minutes $(MINUTES) --out $(OUT)

# Like gpu-test it runs on a bare machine; WARPLAB_COMMIT names the commit where there is no git.
record:
	@PYTHONPATH=autograder$${PYTHONPATH:+:$$PYTHONPATH} $(GPU_PYTHON) -m warplab.evidence $(EXPERIMENT)

bench: venv
	@$(RUN) autograder/tests/bench_engine.py
	@$(RUN) autograder/tests/bench_sandbox.py
	@$(RUN) autograder/tests/bench_class.py
	@$(RUN) autograder/tests/bench_tasks.py

serve:
	@PYTHONPATH=autograder $(PYTHON) -m workshop.serve $(PORT)

clean:
	rm -rf _build
