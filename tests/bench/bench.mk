# bench.mk - measurements and the figures of the sources; included by the Makefile.
# SPDX-License-Identifier: MIT OR Unlicense
#
#   tests/bench/bench_NAME.c -> build/bench/bench_NAME (bench_NAME.cu: tests/cuda/cuda.mk)

BENCHES := $(patsubst tests/bench/%.c,build/bench/%,$(wildcard tests/bench/bench_*.c))
$(BENCHES): build/bench/%: tests/bench/%.c $(SOURCES) | deps-demo
	@mkdir -p build/bench
	$(CC) -std=c99 -O3 $(WARN) $(CPPFLAGS) -I. $(STB_CFLAGS) $< -o $@ \
	    -Wl,--as-needed $(LDFLAGS) $(STB_LIBS) -lm -lpthread

.PHONY: bench bench-cuda figures test-figures
bench: $(BENCHES)
	@for b in $(BENCHES); do echo; $$b || exit; done

bench-cuda: cuda
ifneq ($(GPU),)
	@sh $(CUDA_DIR)/run.sh bench
else
	@echo 'No GPU here: copy $(CUDA_DIR) to a machine with one, there: sh run.sh bench'
endif

# Measured here, or taken from DATA, and drawn into RESULTS.
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
	@echo 'no GPU here: the serial subset, a few minutes (make cuda builds the rest)'
	@cp build/dam_break build/bench/
	@$(FIGURES)/measure.sh --gpu none --cpu build/bench --out build/figures/data
	@$(FIGURES)/draw.sh build/figures/data '$(RESULTS)'
endif

# Can the figures still be measured and drawn? (-O1: nobody looks at these, and the programs compile
# in less than half of the time. The other one only has to compile.)
BENCHES_OF_TEST := $(patsubst build/bench/%,build/bench/test/%,$(filter-out %_md,$(BENCHES)))
$(BENCHES_OF_TEST): build/bench/test/%: tests/bench/%.c $(SOURCES) | deps-demo
	@mkdir -p build/bench/test
	$(CC) -std=c99 -O1 $(WARN) $(CPPFLAGS) -I. $(STB_CFLAGS) $< -o $@ \
	    -Wl,--as-needed $(LDFLAGS) $(STB_LIBS) -lm -lpthread
test-figures: deps-test $(BENCHES_OF_TEST)
	@$(CC) -std=c99 -fsyntax-only $(WARN) -Werror $(CPPFLAGS) -I. tests/bench/bench_md.c
	@$(call checked,$(FIGURES)/test_figures.sh)
