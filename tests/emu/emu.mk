# emu.mk - builds and runs what is tested on the emulator; included by the Makefile.
# SPDX-License-Identifier: MIT
#
# By hand, from the root of the repository (PROGRAM.cu is any CUDA program; README.md says more):
#
#   clang++-14 -std=c++17 -O2 -g -fno-builtin -Itests/emu/include -Itests/emu \
#       -c tests/emu/emu.cc -o emu.o
#   clang++-14 -x c++ -std=c++17 -D__CUDACC__ -Itests/emu/include -Itests/emu -I. \
#       -include cuda_runtime.h \
#       -O1 -g -ffp-contract=off -fsanitize=address,undefined -fno-sanitize-recover=all \
#       PROGRAM.cu -x none emu.o -o PROGRAM
#
# Targets: quick-emu; test-emu, and its parts
#   emu-selftest   does the emulator compute what CUDA says? In all modes and orders.
#   emu-bugs       does it find every planted bug in the mode that has to, and nothing else?
#   emu-programs   tests/cuda/*/test_*.cu in all modes; then: was every kernel of cuda/ executed?
# With clang++ and its sanitizer libraries (Debian: clang-14 libclang-rt-14-dev) there are two
# builds of each program, .asan and .tsan (of EMU_ASAN_ONLY the first); FULL=1: .msan. With only g++
# there is .asan alone; without either all is skipped.

