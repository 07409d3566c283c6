# Kittiwake. 'make help' lists what there is to make.
CARGO   ?= cargo
PROFILE ?= release
PREFIX  ?= /usr/local
DESTDIR ?=
RANKS   ?= 4
CASES   ?= 100000

BUILD := target/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
DIST  := $(CURDIR)/dist
VENV  := build/venv

.PHONY: all help build stage install demo check check-fast slurm bench flood loom fuzz peer-skips petsc clean

all: build

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 10
	@echo "Variables: PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) PROFILE=$(PROFILE) (release, or quick to build) RANKS=$(RANKS)"

build: ## builds library and commands
	$(CARGO) build --profile $(PROFILE) -p kw-abi -p kw-fortran -p kw-launch -p kw-sim -p kw-apigen
	scripts/link-fortran $(BUILD)

stage: build ## builds, and installs into dist/
	scripts/install-tree $(BUILD) $(DIST)

install: ## installs what 'make' has built into PREFIX (under DESTDIR)
	scripts/install-tree $(BUILD) $(PREFIX) $(DESTDIR)

demo: ## installs what is missing, builds, runs the heat equation on RANKS ranks, draws build/heat2d.png
	scripts/install-deps $(VENV)
	$(MAKE) stage
	mkdir -p build
	$(DIST)/bin/mpicc -O2 -o build/heat2d examples/heat2d.c -lm
	$(DIST)/bin/mpiexec -n $(RANKS) build/heat2d build/heat2d.dat
	$(VENV)/bin/python examples/heat2d_plot.py build/heat2d.dat build/heat2d.png
	@echo "The temperature field is in build/heat2d.png; $(VENV)/bin/kwlab run quick measures, docs/ says more"

check: ## every test, quick ones first
	scripts/check

check-fast: ## what is worth knowing after an edit: format, arrows, lint, unit tests, C tests of few ranks over shared memory
	scripts/check --fast

slurm: stage ## tests under Slurm: three emulated nodes on this machine (as root; installs Debian's packages)
	scripts/install-deps - slurm
	NEED_SLURM=1 scripts/check slurm

bench: stage ## measures what docs/benchmarks.md tells, with the peers that are there ('kwlab page' then writes it)
	scripts/install-deps $(VENV)
	$(VENV)/bin/kwlab run page
	$(VENV)/bin/kwlab show page

flood: stage ## ten million messages that nobody has asked for: how the receiver's memory grows
	scripts/install-deps $(VENV)
	$(VENV)/bin/kwlab run flood
	$(VENV)/bin/kwlab show flood

loom: ## model checks of the concurrent parts, whole ('make check' gives each model 20 s)
	RUSTFLAGS="--cfg loom" $(CARGO) test --release --target-dir target/loom -p kw-coll -p kw-sys -p kw-path -p kw-engine --lib loom

fuzz: ## feeds what reads bytes of others CASES damaged inputs each (100000); a failure prints its input and keeps its seed
	PROPTEST_CASES=$(CASES) $(CARGO) test --workspace fuzz_

petsc: stage ## builds PETSc with our compilers and runs its Fortran examples (needs a check's environment; 30 minutes)
	scripts/install-deps - petsc
	tests/pytest tests/petsc/petsc.py

peer-skips: ## records which of mpi4py's tests MPICH skips (needs a check of mpi4py before)
	tests/mpi4py/peer-skips

clean: ## removes what was made here
	$(CARGO) clean
	rm -rf build dist
