# cuda.mk - builds what runs on a GPU, and runs it where there is one; included by the Makefile.
# SPDX-License-Identifier: MIT OR Unlicense
#
#   tests/cuda/HEADER/test_NAME.cu, tests/bench/bench_NAME.cu, examples/NAME/NAME.cu
#       -> build/cuda/NAME
#
# build/cuda can be carried to another machine: libstdc++ is linked in, shared libraries lie beside
# the programs. No architecture is written down anywhere: that of this machine's GPU or, where none
# can be seen (`native` would fail there), all that this nvcc knows by major version.

ifndef CUDA_ARCH
CUDA_ARCH := $(if $(GPU),native,all-major)
endif
CUDA_DIR ?= build/cuda
NVCCFLAGS ?= -O3 -lineinfo
NVCC_ALL = $(NVCC) -std=c++17 -arch=$(CUDA_ARCH) $(NVCCFLAGS) -cudart static \
    -Xcompiler -Wall,-Wextra -Xcompiler -static-libstdc++,-static-libgcc \
    -I. $(CMOCKA_CFLAGS) $(STB_CFLAGS)
NVCC_LIBS = -Xlinker --as-needed,-rpath,'$$ORIGIN' $(CMOCKA_LIBS) $(STB_LIBS)

# (test_no_law tests the host's side, on the emulator.)
CUDA_SOURCES := $(filter-out %/test_no_law.cu,\
    $(wildcard tests/cuda/*/test_*.cu tests/bench/bench_*.cu)) $(EXAMPLE_KERNELS)
CUDA_PROGRAMS := $(foreach s,$(CUDA_SOURCES),$(CUDA_DIR)/$(basename $(notdir $s)))

define CUDA_RULE
$(CUDA_DIR)/$(basename $(notdir $1)): $1 \
    $(if $(filter-out tests/bench/%,$1),$(wildcard $(dir $1)*)) \
    $(SOURCES) $(CUDA_DIR)/arch | deps-test
	$$(NVCC_ALL) $$(OWN_CFLAGS) $$< -o $$@ $$(NVCC_LIBS) $$(OWN_LIBS)
endef
$(foreach s,$(CUDA_SOURCES),$(eval $(call CUDA_RULE,$s)))
# A window only where there is a GPU to run it: the folder's next machine may not have SDL2.
$(CUDA_DIR)/galaxy: OWN_CFLAGS = $(if $(GPU),$(SDL_CFLAGS))
$(CUDA_DIR)/galaxy: OWN_LIBS = $(if $(GPU),$(SDL_LIBS))
# nvcc 13.0 compiles recursion wrongly without this: on an H200 the sums were too small.
$(CUDA_DIR)/bench_traverse: OWN_CFLAGS = -rdc=true

# Changes only when the architecture or the flags do, and then everything is rebuilt.
$(CUDA_DIR)/arch: always
	@mkdir -p $(CUDA_DIR)
	@said='$(NVCC) $(CUDA_ARCH) $(NVCCFLAGS)'; \
	echo "$$said" | cmp -s - $@ || echo "$$said" >$@

.PHONY: cuda test-cuda figures-programs
ifeq ($(NVCC),)
cuda figures-programs:
	@echo 'make $@: no nvcc found (PATH, /usr/local/cuda*/bin, or set NVCC=...):' \
	    'install the CUDA toolkit'; false
test-cuda:
	@echo 'skipped  the CUDA parts: no nvcc'
	@echo '0 passed, 0 failed, 1 skipped'
else
# What `sh run.sh figures` needs: less than all. Serial programs go along.
FIGURE_PROGRAMS := $(addprefix $(CUDA_DIR)/,bench_ugrid bench_lbvh bench_nlist bench_nbody \
    bench_keys bench_order bench_traverse dam_break drum tablets)
figures-programs: $(FIGURE_PROGRAMS) $(BENCHES) build/dam_break
	@mkdir -p $(CUDA_DIR)/cpu
	@cp tests/cuda/run.sh $(CUDA_DIR)/
	@cp tests/bench/figures/measure.sh $(CUDA_DIR)/figures.sh
	@cp $(BENCHES) build/dam_break $(CUDA_DIR)/cpu/
	@tests/cuda/carry_libraries.sh $(CUDA_DIR) $(FIGURE_PROGRAMS)
cuda: $(CUDA_PROGRAMS) figures-programs
	@tests/cuda/carry_libraries.sh $(CUDA_DIR) $(CUDA_PROGRAMS)
	@echo 'built for -arch=$(CUDA_ARCH) in $(CUDA_DIR):' \
	    'copy the folder to a machine with a GPU, there: sh run.sh'
ifneq ($(GPU),)
test-cuda: cuda
	@status=0; sh $(CUDA_DIR)/run.sh || status=1; \
	for example in $(basename $(notdir $(EXAMPLE_KERNELS))); do \
	    echo "$(CUDA_DIR)/$$example"; \
	    tests/examples/test_$$example.sh $(CUDA_DIR)/$$example || status=1; \
	done; exit $$status
else
# Without a GPU: does it all compile? The oldest architecture is enough for that, as PTX and not
# optimized (-G), in half the time. The kernels of the headers are compiled elsewhere (`make
# consumers` makes machine code of them, test-vendor looks for warnings): programs only call them
# (114: of a header that is _STATIC, functions are then declared and missing), but for test_ugrid,
# which looks into its header. With FULL=1 all is compiled whole, and benchmarks become programs.
# More: make test-cuda CHECK_FLAGS='-O3 -lineinfo' CHECK_ARCH=sm_75
CHECK_DIR := build/cuda-check
CHECK_FLAGS ?= -G
CHECK_ARCH ?= $(shell $(NVCC) --list-gpu-arch | head -n 1)
CHECK_BENCHES := $(wildcard tests/bench/bench_*.cu)
CHECK_PROGRAMS := $(if $(FULL),$(patsubst tests/bench/%.cu,$(CHECK_DIR)/%,$(CHECK_BENCHES)))
CHECK_PTX := $(patsubst %.cu,$(CHECK_DIR)/%.ptx,\
    $(if $(FULL),$(filter-out tests/bench/%,$(CUDA_SOURCES)),$(CUDA_SOURCES)))
CHECK_PTX += $(if $(MPICC),$(CHECK_DIR)/examples/mpi/mpi_slabs.ptx)
$(CHECK_DIR)/examples/mpi/mpi_slabs.ptx: override NVCCFLAGS += -ccbin $(MPICXX)
CHECK_WHOLE := $(if $(FULL),%,tests/cuda/ugrid/test_ugrid.ptx)
$(filter-out $(addprefix $(CHECK_DIR)/,$(CHECK_WHOLE)),$(CHECK_PTX)): \
    override NVCCFLAGS += $(LINKED) -diag-suppress 114
$(CHECK_PTX): $(CHECK_DIR)/%.ptx: %.cu $(SOURCES) | deps-test
	@mkdir -p $(@D)
	$(NVCC_ALL) -ptx $< -o $@
.PHONY: cuda-check
cuda-check: $(CHECK_PROGRAMS) $(CHECK_PTX)
	@cp tests/cuda/run.sh $(CHECK_DIR)/
	@tests/cuda/carry_libraries.sh $(CHECK_DIR) $(CHECK_PROGRAMS)
test-cuda: deps-test
	@$(MAKE) --no-print-directory cuda-check CUDA_DIR=$(CHECK_DIR) CUDA_ARCH='$(CHECK_ARCH)' \
	    NVCCFLAGS='$(CHECK_FLAGS)'
	@echo 'skipped  running the CUDA programs: no GPU here (they compile; make cuda and' \
	    'tests/cuda/run.sh run them elsewhere)'
	@echo '$(words $(CUDA_SOURCES)) passed, 0 failed, 1 skipped'
endif
endif
