# examples.mk - builds the examples and tests them; included by the Makefile.
# SPDX-License-Identifier: MIT OR Unlicense
#
#   examples/NAME/NAME.c  -> build/NAME; for its test build/linked/NAME
#   examples/NAME/NAME.cu -> build/cuda/NAME (tests/cuda/cuda.mk), build/emu/cuda_NAME.asan
#   examples/web/         -> build/web/nearfield.html, build/web/how.html (emscripten)
#   examples/mpi/         -> build/mpi_slabs, build/mpi_slabs_gpu
#   examples/engine/      -> build/chipmunk_scenes (libchipmunk-dev)
#   packaging/python/     -> build/libnearfield.so and, for GPUs, two more; the package nearfield in
#                            build/python; a wheel of it in build/wheels
#   packaging/fortran/    -> build/fortran/nearfield.f90, a module; build/fortran/lj

ASSIMP_CFLAGS = $$(pkg-config --cflags assimp)
ASSIMP_LIBS = $$(pkg-config --libs assimp)
# Optional: empty where pkg-config knows no sdl2.
SDL_CFLAGS = $$(pkg-config --exists sdl2 && echo -DGALAXY_WINDOW $$(pkg-config --cflags sdl2))
SDL_LIBS = $$(pkg-config --exists sdl2 && pkg-config --libs sdl2)

EXAMPLES := $(patsubst %.c,build/%,$(notdir $(EXAMPLE_SOURCES)))

# --as-needed: only the examples that draw are tied to libstb.
define EXAMPLE_WHOLE_RULE
build/$(basename $(notdir $1)): $1 $(SOURCES) | deps-demo
	@mkdir -p build
	$$(CC) -std=c99 -O3 $$(WARN) $$(CPPFLAGS) -I. $$(STB_CFLAGS) $$(OWN_CFLAGS) $$< -o $$@ \
	    -Wl,--as-needed $$(LDFLAGS) $$(STB_LIBS) $$(OWN_LIBS) -lm
endef
$(foreach source,$(EXAMPLE_SOURCES),$(eval $(call EXAMPLE_WHOLE_RULE,$(source))))

