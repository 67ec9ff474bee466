# nearfield: the front door. `make help` lists what there is; the rules stand in the parts that are
# included below, each beside what it builds.
#
# Everything is built under build/; `make clean` removes it. tests/deps.sh installs what is missing,
# through apt-get where that is possible; else one sentence says what to install.
# Variables you may set: CC CFLAGS CXX NVCC CUDA_ARCH JOBS CI FULL; where pkg-config does not know
# a package: STB_CFLAGS STB_LIBS CMOCKA_CFLAGS CMOCKA_LIBS ASSIMP_CFLAGS ASSIMP_LIBS SDL_CFLAGS
# SDL_LIBS

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all deps clean always deps-demo deps-pick deps-test deps-figures

export JOBS ?= 2
# make test-all FULL=1: also the self-checks (is a planted fault found?), doubles without
# sanitizers, MemorySanitizer, more compilers, standards and architectures.
export FULL ?=
CFLAGS ?= -O2
WARN := -Wall -Wextra -Wpedantic
STB_CFLAGS = $$(pkg-config --cflags stb)
STB_LIBS = $$(pkg-config --libs stb)
CMOCKA_CFLAGS = $$(pkg-config --cflags cmocka)
CMOCKA_LIBS = $$(pkg-config --libs cmocka)

# Optional compilers: empty where there is none.
ifndef NVCC
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) \
    $(wildcard /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc))
endif
ifndef MPICC
MPICC := $(shell command -v mpicc 2>/dev/null)
endif
GPU := $(shell nvidia-smi -L 2>/dev/null | grep '^GPU')

# Every program is rebuilt when any header changes.
SOURCES := $(wildcard *.h more/*.h more/*.hpp cuda/*.cu cuda/*.h tests/common/*.h tests/cuda/*.h \
    tests/bench/*.h examples/*/*.h)

# The program of an example has the name of its folder.
EXAMPLE_NAMES := $(notdir $(patsubst %/,%,$(wildcard examples/*/)))
EXAMPLE_SOURCES := $(wildcard $(foreach n,$(EXAMPLE_NAMES),examples/$n/$n.c))
EXAMPLE_KERNELS := $(wildcard $(foreach n,$(EXAMPLE_NAMES),examples/$n/$n.cu))

help:
	@echo 'make demo         run the dam break (serial, about 20 seconds) and draw pictures'
	@echo 'make test         what a change needs: five minutes on two cores, without a GPU'
	@echo 'make test-all     everything that this machine can run (FULL=1: longer)'
	@echo 'make bench        measure the serial part'
	@echo 'make bench-cuda   measure the CUDA part (needs a GPU)'
	@echo 'make cuda         build GPU tests, benchmarks and examples into build/cuda,'
	@echo '                  a folder to carry to a machine with a GPU; there: sh run.sh'
	@echo 'make figures      measure what the sources plotted, and draw it into build/figures'
	@echo '                  (DATA=folder: measured elsewhere; RESULTS=folder: draw into it)'
	@echo 'make web          scenes, and how it works, for a browser: build/web (emscripten)'
	@echo 'make site         docs, API reference and gallery as a site: build/site/html'
	@echo 'make engine       the broad phase of Chipmunk2D, beside its own: build/chipmunk_scenes'
	@echo 'make mpi          spheres on several ranks: build/mpi_slabs, build/mpi_slabs_gpu'
	@echo 'make shared       build/libnearfield.so for Python (make shared-cuda: its GPU half)'
	@echo 'make fortran      the module for Fortran, and a Lennard-Jones liquid: build/fortran'
	@echo 'make single       each header and its parts in one file: build/single'
	@echo 'make wheel        the Python package: build/wheels (make wheel-cuda: its GPU half)'
	@echo 'make fuzz         fuzz each header for MINUTES=10'
	@echo 'make soak         a drum and a dam for MINUTES=30, while their lists change at random'
	@echo 'make portability  the promised bits on s390x, ARM, 32-bit x86, Windows, WebAssembly'
	@echo 'make mutation     what do the tests notice of MUTANTS=60 changes to each header? (hours)'
	@echo 'make deps         install everything that the tests can use, optional compilers too'
	@echo 'make clean        remove build/'
	@echo 'The parts of make test:     $(QUICK_GROUPS)'
	@echo 'The parts of make test-all: $(ALL_GROUPS)'

deps:
	@tests/deps.sh all
deps-demo deps-pick deps-test deps-figures: deps-%:
	@tests/deps.sh $*

# Groups of tests, those first that take longest. tests/README.md says what each is for.
QUICK_GROUPS := quick-emu quick-unit quick-readme quick-headers test-style test-run-all
ALL_GROUPS := test-emu test-unit test-vendor test-examples test-flags test-fuzz consumers \
    test-cpp test-python test-readme test-cuda test-packages test-portability test-compilers \
    test-figures test-run-all

# Two groups at a time, also after a failure, and one sum at the end.
test: deps-test
	@MAKE='$(MAKE)' DEPS_DONE=1 tests/run_all.sh quick-prepared $(QUICK_GROUPS)
test-all: deps-test
	@MAKE='$(MAKE)' DEPS_DONE=1 tests/run_all.sh test-prepared $(ALL_GROUPS)

include tests/unit/unit.mk
include tests/emu/emu.mk
include tests/bench/bench.mk
include tests/cuda/cuda.mk
include examples/examples.mk
include tests/quality/quality.mk

demo: build/dam_break
	@mkdir -p build/demo
	@build/dam_break --demo
	@echo 'The pictures are in build/demo'

# What several groups need, before two of them make it at once.
.PHONY: quick-prepared test-prepared
quick-prepared: deps-test $(ON_CPU)
test-prepared: deps-test $(LINKED_EXAMPLES) $(ON_CPU) $(HEADERS_ON_CPU)

clean:
	rm -rf build
