# quality.mk - what else is tested; included by the Makefile. tests/README.md says what each is for.
# SPDX-License-Identifier: MIT OR Unlicense
#
# A script tests/quality/NAME/run.sh says "N passed, M failed[, K skipped]" at its end, and takes
# --self-check: does it notice planted faults? Those run with FULL=1.

Q := tests/quality
# $1: a script; with FULL its self-check first
checked = status=0; $(if $(FULL),$1 --self-check || status=1;) $1 || status=1; exit $$status

.PHONY: quick-readme test-readme quick-headers test-vendor test-flags test-fuzz test-portability \
    test-packages test-compilers test-python test-wheel test-run-all consumers fuzz soak \
    portability mutation

# The programs of README.md, docs/ and of the headers' manuals; links, names, prototypes. Quick: one
# compiler, and of the CUDA programs that of README.md.
quick-readme: export QUICK := yes
quick-readme test-readme: deps-test $(ON_CPU)
	@export NVCC='$(NVCC)' GPU='$(GPU)'; \
	$(if $(ON_CPU),export EMU_CXX='$(EMU_CXX)' EMU_SANITIZE='$(EMU_SANITIZE_quick)' \
	    EMU_OBJECT='$(abspath $(ON_CPU))';) \
	$(call checked,tests/test_readme.sh)

# Is each header fit to be copied into another program, alone, with its parts, as a single file?
# Without the rows of quick-headers, unless FULL=1.
test-vendor: deps-test
	@export NVCC='$(NVCC)'; \
	$(call checked,$(Q)/vendor/run.sh $(if $(FULL),,--but '$(QUICK_ROWS)'))

# Its rows for a header in a C99 and a C++17 program, by the compilers that most have.
QUICK_ROWS := ^[a-z]*([+]all)?: ((gcc c99|g\+\+ c\+\+17).*(two users and an|-O2: impl|windows\.h)
QUICK_ROWS := $(QUICK_ROWS)|clang c99.*two users and an|clang\+\+ c\+\+20: impl)
quick-headers: deps-test
	@NVCC= $(Q)/vendor/run.sh --only '$(QUICK_ROWS)'

# more/nearfield.hpp: C++17 over the headers.
.PHONY: test-cpp bench-cpp
test-cpp:
	@$(call checked,tests/cpp/run.sh)
bench-cpp: build/bench/bench_nearfield
	@$<
build/bench/bench_nearfield: tests/cpp/bench_nearfield.cpp $(SOURCES)
	@mkdir -p build/bench
	$(CXX) -std=c++17 -O3 $(WARN) -I. $< -o $@

# Header and parts in one file each: build/single.
.PHONY: single
single:
	@packaging/single.sh build/single && ls build/single/*.h

# The form of every file: columns, blanks, braces.
.PHONY: test-style
test-style:
	@$(call checked,$(Q)/style/run.sh)

# Other levels of optimization, -ffast-math, ThreadSanitizer.
test-flags: deps-test
	@$(call checked,$(Q)/flags/run.sh)

# MSVC's rules by clang; what the headers leave as it was; with FULL=1 also Windows, macOS and musl
# by zig (PyPI).
test-compilers: deps-test
	@$(if $(FULL),,export ONLY='msvc cl after';) $(call checked,$(Q)/compilers/run.sh)

# Any bytes become descs, points and calls, and the answers are compared with brute force: the
# corpus, and some thousand inputs for each fuzzer. fuzz: for MINUTES each.
test-fuzz: deps-test
	@$(Q)/fuzz/run.sh
MINUTES ?= 10
fuzz: deps-test
	@status=0; $(Q)/fuzz/run.sh --self-check || status=1; \
	$(Q)/fuzz/run.sh --long $(MINUTES) || status=1; exit $$status

# The promised bits on other processors, in emulators. portability: all cases, and the unit tests.
test-portability: deps-test
	@$(call checked,$(Q)/portability/run.sh)
portability: deps-test
	@$(Q)/portability/run.sh --full

# Debian package, vcpkg port, Conan recipe, clib.json; one version everywhere.
test-packages: deps-test
	@failed=0; ($(call checked,$(Q)/packages/run.sh)) || failed=1; \
	MAKE='$(MAKE)' tests/site/run.sh || failed=1; exit $$failed

# A small project of a user: copied file, add_subdirectory, installed, pkg-config.
consumers: deps-test
	@NVCC='$(NVCC)' $(Q)/consumers/run.sh

# From Python, against scipy, ASE and VTK (PyPI; skipped where they cannot be had).
test-python: deps-test $(addprefix build/linked/,dam_break drum lbvh_steps)
	@failed=0; ($(call checked,tests/python/run.sh)) || failed=1; \
	MAKE='$(MAKE)' tests/fortran/run.sh || failed=1; exit $$failed

# A wheel, in an environment of its own; TORCH=python: one that has torch.
test-wheel:
	@tests/python/wheel.sh $(TORCH)

# Does a run of all tests end with the names of what failed?
test-run-all:
	@tests/test_run_all.sh

# Scenes that run for long while their lists change at random: MINUTES of each, 30 unless you say.
soak:
	@status=0; $(Q)/soak/run.sh --self-check || status=1; \
	$(Q)/soak/run.sh --minutes $(if $(filter file,$(origin MINUTES)),30,$(MINUTES)) || status=1; \
	exit $$status

# Do the tests notice when a header is wrong? Some hours; MUTANTS=5: less.
MUTANTS ?= 60
mutation: deps-test
	@$(Q)/mutation/run.sh --mutants $(MUTANTS)