# For their tests the headers are compiled once, for the unit tests, and linked: less than half of
# the time. Whole, as above, they only have to compile. (Where a header is _STATIC they are whole.)
EXAMPLES_WHOLE := $(patsubst %.h,%.c,$(shell grep -lE '^.define [A-Z]+_STATIC$$' examples/*/*.h))
EXAMPLES_OF_DOUBLES := $(shell grep -lE '^.define [A-Z]+_REAL double|^.include ".*/tablets.c"' \
    examples/*/*.c)
example_headers = $(if $(filter $1,$(EXAMPLES_WHOLE)),,build/tests/headers.$(if \
    $(filter $1,$(EXAMPLES_OF_DOUBLES)),double,plain).o)
# $1 = source, $2 = object for linked headers
define EXAMPLE_RULE
build/linked/$(basename $(notdir $1)): $1 $2 $(SOURCES) | deps-demo
	@mkdir -p build/linked
	$$(CC) -std=c99 -fsyntax-only $$(WARN) -Werror $$(CPPFLAGS) -I. $$(STB_CFLAGS) $$(OWN_CFLAGS) $$<
	$$(CC) -std=c99 -O3 $$(WARN) $$(CPPFLAGS) -I. $$(STB_CFLAGS) $$(OWN_CFLAGS) $(if $2,$(LINKED)) \
	    $$< $2 -o $$@ -Wl,--as-needed $$(LDFLAGS) $$(STB_LIBS) $$(OWN_LIBS) -lm
endef
$(foreach source,$(EXAMPLE_SOURCES),\
    $(eval $(call EXAMPLE_RULE,$(source),$(call example_headers,$(source)))))
LINKED_EXAMPLES := $(patsubst build/%,build/linked/%,$(EXAMPLES))
both = $(addprefix build/,$1) $(addprefix build/linked/,$1)

# It begins with the program of another example.
$(call both,coating) build/emu/cuda_coating.asan $(CUDA_DIR)/coating: \
    examples/tablets/tablets.c examples/tablets/tablets.cu

# The one that reads meshes needs assimp, and only that one.
$(call both,pick): OWN_CFLAGS = $(ASSIMP_CFLAGS)
$(call both,pick): OWN_LIBS = $(ASSIMP_LIBS)
$(call both,pick): | deps-pick

# Those that can show a window.
$(call both,galaxy): OWN_CFLAGS = $(SDL_CFLAGS)
$(call both,boids): OWN_CFLAGS = $(subst GALAXY,BOIDS,$(SDL_CFLAGS))
$(call both,falling_boxes): OWN_CFLAGS = $(subst GALAXY,FALLING_BOXES,$(SDL_CFLAGS))
$(call both,fluid): OWN_CFLAGS = $(subst GALAXY,FLUID,$(SDL_CFLAGS))
$(call both,galaxy boids falling_boxes fluid): OWN_LIBS = $(SDL_LIBS)

# ---- in a browser: one file, which needs no server --------------------------------------------

# NODE_PATH: where Debian has the modules of its emscripten, for a node that is not Debian's.
# -msse2: emscripten makes WebAssembly's vectors of it, and nbody.h runs four times as fast.
EMCC ?= emcc
WEB_FLAGS := -msimd128 -msse2 -sSINGLE_FILE=1 -sENVIRONMENT=web -sALLOW_MEMORY_GROWTH=1 \
    -sTOTAL_STACK=1MB -sEXPORTED_RUNTIME_METHODS=UTF8ToString -sMINIFY_HTML=0
.PHONY: web
web: build/web/nearfield.html build/web/how.html
	@echo 'open $^'
build/web/nearfield.html: examples/web/nearfield.c $(wildcard examples/web/scene_*.h) \
    examples/web/page.html $(SOURCES)
	@mkdir -p build/web
	NODE_PATH=$${NODE_PATH:-/usr/share/nodejs} $(EMCC) -std=c99 -O3 $(WARN) -I. $(WEB_FLAGS) \
	    --shell-file examples/web/page.html $< -o $@

# "How it works": scripts, and the lines of the headers that they name, in one file, too. It has a
# few dozen points: -O1, and no vectors.
build/web/how_shell.html: $(wildcard examples/web/how*) $(SOURCES)
	@mkdir -p build/web
	examples/web/how_page.sh >$@.new && mv $@.new $@
build/web/how.html: examples/web/how.c $(wildcard examples/web/how_*.h) build/web/how_shell.html \
    $(SOURCES)
	NODE_PATH=$${NODE_PATH:-/usr/share/nodejs} $(EMCC) -std=c99 -O1 $(WARN) -I. \
	    $(filter-out -m%,$(WEB_FLAGS)) --shell-file build/web/how_shell.html $< -o $@

# ---- in a physics engine ------------------------------------------------------------------------

# Where Chipmunk2D is installed (Debian: libchipmunk-dev). Its space, with our index or its own.
.PHONY: engine
engine: build/chipmunk_scenes
build/chipmunk_scenes: examples/engine/chipmunk_scenes.c examples/engine/chipmunk_lbvh.h $(SOURCES)
	@mkdir -p build
	$(CC) -std=c99 -O3 $(WARN) $(CPPFLAGS) -I. $< -o $@ $(LDFLAGS) -lchipmunk -lm

# ---- several ranks ------------------------------------------------------------------------------

# Where there is an MPI (Debian: libopenmpi-dev openmpi-bin); elsewhere the test says "skipped".
# mpicxx is the C++ compiler with what MPI needs; OMPI_CXX and MPICH_CXX tell it which compiler.
MPICXX ?= $(patsubst %mpicc,%mpicxx,$(MPICC))
# The headers are compiled once, for the tests of kernels, and linked.
HEADERS_ON_CPU := $(if $(ON_CPU),$(EMU_OUT)/headers.asan.o)
MPI_HEADERS := $(wildcard examples/mpi/*.h)
MPI_PROGRAMS := $(if $(MPICC),$(if $(ON_CPU),build/emu/cuda_mpi_slabs.asan) build/mpi_slabs)

build/mpi_slabs: examples/mpi/mpi_slabs.c $(MPI_HEADERS) $(SOURCES) | deps-demo
	@mkdir -p build
	$(MPICC) -std=c99 -O3 $(WARN) $(CPPFLAGS) $< -o $@ $(LDFLAGS) -lm

build/emu/cuda_mpi_slabs.asan: examples/mpi/mpi_slabs.cu $(MPI_HEADERS) $(SOURCES) $(EMU_HEADERS) \
    $(ON_CPU) $(HEADERS_ON_CPU) | deps-test
	OMPI_CXX='$(EMU_CXX)' MPICH_CXX='$(EMU_CXX)' $(MPICXX) $(EMU_FLAGS) $(EMU_CUDA) \
	    $(EMU_SANITIZE_asan) $(LINKED) $< -x none $(ON_CPU) $(HEADERS_ON_CPU) -o $@

# For the GPUs of this machine: not a part of make cuda, since an MPI cannot be carried along.
.PHONY: mpi
mpi: build/mpi_slabs $(if $(NVCC),build/mpi_slabs_gpu)
build/mpi_slabs_gpu: examples/mpi/mpi_slabs.cu $(MPI_HEADERS) $(SOURCES) | deps-demo
	$(NVCC) -std=c++17 -arch=$(CUDA_ARCH) $(NVCCFLAGS) -ccbin $(MPICXX) $< -o $@

# ---- for Python and whoever else loads libraries ----------------------------------------------

# All four headers in one, in float and double; for GPUs one library for each of the two. The Python
# package beside its library is build/python/nearfield: to be put on PYTHONPATH, or copied.
PY_LIBRARY := packaging/python/library
PY_PACKAGE := $(wildcard packaging/python/nearfield/*.py*)
.PHONY: shared shared-cuda wheel wheel-cuda
shared: build/libnearfield.so build/python/nearfield/libnearfield.so
build/libnearfield.so: $(wildcard $(PY_LIBRARY)/*.[ch]) $(SOURCES)
	@mkdir -p build
	$(CC) -std=c99 -O3 -ffp-contract=off $(WARN) $(CPPFLAGS) -shared -fPIC -I. $(filter %.c,$^) \
	    -o $@ $(LDFLAGS) -lm -pthread
build/python/nearfield/libnearfield.so: build/libnearfield.so $(PY_PACKAGE) \
    packaging/python/declare.py
	@mkdir -p $(@D)
	@command -v python3 >/dev/null || { echo "no python3: build/libnearfield.so only"; exit 0; }; \
	python3 packaging/python/declare.py . $(@D)/_declared.py && cp $(PY_PACKAGE) $< $(@D)/
shared-cuda: $(CUDA_DIR)/libnearfield_cuda.so $(CUDA_DIR)/libnearfield64_cuda.so
$(CUDA_DIR)/lib%_cuda.so: $(PY_LIBRARY)/%.cu $(PY_LIBRARY)/nearfield.c $(PY_LIBRARY)/nearfield.cu \
    $(wildcard $(PY_LIBRARY)/*.h) $(PY_LIBRARY)/few.cuh $(SOURCES) $(CUDA_DIR)/arch
	$(NVCC) -std=c++17 -arch=$(CUDA_ARCH) $(NVCCFLAGS) -cudart static -shared -Xcompiler -fPIC \
	    -I. $< -o $@

# For this machine's processor and any Python 3. It goes to other machines by auditwheel:
# packaging/README.md.
wheel:
	python3 -m pip wheel . --no-deps --wheel-dir build/wheels

# The GPU's half, in a wheel of its own: compiled for every architecture of this nvcc, for machines
# that have the driver only. CUDA_LIBRARIES: a folder that has both libraries already.
CUDA_LIBRARIES ?= $(CURDIR)/build/cuda-wheel
wheel-cuda:
	@[ '$(CUDA_LIBRARIES)' != '$(CURDIR)/build/cuda-wheel' ] || $(MAKE) shared-cuda \
	    CUDA_DIR='$(CUDA_LIBRARIES)' CUDA_ARCH=all-major \
	    NVCCFLAGS='-O3 --compress-mode=size -Xlinker -s'
	python3 -m pip wheel packaging/python/cuda --no-deps --wheel-dir build/wheels \
	    -C cmake.define.NEARFIELD_LIBRARIES='$(CUDA_LIBRARIES)'

# ---- the site -----------------------------------------------------------------------------------

# Docs, API reference, gallery, both pages for a browser (where emcc is): build/site/html. MkDocs
# Material comes from PyPI, into build/.
SITE_NEEDS ?= mkdocs-material>=9.5,<10
.PHONY: site
site: $(if $(shell command -v $(EMCC)),build/web/nearfield.html build/web/how.html)
	@[ -x build/site-venv/bin/mkdocs ] || { python3 -m venv build/site-venv && \
	    build/site-venv/bin/pip install -q --disable-pip-version-check '$(SITE_NEEDS)'; }
	python3 packaging/site/site.py . build/site build/web
	cd build/site && NO_MKDOCS_2_WARNING=1 ../site-venv/bin/mkdocs build -q
	python3 packaging/site/site.py --check build/site/html
	@echo "open build/site/html/index.html"

# ---- for Fortran ------------------------------------------------------------------------------

# The module is written from the headers, so that it is never out of date.
GFORTRAN ?= gfortran
.PHONY: fortran
fortran: build/fortran/lj
build/fortran/nearfield.f90: packaging/fortran/module.py packaging/python/declare.py $(SOURCES) \
    $(wildcard $(PY_LIBRARY)/*)
	@mkdir -p build/fortran
	python3 $< . $@ build/fortran/sizes
build/fortran/nearfield.o: build/fortran/nearfield.f90
	cd build/fortran && $(GFORTRAN) -std=f2018 -Wall -O2 -c nearfield.f90
build/fortran/lj: packaging/fortran/lj.f90 build/fortran/nearfield.o build/libnearfield.so
	$(GFORTRAN) -std=f2018 -Wall -Wextra -O2 -Ibuild/fortran $(filter %.f90 %.o,$^) -o $@ -Lbuild \
	    -lnearfield -Wl,-rpath,'$$ORIGIN/..'

# ---- their tests --------------------------------------------------------------------------------

# The GPU's programs on the CPU: three of them; FULL=1: all.
CUDA_EXAMPLES_ON_CPU := $(if $(ON_CPU),$(patsubst %,build/emu/cuda_%.asan,\
    $(if $(FULL),$(basename $(notdir $(EXAMPLE_KERNELS))),boids dam_break drum)))
define CUDA_ON_CPU_RULE
build/emu/cuda_$(basename $(notdir $1)).asan: $1 $(wildcard $(dir $1)*.c) $(SOURCES) \
    $(EMU_HEADERS) $(ON_CPU) $(HEADERS_ON_CPU) | deps-test
	$$(EMU_CXX) $$(EMU_FLAGS) $$(EMU_CUDA) $$(EMU_SANITIZE_asan) $$(STB_CFLAGS) $$(LINKED) \
	    $$< -x none $$(ON_CPU) $$(HEADERS_ON_CPU) -o $$@ -Wl,--as-needed $$(STB_LIBS)
endef
$(foreach source,$(EXAMPLE_KERNELS),$(eval $(call CUDA_ON_CPU_RULE,$(source))))
# In double: with headers of its own.
build/emu/cuda_pyramid.asan: LINKED =
build/emu/cuda_pyramid.asan: HEADERS_ON_CPU =

.PHONY: test-examples
test-examples: $(LINKED_EXAMPLES) $(CUDA_EXAMPLES_ON_CPU) $(MPI_PROGRAMS)
	@status=0; \
	tests/examples/run.sh $(CUDA_EXAMPLES_ON_CPU) $(MPI_PROGRAMS) $(LINKED_EXAMPLES) || status=1; \
	tests/examples/test_engine.sh || status=1; \
	$(if $(MPICC),$(if $(FULL),tests/examples/test_mpi_slabs.sh --self-check || status=1;), \
	    tests/examples/test_mpi_slabs.sh || status=1;) \
	MAKE='$(MAKE)' tests/examples/test_web.sh || status=1; exit $$status