EMU := tests/emu
EMU_OUT := build/emu
EMU_CLANG := $(firstword $(shell command -v clang++-14 clang++ 2>/dev/null))
EMU_TSAN_LIBRARY := $(if $(EMU_CLANG),\
    $(wildcard $(shell $(EMU_CLANG) -print-resource-dir)/lib/*/libclang_rt.tsan*.a))
EMU_GXX := $(shell command -v g++ 2>/dev/null)
EMU_CXX := $(if $(EMU_TSAN_LIBRARY),$(EMU_CLANG),$(EMU_GXX))
EMU_MODES := $(if $(EMU_TSAN_LIBRARY),asan tsan $(if $(FULL),msan),$(if $(EMU_GXX),asan))

EMU_FLAGS := -std=c++17 -g1 -Wall -Wextra -fno-omit-frame-pointer -I$(EMU)/include -I$(EMU) -I.
# As nvcc: the macro, and the header before everything else. No fused operations.
EMU_CUDA := -x c++ -D__CUDACC__ -include cuda_runtime.h -O1 -ffp-contract=off \
    -fno-sanitize-recover=all
# The compiler must not turn the emulator's own loops into memset: that is a function of the
# sanitizers.
EMU_OBJECT := -O2 -fno-builtin $(if $(EMU_TSAN_LIBRARY),,-fno-tree-loop-distribute-patterns)

EMU_SECTION := $(if $(EMU_TSAN_LIBRARY),,-fsanitize-sections=.emu_shared)
EMU_SANITIZE_asan := -fsanitize=address,undefined $(EMU_SECTION)
EMU_SANITIZE_tsan := -fsanitize=thread
# MSan sees no library code: with this macro std::string is compiled along.
EMU_SANITIZE_msan := -fsanitize=memory -D_GLIBCXX_ASSERTIONS
# What compiles fast: for make test, and for the programs of pages.
EMU_SANITIZE_quick := -O0 -fsanitize=address $(EMU_SECTION)
EMU_OBJECT_asan := $(EMU_OUT)/emu.o
EMU_OBJECT_quick := $(EMU_OUT)/emu.o
EMU_OBJECT_tsan := $(EMU_OUT)/emu.o
EMU_OBJECT_msan := $(EMU_OUT)/emu.msan.o

EMU_HEADERS := $(EMU)/emu.h $(EMU)/test_support.h $(EMU)/include/cuda_runtime.h \
    $(EMU)/include/cub/cub.cuh
EMU_SOURCES := $(wildcard tests/cuda/*/test_*.cu)
EMU_PROGRAMS := $(basename $(notdir $(EMU_SOURCES)))
emu_builds = $(foreach mode,$(EMU_MODES),$(addsuffix .$(mode),$(addprefix $(EMU_OUT)/,$1)))
# One build will do for those that run kernels which others run, too, and test the host.
# FULL=1 has the races of test_nbody, which takes longest.
EMU_ASAN_ONLY := test_faults test_totals test_nbody test_no_law
EMU_PROGRAM_BUILDS := $(call emu_builds,\
    $(if $(FULL),$(EMU_PROGRAMS),$(filter-out $(EMU_ASAN_ONLY),$(EMU_PROGRAMS)))) \
    $(if $(EMU_MODES),$(patsubst %,$(EMU_OUT)/%.asan,$(EMU_ASAN_ONLY)))

$(EMU_OUT)/emu.o: $(EMU)/emu.cc $(EMU_HEADERS)
	@mkdir -p $(EMU_OUT)
	$(EMU_CXX) $(EMU_FLAGS) $(EMU_OBJECT) -c $< -o $@

$(EMU_OUT)/emu.msan.o: $(EMU)/emu.cc $(EMU_HEADERS)
	@mkdir -p $(EMU_OUT)
	$(EMU_CXX) $(EMU_FLAGS) $(EMU_OBJECT) -fsanitize=memory -c $< -o $@

# $1 = mode: the emulator's own programs.
define EMU_RULES
$(EMU_OUT)/%.$1: $(EMU)/%.cu $(EMU_HEADERS) $(EMU_OBJECT_$1)
	$(EMU_CXX) $(EMU_FLAGS) $(EMU_CUDA) $(EMU_SANITIZE_$1) $$< -x none $(EMU_OBJECT_$1) -o $$@
endef
$(foreach mode,$(EMU_MODES),$(eval $(call EMU_RULES,$(mode))))

# The headers, compiled once for a mode, and linked to the tests that only call them. (test_ugrid
# looks into its header. By -O0 a whole program compiles sooner than all four headers.)
# (test_no_law needs kernels without those of the others' law, and runs none that matter.)
EMU_LINKED_asan := $(filter-out test_ugrid test_no_law,$(EMU_PROGRAMS))
$(EMU_OUT)/test_no_law.asan: EMU_CUDA += -O0
EMU_LINKED_msan := $(EMU_LINKED_asan)
EMU_LINKED_tsan := $(filter-out $(if $(FULL),,test_nbody),$(EMU_LINKED_asan))
# What no program of a mode needs is not compiled for it.
EMU_HEADERS_OF_tsan := UGRID LBVH NLIST $(if $(FULL),NBODY)
define EMU_HEADERS_RULE
$(EMU_OUT)/headers.$1.o: tests/common/headers.c $(SOURCES) $(EMU_HEADERS)
	@mkdir -p $(EMU_OUT)
	$(EMU_CXX) $(EMU_FLAGS) $(EMU_CUDA) $(EMU_SANITIZE_$1) \
	    $(foreach h,UGRID LBVH NLIST NBODY,-D$h_$(if $(filter $h,$2),CUDA,IMPLEMENTATION_DONE)) \
	    -c $$< -o $$@
endef
$(foreach mode,asan tsan msan,$(eval $(call EMU_HEADERS_RULE,$(mode),\
    $(or $(EMU_HEADERS_OF_$(mode)),UGRID LBVH NLIST NBODY))))

# $1 = mode, $2 = a source in tests/cuda, $3 = flags and $4 = object for linked headers
define EMU_TEST_RULE
$(EMU_OUT)/$(basename $(notdir $2)).$1: $2 $(wildcard $(dir $2)*) $(SOURCES) $(EMU_HEADERS) \
    $(EMU_OBJECT_$1) $4 | deps-test
	$$(EMU_CXX) $$(EMU_FLAGS) $$(EMU_CUDA) $$(EMU_SANITIZE_$1) $$(CMOCKA_CFLAGS) $$(STB_CFLAGS) $3 \
	    $$< -x none $$(EMU_OBJECT_$1) $4 -o $$@ -Wl,--as-needed $$(CMOCKA_LIBS) $$(STB_LIBS)
endef
$(foreach mode,quick $(EMU_MODES),$(foreach source,$(EMU_SOURCES),\
    $(if $(filter $(basename $(notdir $(source))),$(EMU_LINKED_$(mode))),\
        $(eval $(call EMU_TEST_RULE,$(mode),$(source),$(LINKED),$(EMU_OUT)/headers.$(mode).o)),\
        $(eval $(call EMU_TEST_RULE,$(mode),$(source))))))

.PHONY: emu-all emu-selftest emu-bugs emu-programs
emu-selftest: $(call emu_builds,selftest)
	@$(EMU)/run.sh $(EMU_OUT) selftest
emu-bugs: $(call emu_builds,bugs)
	@$(EMU)/run.sh $(EMU_OUT) bugs
emu-programs: $(EMU_PROGRAM_BUILDS)
	@$(EMU)/run.sh $(EMU_OUT) programs $(EMU_PROGRAMS)

# What else can run kernels on the CPU: programs of pages, examples. Without a C++ compiler empty.
ON_CPU := $(if $(EMU_MODES),$(EMU_OBJECT_asan))

.PHONY: test-emu quick-emu
# Every kernel of the four headers, once, in random order.
EMU_QUICK := $(if $(EMU_MODES),$(patsubst %,$(EMU_OUT)/test_%.quick,nbody lbvh ugrid nlist))
quick-emu: $(EMU_QUICK)
	@$(EMU)/run.sh $(EMU_OUT) quick $(EMU_QUICK)
test-emu: $(call emu_builds,selftest bugs) $(EMU_PROGRAM_BUILDS)
	@$(EMU)/run.sh $(EMU_OUT) selftest bugs programs $(EMU_PROGRAMS)
