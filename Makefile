# Kittiwake. 'make help' lists what there is to make.
CARGO   ?= cargo
PROFILE ?= release
ifeq ($(PROFILE),checked)
export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/scripts/rustc-for-tests
endif
PREFIX  ?= /usr/local
DESTDIR ?=
RANKS   ?= 4
CASES   ?= 100000

ARCH    ?= $(shell uname -m)
# A version of the GNU C library: what is built runs on systems with that and later ones ('make wheel' sets it).
GLIBC   ?=
# For musl, the C library of Alpine, when it is yes.
MUSL    ?=
# The oldest one that wheels are for: RHEL 8, Debian 10, Ubuntu 20.04.
OLDEST  := 2.28

HERE    := $(shell uname -m)
FOREIGN := $(filter-out $(HERE),$(ARCH))
# Rust's name of what is built for; none: this machine, as it is.
TARGET  := $(if $(GLIBC)$(MUSL)$(FOREIGN),$(ARCH:riscv64=riscv64gc)-unknown-linux-$(if $(MUSL),musl,gnu))
# What older C libraries, and musl, are linked with.
OTHER   := $(CURDIR)/build/$(if $(MUSL),musl,glibc-$(or $(GLIBC),$(OLDEST)))-$(ARCH)
LINKER  := $(if $(GLIBC)$(MUSL),$(OTHER)/cc,$(if $(FOREIGN),$(ARCH)-linux-gnu-gcc))
# Links with that, and runs what was built for another architecture on an emulator.
FOR     := CARGO_TARGET_$(shell echo $(TARGET) | tr a-z- A-Z_)
LINKED  := $(if $(TARGET),CC=$(LINKER) $(FOR)_LINKER=$(LINKER)) $(if $(MUSL),$(FOR)_RUSTFLAGS="-C target-feature=-crt-static") \
	$(if $(FOREIGN),RUN="qemu-$(ARCH) -L /usr/$(ARCH)-linux-gnu" FC=$(ARCH)-linux-gnu-gfortran)
STRIP   := $(if $(FOREIGN),$(ARCH)-linux-gnu-)strip
# Each target has a directory of its own: what is compiled for this machine depends on its linker's setting, which differs, and
# a build for one target after the other would compile everything anew.
OWN     := $(if $(TARGET),--target $(TARGET) --target-dir target/$(TARGET))
BUILD   := target/$(if $(TARGET),$(TARGET)/$(TARGET)/)$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
SMALL   := $(filter packed,$(PROFILE))
LIBRARIES := $(addprefix -p kw-,abi fortran mpich-abi mpich-fortran openmpi-abi openmpi-fortran audit profile apigen)
COMMANDS  := -p kw-commands
TOOLS   := build/wheel-tools
PYTHON  ?= $(TOOLS)/bin/python
NAMED   := $(if $(FOREIGN),-$(ARCH))$(if $(MUSL),-musl)
WHEELS  ?= build/wheel$(NAMED)
PACKED  := $(CURDIR)/build/packed/$(ARCH)$(if $(MUSL),-musl)
DIST  := $(CURDIR)/dist
VENV  := build/venv

.PHONY: all help build stage install wheel packed packed-wheel wheel-tools sdist packages check-aarch64 check-riscv64 deb demo apps pstswm-picture trace-pictures format check check-all check-fast hang-alarms slurm bench flood forms machines loom fuzz honesty mpi4py peer-skips petsc scalapack storage debian clean

all: build

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' Makefile | expand -t 10
	@echo "Variables: PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) PROFILE=$(PROFILE) (release, quick, or checked, which the tests use) RANKS=$(RANKS)"

build: ## builds library and commands
	$(LINKED) $(CARGO) build --profile $(PROFILE) $(OWN) $(LIBRARIES) $(if $(SMALL),,$(COMMANDS))
	$(if $(SMALL),$(LINKED) $(CARGO) build --profile small $(OWN) $(COMMANDS))
	$(if $(SMALL),cp -pf $(dir $(BUILD))small/kittiwake $(BUILD)/)
	$(LINKED) scripts/link-abi-shim $(BUILD) mpich
	$(LINKED) scripts/link-abi-shim $(BUILD) openmpi
	$(LINKED) scripts/link-fortran $(BUILD)

stage: build ## builds, and installs into dist/
	$(LINKED) scripts/install-tree $(BUILD) $(DIST)

install: ## installs what 'make' has built into PREFIX (under DESTDIR)
	scripts/install-tree $(BUILD) $(PREFIX) $(DESTDIR)

