# unit.mk - builds and runs the unit tests of the serial headers; included by the Makefile.
# SPDX-License-Identifier: MIT OR Unlicense
#
#   tests/unit/HEADER/test_NAME.c -> build/tests/test_NAME.VARIANT; HEADER may be `all`, or `costs`
#
# Variants: plain; sanitized (Address- and UndefinedBehaviorSanitizer); double; double-sanitized;
# counted and counted-double (unit/costs: every basic block that runs is counted).
# A test of several files is a test_NAME.c that includes the others of its folder: one program
# compiles a header's implementation once.
#
#   quick-unit   the sanitized variants at small sizes, float, and double where numbers matter
#   test-unit    plain, double-sanitized, sanitized what has code of its own for floats, small sizes
#                under valgrind; FULL=1: all variants of all

UNIT_SOURCES := $(wildcard tests/unit/*/test_*.c)
COSTS_SOURCES := $(wildcard tests/unit/costs/test_*.c)
COSTS := $(basename $(notdir $(COSTS_SOURCES)))
UNIT := $(filter-out $(COSTS),$(basename $(notdir $(UNIT_SOURCES))))
# What they test does not depend on the type of a number, or they set it themselves.
UNIT_ONE_TYPE := test_faults test_floats test_threads test_verify test_nlist_handover
UNIT_TWO_TYPES := $(filter-out $(UNIT_ONE_TYPE),$(UNIT))
unit_programs = $(foreach v,$1,$(addprefix build/tests/,$(addsuffix .$v,$2)))
# Those that make test runs with sanitizers: float has been there, double is here. (Each compiles
# its own header. The object of all four with sanitizers is made here, where more tests need it.)
UNIT_OF_HEADERS := $(addprefix test_,ugrid lbvh nlist nbody)
# Of the others each is compiled once with sanitizers: with doubles, since floats are there without;
# twice what has code of its own for floats (AVX2).
UNIT_FLOATS_SANITIZED := $(UNIT_ONE_TYPE) $(filter %_lanes,$(UNIT)) \
    test_lbvh_wide test_lbvh_parallel
UNIT_PROGRAMS := $(call unit_programs,plain,$(UNIT)) \
    $(call unit_programs,sanitized,$(if $(FULL),$(UNIT),\
        $(filter-out $(UNIT_OF_HEADERS),$(UNIT_FLOATS_SANITIZED)))) \
    $(call unit_programs,double-sanitized,$(if $(FULL),$(UNIT),$(UNIT_TWO_TYPES))) \
    $(if $(FULL),$(call unit_programs,double,$(UNIT))) \
    $(call unit_programs,counted counted-double,$(COSTS))

# -g1: lines and functions, which is what reports show, compiled in two thirds of the time of -g.
SANITIZE := -Og -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
DOUBLE := -DUGRID_REAL=double -DLBVH_REAL=double -DNLIST_REAL=double -DNBODY_REAL=double

VARIANT_plain := -O2 -g1
VARIANT_sanitized := $(SANITIZE)
VARIANT_double := -O2 -g1 $(DOUBLE)
VARIANT_double-sanitized := $(SANITIZE) $(DOUBLE)
# Small sizes, without the tests that begin with SLOW_TEST (quick-unit).
VARIANT_quick := -O0
VARIANT_quick-double := -O0 $(DOUBLE)
VARIANT_counted := -O0 -g1 -fsanitize-coverage=trace-pc -DCOSTS_COUNTED \
    -include tests/unit/costs/counted.h
VARIANT_counted-double := $(VARIANT_counted) $(DOUBLE)

# The headers are compiled once for a variant (headers.VARIANT.o), and linked to the tests that only
# call them. A test that looks or sets something inside of a header compiles it by itself, and so
# does each test where it is compiled without this file.
UNIT_ALONE := $(sort $(foreach h,ugrid lbvh nlist nbody,tests/unit/$h/test_$h.c) \
    $(shell grep -lE '^\#define [A-Z]+_(STATIC|I_)' $(UNIT_SOURCES)))
LINKED := $(foreach h,UGRID LBVH LBVH_NEAREST LBVH_WIDE LBVH_WORLD LBVH_OPTIMIZE NLIST NBODY,\
    -D$h_IMPLEMENTATION_DONE)

# $1 = source, $2 = variant, $3 = flags and $4 = object for linked headers
define UNIT_RULE
build/tests/$(basename $(notdir $1)).$2: $1 $(wildcard $(dir $1)*.[ch]) $4 $(SOURCES) | deps-test
	@mkdir -p build/tests
	$$(CC) -std=c99 $$(WARN) $(VARIANT_$2) $$(CPPFLAGS) -I. $$(CMOCKA_CFLAGS) $$(STB_CFLAGS) $3 $$< \
	    $4 -o $$@ -Wl,--as-needed $$(LDFLAGS) $$(CMOCKA_LIBS) $$(STB_LIBS) -lm -lpthread
endef
define HEADERS_RULE
build/tests/headers.$1.o: tests/common/headers.c $(SOURCES)
	@mkdir -p build/tests
	$$(CC) -std=c99 $$(WARN) $(VARIANT_$1) $$(CPPFLAGS) -I. -c $$< -o $$@
endef
$(foreach v,plain sanitized double double-sanitized quick quick-double counted counted-double,\
    $(eval $(call HEADERS_RULE,$v))\
    $(foreach source,$(UNIT_ALONE),$(eval $(call UNIT_RULE,$(source),$v)))\
    $(foreach source,$(filter-out $(UNIT_ALONE),$(UNIT_SOURCES)),\
        $(eval $(call UNIT_RULE,$(source),$v,$(LINKED),build/tests/headers.$v.o \
            $(if $(filter counted%,$v),build/tests/counter.o)))))
build/tests/counter.o: tests/unit/costs/counter.c
	@mkdir -p build/tests
	$(CC) -std=c99 $(WARN) -O1 -c $< -o $@

.PHONY: quick-unit test-unit
test-unit: $(UNIT_PROGRAMS)
	@tests/unit/run.sh $(UNIT_PROGRAMS)

UNIT_QUICK := $(call unit_programs,sanitized,$(UNIT_OF_HEADERS)) \
    $(call unit_programs,quick-double,$(UNIT_OF_HEADERS)) \
    $(call unit_programs,quick,$(filter-out $(UNIT_OF_HEADERS),$(UNIT))) \
    $(call unit_programs,counted,$(COSTS))
quick-unit: $(UNIT_QUICK)
	@TEST_QUICK=yes TEST_SMALL=1 tests/unit/run.sh $(UNIT_QUICK)
