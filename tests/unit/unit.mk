# unit.mk - builds and runs the unit tests of the serial headers; included by the Makefile.
# SPDX-License-Identifier: MIT OR Unlicense
#
#   tests/unit/HEADER/test_NAME.c -> build/tests/test_NAME.VARIANT; HEADER may be `all`
#
# Variants: plain; sanitized (Address- and UndefinedBehaviorSanitizer); double; double-sanitized.
# A test of several files is a test_NAME.c that includes the others of its folder: one program
# compiles a header's implementation once.
#
#   quick-unit   the sanitized variants at small sizes, float, and double where numbers matter
#   test-unit    plain and sanitized, double-sanitized, small sizes under valgrind;
#                FULL=1: all variants of all

UNIT_SOURCES := $(wildcard tests/unit/*/test_*.c)
UNIT := $(basename $(notdir $(UNIT_SOURCES)))
# What they test does not depend on the type of a number, or they set it themselves.
UNIT_ONE_TYPE := test_faults test_floats test_threads test_verify
UNIT_TWO_TYPES := $(filter-out $(UNIT_ONE_TYPE),$(UNIT))
unit_programs = $(addprefix build/tests/,$(addsuffix .$1,$2))
UNIT_PROGRAMS := $(call unit_programs,plain,$(UNIT)) $(call unit_programs,sanitized,$(UNIT)) \
    $(call unit_programs,double-sanitized,$(if $(FULL),$(UNIT),$(UNIT_TWO_TYPES))) \
    $(if $(FULL),$(call unit_programs,double,$(UNIT)))

# -g1: lines and functions, which is what reports show, compiled in two thirds of the time of -g.
SANITIZE := -Og -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
DOUBLE := -DUGRID_REAL=double -DLBVH_REAL=double -DNLIST_REAL=double -DNBODY_REAL=double

build/tests/%.plain: VARIANT := -O2 -g1
build/tests/%.sanitized: VARIANT := $(SANITIZE)
build/tests/%.double: VARIANT := -O2 -g1 $(DOUBLE)
build/tests/%.double-sanitized: VARIANT := $(SANITIZE) $(DOUBLE)

define UNIT_RULE
$(foreach v,plain sanitized double double-sanitized quick quick-double,\
    build/tests/$(basename $(notdir $1)).$v): \
    $1 $(wildcard $(dir $1)*.[ch]) $(SOURCES) | deps-test
	@mkdir -p build/tests
	$$(CC) -std=c99 $$(WARN) $$(VARIANT) $$(CPPFLAGS) -I. $$(CMOCKA_CFLAGS) $$(STB_CFLAGS) $$< \
	    -o $$@ -Wl,--as-needed $$(LDFLAGS) $$(CMOCKA_LIBS) $$(STB_LIBS) -lm -lpthread
endef
$(foreach source,$(UNIT_SOURCES),$(eval $(call UNIT_RULE,$(source))))

.PHONY: quick-unit test-unit
test-unit: $(UNIT_PROGRAMS)
	@tests/unit/run.sh $(UNIT_PROGRAMS)

# Small sizes, without the tests that begin with SLOW_TEST. What tests all headers at once compiles
# longest: without sanitizers here.
build/tests/%.quick: VARIANT := -O0
build/tests/%.quick-double: VARIANT := -O0 $(DOUBLE)
UNIT_OF_HEADERS := $(addprefix test_,ugrid lbvh nlist nbody)
UNIT_QUICK := $(call unit_programs,sanitized,$(UNIT_OF_HEADERS) test_faults) \
    $(call unit_programs,quick-double,$(UNIT_OF_HEADERS)) \
    $(call unit_programs,quick,$(filter-out $(UNIT_OF_HEADERS) test_faults,$(UNIT)))
quick-unit: $(UNIT_QUICK)
	@TEST_QUICK=yes TEST_SMALL=1 tests/unit/run.sh $(UNIT_QUICK)