wheel: wheel-tools ## packs library and commands for pip, in build/wheel: for systems with glibc 2.28 and later (ARCH=aarch64: for ARM, in build/wheel-aarch64; MUSL=yes: for Alpine, in build/wheel-musl)
	rm -rf $(WHEELS)
	$(MAKE) packed-wheel PYTHON=$(TOOLS)/bin/python
	@echo "pip install $$(ls $(WHEELS)/*.whl)"

packed: # what packages hold, in $(PACKED), by the names of an older C library; PYTHON has what scripts/wheel-tools.txt lists
	ZIG="$(PYTHON) -m ziglang" $(if $(MUSL),scripts/for-musl,scripts/older-glibc $(OLDEST)) $(ARCH) $(OTHER)
	$(MAKE) stage PROFILE=packed $(if $(MUSL),,GLIBC=$(OLDEST)) DIST=$(PACKED)

packed-wheel: packed
	CC=$(OTHER)/cc STRIP=$(STRIP) scripts/make-wheel $(PACKED) $(WHEELS) $(PYTHON)

wheel-tools: # the packages that wheels are made with
	python3 -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install -q --disable-pip-version-check -r scripts/wheel-tools.txt

check-aarch64: wheel-tools ## tests what packages hold on an emulated ARM processor (Debian: gcc-aarch64-linux-gnu, gfortran-aarch64-linux-gnu, qemu-user; an hour; STEPS=c: a part)
	scripts/install-deps - emulated
	rustup target add aarch64-unknown-linux-gnu
	$(MAKE) packed ARCH=$(HERE)
	$(MAKE) packed ARCH=aarch64
	scripts/check-aarch64 build/packed/aarch64 build/packed/$(HERE) $(STEPS)

check-riscv64: ## builds and links all of it for riscv64, and runs ranks on an emulated processor (Debian: gcc-riscv64-linux-gnu, qemu-user)
	scripts/install-deps - riscv64
	rustup target add riscv64gc-unknown-linux-gnu
	$(MAKE) stage ARCH=riscv64 PROFILE=dev DIST=$(CURDIR)/build/riscv64
	scripts/check-riscv64 build/riscv64

sdist: ## packs the sources for pip, in build/sdist
	rm -rf build/sdist && mkdir -p build/sdist
	cd packaging && python3 -c 'import backend; print(backend.build_sdist("../build/sdist"))'

packages: wheel sdist ## makes wheels, archive of the sources and packages for Debian, and tries each where it belongs (as root: in Debian 11, 12, 13)
	scripts/install-deps - packages || echo "what is missing is skipped"
	rm -rf build/deb
	scripts/make-deb $(PACKED) build/deb
	scripts/other-packages
	scripts/try-packages build/wheel build/sdist build/deb

deb: stage ## packs what stage installs for Debian and its kin, in build/deb
	rm -rf build/deb
	scripts/make-deb $(DIST) build/deb
	@echo "sudo apt install ./$$(ls build/deb/*.deb)"

demo: ## installs what is missing, builds, runs the heat equation on RANKS ranks, draws build/heat2d.png
	scripts/install-deps $(VENV)
	$(MAKE) stage
	mkdir -p build
	$(DIST)/bin/mpicc -O2 -o build/heat2d examples/heat2d.c -lm
	$(DIST)/bin/mpiexec -n $(RANKS) build/heat2d build/heat2d.dat
	$(VENV)/bin/python examples/heat2d_plot.py build/heat2d.dat build/heat2d.png
	@echo "The temperature field is in build/heat2d.png; $(VENV)/bin/kwlab run quick measures, docs/ says more"

apps: ## builds, and builds the programs of apps/ into build/apps: the NAS kernels, PSTSWM
	scripts/install-deps - fortran
	$(MAKE) stage
	MPIFC=$(DIST)/bin/mpifort MPICC=$(DIST)/bin/mpicc apps/build apps/nas build/apps
	MPIFC=$(DIST)/bin/mpifort MPICC=$(DIST)/bin/mpicc FLAGS="$${FLAGS:--O3 -g -march=native}" apps/build apps/pstswm build/apps

format: ## formats Rust (cargo fmt) and Python (ruff), as the check wants them
	CARGO="$(CARGO)" VENV=$(VENV) scripts/format

check: ## every kind of test, quick ones first (about a quarter of an hour on two cores)
	scripts/check

check-all: ## the same with all that repeats a test on more ranks, over more paths or for longer, on the library as it is released
	scripts/check --all

check-fast: ## what is worth knowing after an edit: format, arrows, lint, unit tests, C tests of few ranks over shared memory
	scripts/check --fast

