VENV := .venv
KSHOT := $(VENV)/bin/kshot
PY := $(VENV)/bin/python
BASE_PYTHON ?= python3
# Elsewhere users choose their torch; the tests run on one.
TORCH := torch==2.13.0
SHARED := ../shared
TESTS_NEED := $(shell sed -n 's/^  "\(\(pytest\|pytest-benchmark\|pytest-xdist\|hypothesis\|beartype\)==.*\)",/\1/p' pyproject.toml)
NUMBERS := tests/solvers tests/stats tests/theory/test_closed_forms.py tests/methods/test_blends.py tests/data/test_draw.py tests/package/test_systems.py
AXE := axe-core@4.14.0
.DEFAULT_GOAL := help

.PHONY: help lowest pythons one-python bench rehearsal browser cluster test test-ci test-slow campaigns lint types contracts unused names check docs dist benchmarks readme open clip clip-features clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml
	$(BASE_PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# The encoders are large, so only what runs them asks for them: `make bench` stays light.
$(VENV)/.installed-encode: $(VENV)/.installed
	$(PY) -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(PY) -m pip install --quiet --disable-pip-version-check $(TORCH) --editable '.[dev,docs,encode,hf,lite,serve]'
	@touch $@

bench: $(VENV)/.installed  ## run the embedded study and write its report
	$(KSHOT) run embedded
	$(KSHOT) report embedded

rehearsal: $(VENV)/.installed  ## the whole paper on generated features, from nothing to report and comparison
	rm -rf build/rehearsal
	OMP_NUM_THREADS=1 $(PY) tools/rehearse.py build/rehearsal

# Which of these programs are not there; `command -v` of several asks for the first only.
absent = $$(for program in $(1); do command -v $$program >/dev/null || echo $$program; done)
install := DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends

# Debian's npm does not go with a node from elsewhere, so only what is absent is installed.
browser:  ## make sure of the Chromium that drives the pages in the tests and of the audit of their accessibility
	@absent="$(call absent,chromium npm)"; test -z "$$absent" || (apt-get update -qq && $(install) $$absent)
	npm install --prefix build --no-save --no-audit --no-fund --loglevel=error $(AXE)

cluster:  ## make sure of the SLURM and the false clock that the tests of runs use
	@test -z "$(call absent,slurmctld slurmd munged faketime)" || (apt-get update -qq && \
	$(install) slurmctld slurmd slurm-client munge faketime procps)

# Two test workers share two cores; BLAS threads of their own would only wait for each other.
test test-ci test-slow campaigns: export OMP_NUM_THREADS := 1
test test-ci test-slow campaigns: export OPENBLAS_NUM_THREADS := 1
# Where it is set, every command that a test starts would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

test: $(VENV)/.installed-encode  ## run the tests of every room (some minutes)
	$(PY) -m pytest -rs -n 2 --dist worksteal -m "not slow and not ci"

test-ci: $(VENV)/.installed-encode docs  ## run the tests of the docs, and those that need a browser, SLURM or a second user
	$(PY) -m pytest -rs -n 2 --dist worksteal -m "ci and not slow"

test-slow: $(VENV)/.installed-encode  ## run the tests that take minutes
	$(PY) -m pytest -m slow

campaigns: $(VENV)/.installed-encode  ## corruptions, made-up inputs, mutants of the code, and kills (KSHOT_KILLS says how many)
	$(PY) -m pytest -s tests/campaigns tests/bench/test_kills.py -k "corruption or fuzz or two_drivers or mutants"

# $(1) is the folder, $(2) a Python, $(3) what pip is told besides.
define in-an-environment
rm -rf build/$(1) build/records && mkdir -p build && $(2) -m venv build/$(1)
build/$(1)/bin/python -m pip install --quiet --disable-pip-version-check $(3) . $(TESTS_NEED)
cd build && $(1)/bin/kshot run embedded --report
build/$(1)/bin/python -m pytest -p no:cacheprovider $(NUMBERS)
endef

lowest:  ## the embedded study and the rooms of numbers with the lowest versions that pyproject allows
	mkdir -p build && sed -n '/^dependencies/,/^]/s/.*"\(.*\)>=\(.*\)",/\1==\2/p' pyproject.toml > build/lowest.txt
	$(call in-an-environment,lowest,$(BASE_PYTHON),--constraint build/lowest.txt)

pythons:  ## the same with every Python that pyenv has, and the newest versions
	for python in $$(ls $$HOME/.pyenv/versions/3.1[1-4].*/bin/python3); do $(MAKE) one-python PYTHON=$$python || exit 1; done

one-python:
	$(call in-an-environment,python,$(PYTHON))

lint: $(VENV)/.installed  ## style of the code
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/.installed-encode  ## static types
	$(VENV)/bin/pyright

contracts: $(VENV)/.installed  ## which room may import which
	$(VENV)/bin/lint-imports

unused: $(VENV)/.installed  ## code that nothing calls
	$(PY) tools/unused.py

names: $(VENV)/.installed  ## names that stand for two things
	$(PY) tools/names.py

check: test browser cluster lint types contracts unused names dist docs bench test-ci  ## everything that CI runs

docs: $(VENV)/.installed-encode  ## the site in build/site: every link is checked, the notebook is run
	$(PY) -m sphinx --quiet --fail-on-warning --keep-going docs build/site

dist: $(VENV)/.installed  ## sdist and wheel in dist, checked
	rm -rf dist
	$(PY) -m build --no-isolation --outdir dist .
	$(PY) -m twine check --strict dist/*

readme: $(VENV)/.installed  ## put the findings of the kept records into the README
	$(PY) -m tools.update_readme

open: $(VENV)/.installed  ## run the open benchmark (some 20 minutes) and keep its report in docs/open
	$(KSHOT) run open --records docs/open/records
	$(KSHOT) report open --records docs/open/records --headroom --output build/open
	sed '/^!\[/d' build/open/report.md > docs/open/report.md
	cp build/open/figures/accuracy_by_shots.png build/open/figures/bars.png docs/open

clip-features: $(VENV)/.installed  ## import the eight real CLIP sets of ../shared
	$(KSHOT) import $(SHARED)/real/caltech101_vitb16.npz --dataset caltech101 --backbone ViT-B-16 \
	  --pool train_x,train_y --val val_x,val_y --test test_x,test_y --classes classnames \
	  --text text=text --text text-alt=text_alt --origin "images oz-e/applied-ml, text zzeoZheng/HiCroPL"
	$(KSHOT) import $(SHARED)/real/fgvc_aircraft_vitb16.npz --dataset fgvc-aircraft --backbone ViT-B-16 \
	  --pool train_x,train_y --test test_x,test_y --text text=text \
	  --origin "images cvl-umass/GTA-CLIP, text zzeoZheng/HiCroPL"
	$(KSHOT) import $(SHARED)/real/food101_vitb16.npz --dataset food101 --backbone ViT-B-16 \
	  --pool train_x,train_y --test test_x,test_y --text text=text \
	  --origin "images oz-e/applied-ml, text zzeoZheng/HiCroPL"
	$(KSHOT) import $(SHARED)/real/stanford_cars_vitb32.npz --dataset stanford-cars --backbone ViT-B-32 \
	  --pool train16_x,train16_y --test eval_x,eval_y --classes names --text text=text
	$(KSHOT) import $(SHARED)/real/ucf101_vitb16.npz --dataset ucf101 --backbone ViT-B-16 \
	  --pool train_x,train_y --val val_x,val_y --test test_x,test_y --classes classnames \
	  --text text=text --origin "images oz-e/applied-ml, text zzeoZheng/HiCroPL"
	$(KSHOT) import $(SHARED)/real/dtd_vitb16.npz --dataset dtd --backbone ViT-B-16 \
	  --pool train_x,train_y --test test_x,test_y --classes classnames --text text=text \
	  --origin "images oz-e/applied-ml, text zzeoZheng/HiCroPL"
	$(KSHOT) import $(SHARED)/real/imagenet_vitb32.npz --dataset imagenet --backbone ViT-B-32 \
	  --pool train_x,train_y --test test_x,test_y --classes classnames \
	  --text text=text --text text-alt=text_alt --origin "images bunnieslala/IMAS, text rotem154154/clip_lt"

	for file in clip_rn50=RN50 clip_vitb32=ViT-B-32 clip_vitl14=ViT-L-14 georsclip_vitb32=GeoRSCLIP-B-32 \
	  skyclip50_vitb32=SkyCLIP-B-32 remoteclip_vitb32=RemoteCLIP-B-32; do \
	  $(KSHOT) import $(SHARED)/real/whurs19/whurs19_$${file%%=*}.npz --dataset whu-rs19 --backbone $${file##*=} \
	    --all x,y --classes class_names --text text=texts --logit-scale 100 \
	    --origin elkhouryk/RS-TransCLIP@a766b4d || exit; \
	done

clip: clip-features  ## run the real CLIP study (some hours) and keep its report in docs/clip
	$(KSHOT) run clip --records docs/clip/records
	$(KSHOT) report clip --records docs/clip/records --output build/clip
	sed '/^!\[/d' build/clip/report.md > docs/clip/report.md
	cp build/clip/figures/bars.png build/clip/figures/text_strength.png docs/clip
	$(PY) -m tools.update_clip

benchmarks: $(VENV)/.installed-encode  ## speed, as ratios against named baselines
	$(PY) -m benchmarks

clean:  ## forget the environment and everything computed
	rm -rf $(VENV) build dist features records
