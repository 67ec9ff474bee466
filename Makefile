# nearfield: the front door. `make help` lists what there is.
#
# Everything is built under build/; `make clean` removes it. What is missing is installed by
# tests/deps.sh through apt-get where that is possible, else one sentence says what to install.
# Variables you may set: CC CFLAGS CXX NVCC CUDA_ARCH JOBS CI STB_CFLAGS STB_LIBS CMOCKA_CFLAGS CMOCKA_LIBS
#                        ASSIMP_CFLAGS ASSIMP_LIBS SDL_CFLAGS SDL_LIBS (both empty: no window)

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test bench bench-cuda figures figures-programs cuda deps clean consumers \
        test-serial test-examples test-readme test-vendor test-emu test-cuda test-figures test-fuzz fuzz \
        deps-demo deps-pick deps-test deps-figures always

export JOBS ?= 2
# make test FULL=1: also what is left out to save time: can the checks fail (self-checks with planted faults); doubles
# without sanitizers, MSan, more of compilers, standards and nvcc, whole tests under sanitizers.
export FULL ?=
CFLAGS ?= -O2
WARN := -Wall -Wextra -Wpedantic
STB_CFLAGS = $$(pkg-config --cflags stb)
STB_LIBS = $$(pkg-config --libs stb)
ASSIMP_CFLAGS = $$(pkg-config --cflags assimp)
ASSIMP_LIBS = $$(pkg-config --libs assimp)
# Optional: empty where pkg-config knows no sdl2.
SDL_CFLAGS = $$(pkg-config --exists sdl2 && echo -DGALAXY_WINDOW $$(pkg-config --cflags sdl2))
SDL_LIBS = $$(pkg-config --exists sdl2 && pkg-config --libs sdl2)
CMOCKA_CFLAGS = $$(pkg-config --cflags cmocka)
CMOCKA_LIBS = $$(pkg-config --libs cmocka)
# Every program is rebuilt when any header changes.
SOURCES := $(wildcard *.h cuda/*.cu cuda/*.h tests/*.h tests/cuda/*.h tests/bench/*.h examples/*.h)

help:
	@echo 'make demo         run the dam break (serial, about 20 seconds) and draw pictures'
	@echo 'make test         all tests; GPU tests too where there is a GPU; FULL=1: with more compilers, types and sanitizers'
	@echo 'make bench        measure the serial part'
	@echo 'make bench-cuda   measure the CUDA part (needs a GPU)'
	@echo 'make web          four scenes for a browser, one file: build/web/nearfield.html (needs emscripten)'
	@echo 'make mpi          spheres on several ranks: build/mpi_slabs and, with nvcc, build/mpi_slabs_gpu (needs mpicc)'
	@echo 'make shared       build/libnearfield.so, for Python (make shared-cuda: for its GPU half)'
	@echo 'make figures      measure what the sources plotted, and draw it into build/figures; the GPU part where there is a GPU.'
	@echo '                  DATA=folder: draw what was measured elsewhere (there: sh run.sh figures); RESULTS=folder: draw into it'
	@echo 'make cuda         build GPU tests, benchmarks and examples into build/cuda,'
	@echo '                  a folder to carry to a machine with a GPU: sh run.sh'
	@echo 'make deps         install everything that the tests can use, optional compilers too'
	@echo 'make fuzz         fuzz each header for 10 minutes (MINUTES=60: longer); a short run is part of make test'
	@echo 'make test-serial test-flags test-fuzz test-examples test-readme test-vendor test-emu test-cuda test-figures test-python test-packages test-run-all consumers'
	@echo '                  the parts of make test (FULL=1: also test-compilers)'
	@echo 'make soak         a drum and a dam, 30 minutes each (MINUTES=1: quickly), while their lists change at random; memory must stay flat'
	@echo 'make portability  the promised bits on s390x, ARM, 32-bit x86, Windows and WebAssembly (make test-portability: a part of it)'
	@echo 'make mutation     changes the headers one operator at a time: what do the tests notice? (hours; MUTANTS=5: less)'
	@echo 'make clean        remove build/'

# ---- what has to be installed -------------------------------------------------------------------

deps:
	@tests/deps.sh all
deps-demo:
	@tests/deps.sh demo
deps-pick:
	@tests/deps.sh pick
deps-test:
	@tests/deps.sh test
deps-figures:
	@tests/deps.sh figures

# ---- examples: examples/NAME.c becomes build/NAME -----------------------------------------------

EXAMPLES := $(patsubst examples/%.c,build/%,$(wildcard examples/*.c))

# --as-needed: only the examples that draw are tied to libstb.
$(EXAMPLES): build/%: examples/%.c $(SOURCES) | deps-demo
	@mkdir -p build
	$(CC) -std=c99 -O3 $(WARN) $(CPPFLAGS) -I. $(STB_CFLAGS) $(OWN_CFLAGS) $< -o $@ \
	    -Wl,--as-needed $(LDFLAGS) $(STB_LIBS) $(OWN_LIBS) -lm

# The one that reads meshes needs assimp, and only that one.
build/pick: OWN_CFLAGS = $(ASSIMP_CFLAGS)
build/pick: OWN_LIBS = $(ASSIMP_LIBS)
build/pick: | deps-pick

# Those that can show a window.
build/galaxy: OWN_CFLAGS = $(SDL_CFLAGS)
build/boids: OWN_CFLAGS = $(subst GALAXY,BOIDS,$(SDL_CFLAGS))
build/galaxy build/boids: OWN_LIBS = $(SDL_LIBS)

# The serial headers in a browser: one file, which needs no server. (NODE_PATH: where Debian has the modules of its emscripten, for a
# node that is not Debian's. -msse2: emscripten makes WebAssembly's vectors of it, and nbody.h runs four times as fast.)
EMCC ?= emcc
WEB_FLAGS := -msimd128 -msse2 -sSINGLE_FILE=1 -sENVIRONMENT=web -sALLOW_MEMORY_GROWTH=1 -sTOTAL_STACK=1MB \
    -sEXPORTED_RUNTIME_METHODS=UTF8ToString -sMINIFY_HTML=0
.PHONY: web
web: build/web/nearfield.html
	@echo 'open $<'
build/web/nearfield.html: examples/web/nearfield.c examples/web/page.html $(SOURCES)
	@mkdir -p build/web
	NODE_PATH=$${NODE_PATH:-/usr/share/nodejs} $(EMCC) -std=c99 -O3 $(WARN) -I. $(WEB_FLAGS) --shell-file examples/web/page.html $< -o $@

demo: build/dam_break
	@mkdir -p build/demo
	@build/dam_break --demo
	@echo 'The pictures are in build/demo'

# ---- tests ----------------------------------------------------------------------------------------

# Two groups at a time, also after a failure, and one sum at the end.
test: deps-test
	@MAKE='$(MAKE)' DEPS_DONE=1 tests/run_all.sh

.PHONY: test-run-all
# Does a run of all tests end with the names of what failed?
test-run-all:
	@tests/test_run_all.sh

# Each tests/test_NAME.c plain, with the sanitizers, and, those of the numbers, with both the sanitizers and doubles; FULL=1: all of them so,
# and with doubles alone.
SERIAL := $(patsubst tests/%.c,%,$(wildcard tests/test_*.c))
SERIAL_ONCE := test_faults test_floats test_threads test_verify
SERIAL_PROGRAMS := $(foreach t,$(SERIAL),$(addprefix build/tests/$t,.plain .sanitized \
    $(if $(FULL),.double-sanitized .double,$(if $(filter $t,$(SERIAL_ONCE)),,.double-sanitized))))
# -g1: lines and functions, which is what reports show. It compiles in two thirds of the time of -g.
SANITIZE := -Og -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
DOUBLE := -DUGRID_REAL=double -DLBVH_REAL=double -DNLIST_REAL=double -DNBODY_REAL=double

build/tests/%.plain: VARIANT := -O2 -g1
build/tests/%.sanitized: VARIANT := $(SANITIZE)
build/tests/%.double: VARIANT := -O2 -g1 $(DOUBLE)
build/tests/%.double-sanitized: VARIANT := $(SANITIZE) $(DOUBLE)

define SERIAL_RULE
$(foreach variant,plain sanitized double double-sanitized,build/tests/$1.$(variant)): tests/$1.c $(SOURCES) | deps-test
	@mkdir -p build/tests
	$$(CC) -std=c99 $$(WARN) $$(VARIANT) $$(CPPFLAGS) -I. $$(CMOCKA_CFLAGS) $$(STB_CFLAGS) $$< -o $$@ \
	    -Wl,--as-needed $$(LDFLAGS) $$(CMOCKA_LIBS) $$(STB_LIBS) -lm -lpthread
endef
$(foreach t,$(SERIAL),$(eval $(call SERIAL_RULE,$t)))

test-serial: $(SERIAL_PROGRAMS)
	@tests/run_programs.sh $(SERIAL_PROGRAMS)

# Is each header fit to be copied into another program? FULL=1: and can that check fail?
test-vendor: deps-test
	@export NVCC='$(NVCC)'; status=0; \
	$(if $(FULL),tests/vendor/run.sh --self-check || status=1;) tests/vendor/run.sh || status=1; exit $$status

# Any bytes become descs, points and calls, and the answers are compared with brute force. Some thousand inputs each, after the corpus.
test-fuzz: deps-test
	@tests/fuzz/run.sh

# Does the short run find planted bugs? Then the long run.
MINUTES ?= 10
fuzz: deps-test
	@status=0; tests/fuzz/run.sh --self-check || status=1; tests/fuzz/run.sh --long $(MINUTES) || status=1; exit $$status

.PHONY: test-flags
# Other compilers and levels of optimization, threads under ThreadSanitizer. And can the check of what is refused fail?
test-flags: deps-test
	@status=0; tests/test_flags.sh --self-check || status=1; tests/test_flags.sh || status=1; exit $$status

# Scenes that run for long while their lists change at random: are planted bugs found? Then MINUTES of each, 30 unless you say.
.PHONY: test-compilers
# MSVC's rules by clang, Windows, macOS and musl by zig (PyPI). A part of make test where FULL=1 or CI=true.
test-compilers: deps-test
	@status=0; $(if $(FULL),tests/test_compilers.sh --self-check || status=1;) tests/test_compilers.sh || status=1; exit $$status

.PHONY: soak
soak:
	@status=0; tests/soak/run.sh --self-check || status=1; \
	tests/soak/run.sh --minutes $(if $(filter file,$(origin MINUTES)),30,$(MINUTES)) || status=1; exit $$status

.PHONY: test-portability portability
# The promised bits on other processors, in emulators. FULL=1: and can that check fail? In full: all cases, more flags, and the serial tests.
test-portability: deps-test
	@status=0; $(if $(FULL),tests/portability/run.sh --self-check || status=1;) tests/portability/run.sh || status=1; exit $$status
portability: deps-test
	@tests/portability/run.sh --full

.PHONY: mutation
# Do the tests notice when a header is wrong? Some hours; MUTANTS=5: less. Not a part of make test.
MUTANTS ?= 60
mutation: deps-test
	@tests/mutation/run.sh --mutants $(MUTANTS)

# A small project of somebody else: copied file, add_subdirectory, installed, pkg-config.
consumers: deps-test
	@NVCC='$(NVCC)' tests/consumers/run.sh

.PHONY: test-packages
# Debian package, vcpkg port, Conan recipe, clib.json, one version everywhere. FULL=1: and can that check fail?
test-packages: deps-test
	@status=0; $(if $(FULL),tests/test_packages.sh --self-check || status=1;) tests/test_packages.sh || status=1; exit $$status

# The kernels, run on the CPU. The file sets EMU_TESTS, the targets that build and run them.
EMU_TESTS :=
-include tests/emu/emu.mk
test-emu: $(EMU_TESTS)
	@$(if $(strip $(EMU_TESTS)),true,echo 'skipped  kernels on the CPU: no EMU_TESTS'; echo '0 passed, 0 failed, 1 skipped')

# What follows can also run kernels on the CPU, under AddressSanitizer; without a C++ compiler this is empty.
ON_CPU := $(if $(EMU_MODES),$(EMU_OBJECT_asan))
CUDA_EXAMPLES_ON_CPU := $(if $(ON_CPU),$(patsubst examples/%.cu,build/emu/cuda_%.asan,$(if $(FULL),$(wildcard examples/*.cu),\
    $(addprefix examples/,boids.cu dam_break.cu drum.cu))))

$(CUDA_EXAMPLES_ON_CPU): build/emu/cuda_%.asan: examples/%.cu $(SOURCES) $(EMU_HEADERS) $(ON_CPU) | deps-test
	$(EMU_CXX) $(EMU_FLAGS) $(EMU_CUDA) $(EMU_SANITIZE_asan) $(STB_CFLAGS) $< -x none $(ON_CPU) -o $@ -Wl,--as-needed $(STB_LIBS)

# With MPI (Debian: libopenmpi-dev openmpi-bin), where there is a compiler for it; the kernels on the CPU, too. Else the test says "skipped".
# (mpicxx is the C++ compiler with what MPI needs; Open MPI and MPICH are told which one by these variables.)
ifndef MPICC
MPICC := $(shell command -v mpicc 2>/dev/null)
endif
MPICXX ?= $(patsubst %mpicc,%mpicxx,$(MPICC))
MPI_HEADERS := $(wildcard examples/mpi/*.h)
MPI_PROGRAMS := $(if $(MPICC),$(if $(ON_CPU),build/emu/cuda_mpi_slabs.asan) build/mpi_slabs)

build/mpi_slabs: examples/mpi/mpi_slabs.c $(MPI_HEADERS) $(SOURCES) | deps-demo
	@mkdir -p build
	$(MPICC) -std=c99 -O3 $(WARN) $(CPPFLAGS) $< -o $@ $(LDFLAGS) -lm

build/emu/cuda_mpi_slabs.asan: examples/mpi/mpi_slabs.cu $(MPI_HEADERS) $(SOURCES) $(EMU_HEADERS) $(ON_CPU) | deps-test
	OMPI_CXX='$(EMU_CXX)' MPICH_CXX='$(EMU_CXX)' $(MPICXX) $(EMU_FLAGS) $(EMU_CUDA) $(EMU_SANITIZE_asan) $< -x none $(ON_CPU) -o $@

test-examples: $(EXAMPLES) $(CUDA_EXAMPLES_ON_CPU) $(MPI_PROGRAMS)
	@status=0; tests/run_examples.sh $(CUDA_EXAMPLES_ON_CPU) $(MPI_PROGRAMS) $(EXAMPLES) || status=1; \
	$(if $(MPICC),$(if $(FULL),tests/test_mpi_slabs.sh --self-check || status=1;),tests/test_mpi_slabs.sh || status=1;) \
	MAKE='$(MAKE)' tests/test_web.sh || status=1; exit $$status

# The programs in README.md, docs/ and in the header's comment. FULL=1: and can that check fail?
test-readme: deps-test $(ON_CPU)
	@export NVCC='$(NVCC)' GPU='$(GPU)'; status=0; \
	$(if $(ON_CPU),export EMU_CXX='$(EMU_CXX)' EMU_SANITIZE='$(EMU_SANITIZE_asan)' EMU_OBJECT='$(abspath $(ON_CPU))';) \
	$(if $(FULL),tests/test_readme.sh --self-check || status=1;) tests/test_readme.sh || status=1; exit $$status

# ---- CUDA -------------------------------------------------------------------------------------------

ifndef NVCC
NVCC := $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc))
endif
GPU := $(shell nvidia-smi -L 2>/dev/null | grep '^GPU')

# No architecture is written down anywhere: the GPU of this machine, or, where none can be seen
# (`native` would fail there), all that this nvcc knows by major version.
ifndef CUDA_ARCH
CUDA_ARCH := $(if $(GPU),native,all-major)
endif
CUDA_DIR ?= build/cuda
NVCCFLAGS ?= -O3 -lineinfo
# libstdc++ goes in, the shared libraries beside the program ($ORIGIN): the folder can be carried away.
NVCC_ALL = $(NVCC) -std=c++17 -arch=$(CUDA_ARCH) $(NVCCFLAGS) -cudart static -Xcompiler -Wall,-Wextra \
    -Xcompiler -static-libstdc++,-static-libgcc -I. $(CMOCKA_CFLAGS) $(STB_CFLAGS)
NVCC_LIBS = -Xlinker --as-needed,-rpath,'$$ORIGIN' $(CMOCKA_LIBS) $(STB_LIBS)

# For the GPUs of this machine: not a part of make cuda, since an MPI cannot be carried along.
.PHONY: mpi
mpi: build/mpi_slabs $(if $(NVCC),build/mpi_slabs_gpu)
build/mpi_slabs_gpu: examples/mpi/mpi_slabs.cu $(MPI_HEADERS) $(SOURCES) | deps-demo
	$(NVCC) -std=c++17 -arch=$(CUDA_ARCH) $(NVCCFLAGS) -ccbin $(MPICXX) $< -o $@

# For Python and whoever else loads libraries: all four headers in one, in float and double. For GPUs one library for each of the two.
.PHONY: shared shared-cuda test-python
shared: build/libnearfield.so
build/libnearfield.so: $(wildcard examples/python/*.c) $(SOURCES)
	@mkdir -p build
	$(CC) -std=c99 -O3 -ffp-contract=off $(WARN) $(CPPFLAGS) -shared -fPIC -I. $(filter %.c,$^) -o $@ $(LDFLAGS) -lm
shared-cuda: $(CUDA_DIR)/libnearfield_cuda.so $(CUDA_DIR)/libnearfield64_cuda.so
$(CUDA_DIR)/lib%_cuda.so: examples/python/%.cu examples/python/nearfield.c examples/python/nearfield.cu $(SOURCES) $(CUDA_DIR)/arch
	$(NVCC) -std=c++17 -arch=$(CUDA_ARCH) $(NVCCFLAGS) -cudart static -shared -Xcompiler -fPIC -I. $< -o $@

# From Python, against scipy, ASE and VTK (PyPI; skipped where they cannot be had). FULL=1: and can that check fail?
test-python: deps-test build/dam_break build/drum build/lbvh_steps
	@status=0; $(if $(FULL),tests/test_python.sh --self-check || status=1;) tests/test_python.sh || status=1; exit $$status

CUDA_SOURCES := $(wildcard tests/cuda/test_*.cu tests/bench/bench_*.cu examples/*.cu)
CUDA_PROGRAMS := $(foreach s,$(CUDA_SOURCES),$(CUDA_DIR)/$(basename $(notdir $s)))

define CUDA_RULE
$(CUDA_DIR)/$(basename $(notdir $1)): $1 $(SOURCES) $(CUDA_DIR)/arch | deps-test
	$$(NVCC_ALL) $$(OWN_CFLAGS) $$< -o $$@ $$(NVCC_LIBS) $$(OWN_LIBS)
endef
$(foreach s,$(CUDA_SOURCES),$(eval $(call CUDA_RULE,$s)))
# A window only where there is a GPU to run it: else the folder is carried to a machine that may not have SDL2.
$(CUDA_DIR)/galaxy: OWN_CFLAGS = $(if $(GPU),$(SDL_CFLAGS))
$(CUDA_DIR)/galaxy: OWN_LIBS = $(if $(GPU),$(SDL_LIBS))

# Changes only when the architecture or the flags do, and then everything is rebuilt.
$(CUDA_DIR)/arch: always
	@mkdir -p $(CUDA_DIR)
	@echo '$(NVCC) $(CUDA_ARCH) $(NVCCFLAGS)' | cmp -s - $@ || echo '$(NVCC) $(CUDA_ARCH) $(NVCCFLAGS)' >$@

BENCHES := $(patsubst tests/bench/%.c,build/bench/%,$(wildcard tests/bench/bench_*.c))

# What several groups of tests need.
.PHONY: test-prepared
test-prepared: deps-test $(EXAMPLES) $(BENCHES) $(ON_CPU)

ifeq ($(NVCC),)
cuda figures-programs:
	@echo 'make $@: no nvcc found (PATH, /usr/local/cuda*/bin, or set NVCC=...): install the CUDA toolkit'; false