hang-alarms: stage ## the C tests with KW_HANG=0.2: no deadlock may be claimed
	KW_CALIBRATE=no tests/run-c --hang 0.2 --paths self,shm,tcp --paths self,tcp

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

loom: ## model checks of the concurrent parts, whole ('make check' gives each model 3 s)
	env -u RUSTC_WORKSPACE_WRAPPER RUSTFLAGS="--cfg loom" $(CARGO) test --profile loom --target-dir target/loom -p kw-coll -p kw-sys -p kw-path -p kw-engine --lib loom

miri: ## checks unsafe code that makes no system calls for undefined behaviour (a minute or two; wants a nightly Rust with miri)
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks" PROPTEST_CASES=2 $(CARGO) +nightly miri test --target-dir target/miri -p kw-base --lib
	MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks" $(CARGO) +nightly miri test --target-dir target/miri -p kw-profile --lib trace

fuzz: ## feeds what reads bytes of others CASES damaged inputs each (100000); a failure prints its input and keeps its seed
	PROPTEST_CASES=$(CASES) $(CARGO) test --workspace fuzz_

mpi4py: stage ## mpi4py's own tests, whole: on 1, 2, 3, 4 and 8 processes (10 minutes)
	tests/mpi4py/run --whole

honesty: stage ## has the laboratory compare this library with itself, and with 5 % more work, on the machine as it is
	scripts/install-deps $(VENV)
	$(VENV)/bin/python -m pytest -q -p no:cacheprovider -m machine lab/tests/test_honesty.py

forms: ## holds the closed forms of collectives against the simulator: every number of ranks to 64, and every root with two sizes (some minutes)
	$(CARGO) run --profile $(PROFILE) -q -p kw-commands -- --as kwsim forms --to 64 --sizes 8,256,2048,32768,1048576
	$(CARGO) run --profile $(PROFILE) -q -p kw-commands -- --as kwsim forms --to 64 --roots --sizes 4096,262144
	for ranks in 1 2 4 8; do $(CARGO) run --profile $(PROFILE) -q -p kw-commands -- --as kwsim forms --to 64 --per-host $$ranks --machine 16-hosts || exit; done
	for name in 64-cores 64-cores-8-caches; do $(CARGO) run --profile $(PROFILE) -q -p kw-commands -- --as kwsim forms --to 64 --domains --machine $$name || exit; done

machines: ## what is chosen on every machine that is described against the best of all algorithms, in all sizes: how many calls are beyond a tenth (some minutes)
	$(CARGO) run --profile $(PROFILE) -q -p kw-commands -- --as kwsim machine --summary

petsc: stage ## builds PETSc with our compilers and runs its Fortran examples (30 minutes)
	scripts/install-deps - petsc
	tests/pytest tests/petsc/petsc.py

debian: stage ## programs of Debian's packages, as they come: the same results as under their own MPI (two gigabytes, 25 minutes)
	CLIENTS=all tests/pytest tests/debian

pstswm-picture: apps ## runs PSTSWM on RANKS ranks and draws the Rossby-Haurwitz wave, build/pstswm.png
	scripts/install-deps $(VENV)
	$(VENV)/bin/python apps/pstswm/picture.py $(DIST)/bin/mpiexec $(RANKS) build/apps/pstswm build/pstswm.png

trace-pictures: apps ## records PSTSWM on four pretended hosts and draws its time lines, build/pictures (as root, with chromium)
	scripts/install-deps $(VENV)
	PATH="$(DIST)/bin:$$PATH" scripts/trace-pictures build/pictures $(VENV)/bin/python

scalapack: stage ## builds ScaLAPACK (Debian's source, or SCALAPACK=DIR) with our compilers and runs its testers on 4 ranks (10 minutes)
	scripts/install-deps - scalapack
	SCALAPACK="$(SCALAPACK)" tests/pytest tests/scalapack/scalapack.py

storage: stage ## builds HDF5, PnetCDF and netCDF (Debian's sources, or HDF5=DIR, PNETCDF=DIR, NETCDF=DIR) and IOR (IOR=DIR) with our compilers and runs their parallel tests (an hour)
	scripts/install-deps - storage
	HDF5="$(HDF5)" PNETCDF="$(PNETCDF)" NETCDF="$(NETCDF)" IOR="$(IOR)" FUSE_NFS="$(FUSE_NFS)" tests/pytest tests/storage/suites.py

peer-skips: ## records which of mpi4py's tests MPICH skips (needs a check of mpi4py before)
	tests/mpi4py/peer-skips

clean: ## removes what was made here
	$(CARGO) clean
	rm -rf build dist