test-cuda:
	@echo 'skipped  the CUDA parts: no nvcc'
	@echo '0 passed, 0 failed, 1 skipped'
else
# What `sh run.sh figures` needs: less than all. Serial programs go along.
FIGURE_PROGRAMS := $(addprefix $(CUDA_DIR)/,bench_ugrid bench_lbvh bench_nlist bench_nbody dam_break drum)
figures-programs: $(FIGURE_PROGRAMS) $(BENCHES) build/dam_break
	@mkdir -p $(CUDA_DIR)/cpu
	@cp tests/cuda/run.sh $(CUDA_DIR)/
	@cp tests/bench/figures/measure.sh $(CUDA_DIR)/figures.sh
	@cp $(BENCHES) build/dam_break $(CUDA_DIR)/cpu/
	@tests/cuda/carry_libraries.sh $(CUDA_DIR) $(FIGURE_PROGRAMS)
cuda: $(CUDA_PROGRAMS) figures-programs
	@tests/cuda/carry_libraries.sh $(CUDA_DIR) $(CUDA_PROGRAMS)
	@echo 'built for -arch=$(CUDA_ARCH) in $(CUDA_DIR): copy the folder to a machine with a GPU, there: sh run.sh'
ifneq ($(GPU),)
test-cuda: cuda
	@status=0; sh $(CUDA_DIR)/run.sh || status=1; \
	for example in $(basename $(notdir $(wildcard examples/*.cu))); do \
	    echo "$(CUDA_DIR)/$$example"; tests/test_$$example.sh $(CUDA_DIR)/$$example || status=1; done; exit $$status
else
# Without a GPU: does it all compile? One architecture is enough for that, the oldest, as PTX and not optimized (-G), in half the time
# (all headers become machine code in `make consumers`). The benchmarks become programs; of tests and examples the emulator has
# compiled what runs on the host, so that the kernels are enough. In full: make test-cuda CHECK_FLAGS='-O3 -lineinfo' CHECK_ARCH=sm_75
CHECK_DIR := build/cuda-check
CHECK_FLAGS ?= -G
CHECK_ARCH ?= $(shell $(NVCC) --list-gpu-arch | head -n 1)
CHECK_PROGRAMS := $(if $(FULL),$(patsubst tests/bench/%.cu,$(CHECK_DIR)/%,$(wildcard tests/bench/bench_*.cu)))
CHECK_PTX := $(patsubst %.cu,$(CHECK_DIR)/%.ptx,$(if $(FULL),$(filter-out tests/bench/%,$(CUDA_SOURCES)),$(CUDA_SOURCES)))
CHECK_PTX += $(if $(MPICC),$(CHECK_DIR)/examples/mpi/mpi_slabs.ptx)
$(CHECK_DIR)/examples/mpi/mpi_slabs.ptx: override NVCCFLAGS += -ccbin $(MPICXX)
$(CHECK_PTX): $(CHECK_DIR)/%.ptx: %.cu $(SOURCES) | deps-test
	@mkdir -p $(@D)
	$(NVCC_ALL) -ptx $< -o $@
.PHONY: cuda-check
cuda-check: $(CHECK_PROGRAMS) $(CHECK_PTX)
	@cp tests/cuda/run.sh $(CHECK_DIR)/
	@tests/cuda/carry_libraries.sh $(CHECK_DIR) $(CHECK_PROGRAMS)
test-cuda: deps-test
	@$(MAKE) --no-print-directory cuda-check CUDA_DIR=$(CHECK_DIR) CUDA_ARCH='$(CHECK_ARCH)' NVCCFLAGS='$(CHECK_FLAGS)'
	@echo 'skipped  running the CUDA programs: no GPU here (they compile; make cuda and tests/cuda/run.sh run them elsewhere)'
	@echo '$(words $(CUDA_SOURCES)) passed, 0 failed, 1 skipped'
endif
endif

# ---- measurements -------------------------------------------------------------------------------

$(BENCHES): build/bench/%: tests/bench/%.c $(SOURCES) | deps-demo
	@mkdir -p build/bench
	$(CC) -std=c99 -O3 $(WARN) $(CPPFLAGS) -I. $(STB_CFLAGS) $< -o $@ -Wl,--as-needed $(LDFLAGS) $(STB_LIBS) -lm

bench: $(BENCHES)
	@for b in $(BENCHES); do echo; $$b || exit; done

bench-cuda: cuda
ifneq ($(GPU),)
	@sh $(CUDA_DIR)/run.sh bench
else
	@echo 'No GPU here: copy $(CUDA_DIR) to a machine with one, there: sh run.sh bench'
endif

# The sources' figures: measured here, or taken from DATA, and drawn into RESULTS.
RESULTS ?= build/figures
FIGURES := tests/bench/figures
ifdef DATA
figures: deps-figures
	@$(FIGURES)/draw.sh '$(DATA)' '$(RESULTS)'
else ifneq ($(GPU),)
figures: deps-figures figures-programs
	@sh $(CUDA_DIR)/run.sh figures
	@$(FIGURES)/draw.sh $(CUDA_DIR)/figures '$(RESULTS)'
else
figures: deps-figures $(BENCHES) build/dam_break
	@echo 'no GPU here: the serial subset, a few minutes (make cuda builds the rest, to be run where there is one)'
	@cp build/dam_break build/bench/
	@$(FIGURES)/measure.sh --gpu none --cpu build/bench --out build/figures/data
	@$(FIGURES)/draw.sh build/figures/data '$(RESULTS)'
endif

# Can the figures still be measured and drawn? And can that check fail?
test-figures: deps-test $(BENCHES)
	@status=0; $(if $(FULL),$(FIGURES)/test_figures.sh --self-check || status=1;) $(FIGURES)/test_figures.sh || status=1; exit $$status

clean:
	rm -rf build
