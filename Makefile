# Petroglyph. `make help` lists what there is to make.

ARCH ?= native
BUILD ?= build
REAL ?= float
DEBUG ?= 0
SANITIZE ?= 0
OPENMP ?= 1
# Of what computes (cpu/, math/), and of all the rest, which compiles in half the time so. The bits are the same at every level.
OPTIMIZE ?= $(if $(filter 1,$(DEBUG)),-O1 -g,-O3)
OPTIMIZE_REST ?= $(if $(filter -O3,$(OPTIMIZE)),-Og,$(OPTIMIZE))

# All cores work, unless -j says otherwise; of one in the environment MAKEFLAGS does not know here.
ifeq ($(MAKELEVEL)$(filter -j% --jobs%,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS")),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 1)
endif

# Goals that take away or rewrite what others read come one after the other.
ifneq ($(and $(filter clean format uninstall,$(MAKECMDGOALS)),$(word 2,$(MAKECMDGOALS))),)
.PHONY: $(MAKECMDGOALS)
.NOTPARALLEL:
$(MAKECMDGOALS):
	@$(MAKE) --no-print-directory $@
else

# ---- Compiler -------------------------------------------------------------------------------------------------------

# Of the compiler's target: it may be another machine than this one.
MACHINE := $(firstword $(subst -, ,$(shell $(CXX) -dumpmachine 2>/dev/null)) $(shell uname -m))
X86 := $(filter x86_64 amd64 i686,$(MACHINE))
# generic: what every machine of the kind can run
ARCHFLAGS := $(if $(filter generic,$(ARCH)),,$(if $(X86),-march=$(ARCH) -mprefer-vector-width=512,-mcpu=$(ARCH)))

# The arithmetic contract (src/math/numerics.h): no contraction of a*b+c, no reordering, no errno from sqrt. Never -ffast-math.
CONTRACT := -ffp-contract=off -fno-math-errno -fno-trapping-math

# Without a fused multiply-add the contract's own rounds a double to a float (numerics.h). g++ 12, where it makes vectors of statements
# that stand side by side, takes two such floats, widened again, for the doubles that they were.
CLANG := $(findstring clang,$(shell $(CXX) --version 2>/dev/null))
CXXFLAGS ?=
CPPFLAGS ?=
WERROR ?= 1
MACROS := $(CXX) $(ARCHFLAGS) $(CPPFLAGS) $(CXXFLAGS) -dM -E -x c++ /dev/null 2>/dev/null
FUSED := $(shell $(MACROS) | grep -E '__FMA__|__aarch64__|__ARM_FEATURE_FMA')
CONTRACT += $(if $(CLANG)$(FUSED),,-fno-tree-slp-vectorize)

# OpenMP's simd pragmas; threads are the standard library's. OPENMP=0: what a compiler does that does not know them.
OPENMPFLAGS := $(if $(filter 0,$(OPENMP)),,-fopenmp-simd) -pthread

COMMA := ,
SPACE := $(subst ,, )
# clang++ warns where it makes no vectors of a loop that asks for them. Such a loop is slow, not wrong, and each version has others: no
# reason to stop. Under the sanitizers, at -O1, it is every loop.
FLAGS = -std=c++17 $(ARCHFLAGS) $(CONTRACT) $(OPENMPFLAGS) -Wall -Wextra $(if $(filter 0,$(WERROR)),,-Werror) -Wno-psabi -Wno-unknown-pragmas -Isrc $(CPPFLAGS) \
  $(if $(CLANG),-Wno-error=pass-failed) \
  $(if $(filter double,$(REAL)),-DPETROGLYPH_DOUBLE) $(if $(filter 1,$(DEBUG)),-DPETROGLYPH_POISON) \
  $(if $(filter 1,$(SANITIZE)),-g -fsanitize=address$(COMMA)undefined -fno-sanitize-recover=all -DPETROGLYPH_POISON \
  -Wno-pass-failed)
COMPUTING = $(FLAGS) $(OPTIMIZE) $(CXXFLAGS)
REST = $(FLAGS) $(OPTIMIZE_REST) $(CXXFLAGS) $(if $(STANDARD),-include $(BUILD)/standard.h)
LINKFLAGS = $(CXXFLAGS) $(OPENMPFLAGS) $(if $(filter 1,$(SANITIZE)),-fsanitize=address$(COMMA)undefined) $(LDFLAGS) $(CUDA_LIBRARIES) $(MPI_LIBRARIES)
# As they are for all files, whatever a target adds for itself; and what the compiler makes of them: its version, and which
# instructions this machine's are.
COMMAND_LINES := $(CXX) $(COMPUTING) $(OPTIMIZE_REST) $(LDFLAGS) $(shell $(MACROS) | cksum)
HEADER_COMMAND := $(CXX) $(FLAGS) $(OPTIMIZE_REST) $(CXXFLAGS) -x c++-header

# The standard library's headers, compiled once (g++ only). Every file names what it includes all the same: clang++ has them from there.
STANDARD := $(if $(CLANG),,$(BUILD)/standard.h.gch)

# ---- CUDA -----------------------------------------------------------------------------------------------------------

# auto: where a GPU is and an nvcc that works, with the default flags only; the GPU knows no double build and no sanitizer. The
# targets that cannot do without take it for 1.
NVCC ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_UNSAID := $(if $(filter test-gpu% bench-gpu,$(MAKECMDGOALS)),1,auto)
CUDA ?= $(CUDA_UNSAID)
# An environment's may be somebody else's: the folder of a toolkit.
ifneq ($(filter-out 0 1 auto,$(CUDA))$(filter-out 1,$(words $(CUDA))),)
$(if $(filter environment,$(origin CUDA)),,$(error CUDA=$(CUDA): expected 0, 1 or auto))
override CUDA := $(CUDA_UNSAID)
endif
CUDA_MEANT := $(filter 1-float-0 auto-float-0-build,$(CUDA)-$(REAL)-$(SANITIZE)$(if $(filter auto,$(CUDA)),-$(BUILD)))
CUDA_UNMEANT := $(if $(filter float-0,$(REAL)-$(SANITIZE)),BUILD=$(BUILD); CUDA=1 builds it there$(COMMA) too,not with $(if $(filter 1,$(SANITIZE)),SANITIZE=1,REAL=$(REAL)))
CUDA_POSSIBLE := $(if $(CUDA_MEANT),$(if $(NVCC),yes))
# The compiler itself, where it is called through a cache.
CCBIN := $(if $(filter ccache distcc sccache,$(notdir $(firstword $(CXX)))),$(word 2,$(CXX)),$(firstword $(CXX)))
# Where it is, where a link to it leads, and what it says itself, if it is a script around nvcc: the toolkit's other tools and
# libraries are around these.
NVCC_FOUND := $(if $(CUDA_POSSIBLE),$(shell command -v $(lastword $(NVCC)) 2>/dev/null))
NVCC_TOP := $(if $(NVCC_FOUND),$(shell $(NVCC) --dryrun -x cu /dev/null -o /dev/null 2>&1 | sed -n 's/^\#\$$ TOP=//p'))
NVCC_FOLDERS := $(dir $(realpath $(NVCC_FOUND)) $(NVCC_FOUND)) $(NVCC_TOP:%=%/bin/)
# What nvidia-smi says where it says numbers, 9.0 as 90. An error it prints in the same place. Else what nvcc asks for its
# -arch=native, which fails where there is no GPU.
GPU_HERE := $(if $(CUDA_POSSIBLE),$(or \
  $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | \
    sed -n 's/^\([0-9][0-9]*\)\.\([0-9]\)$$/\1\2/p' | sort -u), \
  $(shell said=$$($(firstword $(NVCC_FOLDERS))__nvcc_device_query 2>/dev/null) && \
    echo "$$said" | tr -cs 0-9 '[\n*]' | grep -x '[1-9][0-9]\{1,2\}' | sort -u)))
GPU_KNOWN := $(if $(GPU_HERE),$(filter $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch 2>/dev/null)),$(GPU_HERE)))
# Images for the GPUs that are here; else for two generations of large ones, and PTX that others compile for themselves when they
# first run it: older ones that of 75, newer ones that of the last.
GPU_ARCH ?= $(or $(GPU_KNOWN),80 90)
GPU_PTX ?= $(if $(GPU_KNOWN),,$(if $(filter file,$(origin GPU_ARCH)),75)) $(lastword $(GPU_ARCH))
GENCODE := $(foreach a,$(GPU_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) \
  $(foreach a,$(GPU_PTX),-gencode arch=compute_$(a),code=compute_$(a))
# nvcc takes more flags from these, such as -use_fast_math, which no #error can see.
unexport NVCC_APPEND_FLAGS NVCC_PREPEND_FLAGS
NVCCFLAGS := -std=c++17 -O3 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -Isrc -DPETROGLYPH_CUDA
CUDA_ASKED := $(if $(CUDA_POSSIBLE),$(if $(filter auto,$(CUDA)),$(GPU_HERE),$(filter 1,$(CUDA))))
CUDA_ANSWER := $(if $(CUDA_ASKED),$(shell src/gpu/probe.sh $(BUILD)/cuda_probe $(NVCC) $(NVCCFLAGS) $(GENCODE) -ccbin $(CCBIN)))
CUDA_WANTED := $(filter yes,$(CUDA_ANSWER))
ifneq ($(and $(filter 1,$(CUDA)),$(CUDA_MEANT),$(if $(CUDA_WANTED),,no)),)
$(error CUDA=1: $(or $(CUDA_ANSWER),no nvcc here))
endif
# Of the toolkit, of conda's, of the HPC SDK's.
CUDART := $(if $(CUDA_WANTED),$(firstword $(wildcard $(foreach folder,$(NVCC_FOLDERS),$(patsubst %,$(folder)%/libcudart_static.a, \
  ../lib64 ../lib ../targets/*/lib ../../cuda/lib64)))))
CUDA_LIBRARIES := $(if $(CUDA_WANTED),$(patsubst %/,-L%,$(dir $(CUDART))) -lcudart_static -ldl -lrt -lpthread)

# ---- MPI ------------------------------------------------------------------------------------------------------------

# auto: where mpicxx is found, with the default flags only. Without it a run is one process.
MPICXX ?= mpicxx
MPI ?= auto
MPI_POSSIBLE := $(if $(filter 0,$(MPI)),,$(if $(filter auto,$(MPI)),$(if $(filter 1,$(SANITIZE)),,$(shell command -v $(MPICXX))),yes))
# "g++ -I… -L… -lmpi", of which the compiler's C++ interface is not wanted
MPI_SHOWN := $(if $(MPI_POSSIBLE),$(filter-out -lmpi_cxx -lmpicxx,$(shell $(MPICXX) -show 2>/dev/null)))
MPI_FLAGS := $(if $(MPI_SHOWN),-DPETROGLYPH_MPI $(patsubst -I%,-isystem %,$(filter -I%,$(MPI_SHOWN))))
MPI_LIBRARIES := $(filter -L% -l% -Wl$(COMMA)%,$(MPI_SHOWN))

# ---- What is built --------------------------------------------------------------------------------------------------

# A room of src/ becomes a library, and a program is linked with the rooms that it needs and those that they need: train_copy waits for no
# analysis. Includes point from left to right only (test/rooms.sh), and so these lists need no room twice.
ROOMS := base math ops reference cpu models tokenizers tasks figures train exchange generation analysis reproduction
KERNELS := $(wildcard src/gpu/*.cu)
MODELS := models $(if $(CUDA_WANTED),gpu) cpu reference ops math base
TRAINING := train figures tasks tokenizers $(MODELS)
ANALYSIS := analysis generation $(TRAINING)

ROOMS_train_copy := $(TRAINING)
ROOMS_train_text := generation $(TRAINING)
ROOMS_train_regular := $(ANALYSIS)
ROOMS_train_image := $(ANALYSIS)
ROOMS_scaling := $(ANALYSIS)
ROOMS_convert := exchange $(TRAINING)
ROOMS_generate := generation $(TRAINING)
ROOMS_tokenize := tasks tokenizers math base
ROOMS_inspect := $(ANALYSIS)
ROOMS_reproduce := reproduction $(ANALYSIS)
PROGRAMS := train_copy train_text train_regular train_image scaling convert generate tokenize inspect reproduce

ROOMS_numerics := math base
ROOMS_numerics_exhaustive := math base
ROOMS_files := figures $(MODELS)
ROOMS_oracle := $(MODELS)
ROOMS_analysis := $(ANALYSIS)
ROOMS_identities := $(ANALYSIS)
ROOMS_gradients := $(MODELS)
ROOMS_regular_languages := tasks tokenizers math base
ROOMS_images := figures tasks tokenizers math base
ROOMS_text_data := tasks tokenizers math base
ROOMS_exchange := exchange $(TRAINING)
ROOMS_bits := $(TRAINING)
ROOMS_bench := $(TRAINING)
ROOMS_ranks := $(TRAINING)
ROOMS_bench_ranks := $(TRAINING)
ROOMS_side_by_side := $(TRAINING)
ROOMS_programs := $(MODELS)
ROOMS_reproduction := reproduction $(ANALYSIS)
ROOMS_runs := math base
ROOMS_storm := reproduction $(ANALYSIS)
ROOMS_damage := exchange $(TRAINING)
ROOMS_fuzz := $(ROOMS_damage)
ROOMS_host_run := $(filter-out gpu,$(TRAINING))
ROOMS_gpu_run := $(MODELS)
ROOMS_ptx_run := $(filter-out gpu,$(TRAINING))
TESTS := numerics numerics_exhaustive files oracle analysis identities gradients regular_languages images text_data exchange bits bench bench_ranks side_by_side ranks programs reproduction runs storm damage fuzz
SANITIZERS := memcheck racecheck synccheck initcheck
GPU_PARTS := run math training $(SANITIZERS)
# These share the table of cases.
OF_CASES := analysis identities gradients bits bench

.PHONY: all examples test test-all test-exhaustive storm fuzz bench test-gpu $(GPU_PARTS:%=test-gpu-%) bench-gpu format lint clean help float-tests double-tests install install-built uninstall check-docs
.DELETE_ON_ERROR:
all: $(PROGRAMS)
ifeq ($(MPI_FLAGS),)
	@echo "left out: MPI ($(if $(filter 0,$(MPI)),MPI=0,$(if $(filter 1,$(SANITIZE)),SANITIZE=1,no $(MPICXX) here)))"
endif
ifeq ($(CUDA_WANTED),)
	@echo "left out: CUDA ($(if $(filter 0,$(CUDA)),CUDA=0,$(if $(CUDA_MEANT),$(if $(NVCC),$(or $(CUDA_ANSWER),no GPU here; CUDA=1 builds it all the same),no nvcc here),$(CUDA_UNMEANT))))"
endif

# Also where it was a link into another build's folder, whose program may be younger.
$(PROGRAMS): %: $(BUILD)/% FORCE
	@[ "$$(readlink $@)" = "$<" ] || [ ! -w . ] || ln -sf $< $@

# The files of a room that does not compute are compiled as one, in half the time; FILES=1: each by itself, for who works on one. Those with
# flags of their own are always by themselves.
FILES ?= 0
JOINED := $(if $(filter 1,$(FILES)),,$(filter-out cpu math reference,$(ROOMS)))
ALONE := src/base/version.cpp src/train/device.cpp src/train/ranks.cpp
FILES_OF = $(sort $(wildcard src/$(1)/*.cpp))
define ROOM
OBJECTS_$(1) := $(patsubst src/%.cpp,$(BUILD)/%.o,$(if $(filter $(1),$(JOINED)),src/$(1)/room.cpp $(filter $(ALONE),$(call FILES_OF,$(1))),$(call FILES_OF,$(1))))
endef
$(foreach room,$(ROOMS),$(eval $(call ROOM,$(room))))
$(JOINED:%=$(BUILD)/%/room.cpp): $(BUILD)/%/room.cpp: FORCE
	@mkdir -p $(@D)
	@printf '#include "%s"\n' $(patsubst src/%,%,$(filter-out $(ALONE),$(call FILES_OF,$*))) > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
$(JOINED:%=$(BUILD)/%/room.o): $(BUILD)/%/room.o: $(BUILD)/%/room.cpp $(BUILD)/flags $(STANDARD)
	@echo "  CXX  src/$*/*.cpp"
	@$(CXX) $(REST) -MMD -MP -c -o $@ $<
OBJECTS_gpu := $(KERNELS:src/%.cu=$(BUILD)/%.o)
$(foreach room,$(ROOMS) gpu,$(eval $(BUILD)/$(room).a: $(OBJECTS_$(room))))
# What it holds is listed: one whose source is gone goes, too.
$(ROOMS:%=$(BUILD)/%.a) $(BUILD)/gpu.a: %.a: %.objects
	@rm -f $@
	@$(AR) rcs $@ $(filter %.o,$^)
$(ROOMS:%=$(BUILD)/%.objects) $(BUILD)/gpu.objects: FORCE
	@mkdir -p $(@D)
	@echo '$(OBJECTS_$(basename $(@F)))' | cmp -s - $@ || echo '$(OBJECTS_$(basename $(@F)))' > $@

$(foreach p,$(PROGRAMS),$(eval $(BUILD)/$(p): $(BUILD)/programs/$(p).o $(ROOMS_$(p):%=$(BUILD)/%.a)))
$(foreach t,$(TESTS),$(eval $(BUILD)/test/$(t): $(BUILD)/test/$(t).o $(if $(filter $(t),$(OF_CASES)),$(BUILD)/test/cases.o) $(if $(filter $(t),bits),$(BUILD)/test/fingerprints.o) $(if $(filter $(t),bits gradients),$(BUILD)/test/gpu_checks.o) $(ROOMS_$(t):%=$(BUILD)/%.a)))
$(PROGRAMS:%=$(BUILD)/%) $(TESTS:%=$(BUILD)/test/%):
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)

# g++'s -O3 makes copies of these files' loops for cases that they do not have: -O2 with its vectoriser let loose compiles them in half the
# time, and the norm's forward pass is 1.5 times faster. The other files lose by it: the relation backward tenfold, a weight's gradient,
# whose sums -O2 takes out of their registers with each term, threefold.
LEAN := linear linear_relation normalize
$(if $(STANDARD),$(if $(filter -O3,$(OPTIMIZE)),$(LEAN:%=$(BUILD)/cpu/%.o))): OPTIMIZE := -O2 -fvect-cost-model=dynamic

# Programs to read. Those of one file are compiled as their first lines say.
ONE_FILE := causal_rn gpt2
examples: $(patsubst %,$(BUILD)/examples/%,$(ONE_FILE) train)
$(ONE_FILE:%=$(BUILD)/examples/%): $(BUILD)/examples/%: examples/%.cpp
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) -O3 -march=native -ffp-contract=off -fno-math-errno -fopenmp $< -o $@
$(BUILD)/examples/train.o: examples/train.cpp $(BUILD)/flags $(STANDARD)
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(REST) -MMD -MP -c -o $@ $<
$(BUILD)/examples/train: $(BUILD)/examples/train.o $(TRAINING:%=$(BUILD)/%.a)
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)

$(BUILD)/cpu/%.o: src/cpu/%.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(COMPUTING) -MMD -MP -c -o $@ $<
# The definitions, which no vectoriser touches.
$(BUILD)/reference/%.o: src/reference/%.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(COMPUTING) -fno-tree-vectorize -fno-tree-slp-vectorize -MMD -MP -c -o $@ $<
$(BUILD)/math/%.o: src/math/%.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(COMPUTING) -MMD -MP -c -o $@ $<
$(BUILD)/test/numerics%.o: test/numerics%.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(COMPUTING) -Itest -MMD -MP -c -o $@ $<
# Before the next one, which fits it too: make 3.81 takes the first.
$(BUILD)/test/ptx/%.o: test/ptx/%.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(COMPUTING) -Itest -include test/cuda_on_host.h -MMD -MP -c -o $@ $<
$(BUILD)/test/%.o: test/%.cpp $(BUILD)/flags $(STANDARD)
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(REST) -Itest -MMD -MP -c -o $@ $<
$(BUILD)/%.o: src/%.cpp $(BUILD)/flags $(STANDARD)
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(REST) -MMD -MP -c -o $@ $<

$(BUILD)/standard.h.gch: src/base/standard.h $(BUILD)/flags
	@echo "  CXX  $<"
	@cp $< $(BUILD)/standard.h
	@$(HEADER_COMMAND) -o $@ $<

# The commit comes from git, or from the archive that git made and wrote it into VERSION.
VERSION := $(shell sed 's/ .*//' VERSION)
COMMIT := $(shell if [ -e .git ] && commit=$$(git log -1 --format='%h of %cs' 2>/dev/null); then \
  echo "$$commit" | sed "s/ /$$(git diff --quiet HEAD 2>/dev/null || echo +) /"; else sed -n 's/^[^ ]* \([0-9a-f]*\) /\1 of /p' VERSION; fi)
$(BUILD)/version: FORCE
	@mkdir -p $(@D)
	@echo '$(VERSION)$(if $(COMMIT),$(COMMA) $(COMMIT))' | cmp -s - $@ || echo '$(VERSION)$(if $(COMMIT),$(COMMA) $(COMMIT))' > $@
$(BUILD)/base/version.o: $(BUILD)/version
$(BUILD)/base/version.o: override CXXFLAGS += -DPETROGLYPH_VERSION='"$(VERSION)$(if $(COMMIT),$(COMMA) $(COMMIT))"'

# The one file that knows MPI.
$(BUILD)/train/ranks.o: override CXXFLAGS += $(MPI_FLAGS)
$(BUILD)/train/ranks.o: $(BUILD)/mpi_flags

# The two files that know whether there is a GPU.
$(BUILD)/train/device.o $(BUILD)/test/bench.o: override CXXFLAGS += $(if $(CUDA_WANTED),-DPETROGLYPH_CUDA)
$(BUILD)/train/device.o $(BUILD)/test/bench.o: $(BUILD)/cuda_flags

$(BUILD)/gpu/%.o: src/gpu/%.cu $(BUILD)/cuda_flags
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	@$(NVCC) $(NVCCFLAGS) $(GENCODE) -ccbin $(CCBIN) -Xcompiler -ffp-contract=off,-Wall,-Wextra -MMD -MP -c -o $@ $<

# The same kernels for the host (test/cuda_on_host.h): threads become fibers. A thread's loops gain nothing from vectors, and
# g++ 12 with -march=znver3 loses the bias of a product in one of them.
HOST_SHIM := $(BUILD)/test/cuda_on_host.o $(BUILD)/test/cuda_on_host_runtime.o
HOST_KERNELS := $(KERNELS:src/gpu/%.cu=$(BUILD)/host/%.o) $(HOST_SHIM)
$(BUILD)/host/%.o: src/gpu/%.cu $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $< for the host"
	@$(CXX) $(FLAGS) $(CXXFLAGS) -O2 -fno-tree-vectorize $(if $(CLANG),,-Wno-maybe-uninitialized) -Itest -x c++ -include test/cuda_on_host.h -MMD -MP -c -o $@ $<
# As it is with CUDA: that of the room may be without.
$(BUILD)/host/train/device.o: src/train/device.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $< for the host"
	@$(CXX) $(FLAGS) $(CXXFLAGS) $(OPTIMIZE_REST) -DPETROGLYPH_CUDA -MMD -MP -c -o $@ $<
$(BUILD)/test/host_run.o: test/host_run.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(COMPUTING) -Itest -include test/cuda_on_host.h -MMD -MP -c -o $@ $<
$(BUILD)/test/gpu_math_on_host.o: test/gpu_math.cu $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $< for the host"
	@$(CXX) $(FLAGS) $(CXXFLAGS) -O2 -Itest -x c++ -include test/cuda_on_host.h -MMD -MP -c -o $@ $<
$(BUILD)/test/gpu_math_on_host: $(BUILD)/test/gpu_math_on_host.o $(HOST_SHIM) $(BUILD)/math.a $(BUILD)/base.a
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)
$(BUILD)/test/host_run: $(BUILD)/test/host_run.o $(BUILD)/test/gpu_checks.o $(BUILD)/test/cases.o $(HOST_KERNELS) $(BUILD)/host/train/device.o $(ROOMS_host_run:%=$(BUILD)/%.a)
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)
# What nvcc makes of them, run by the machine of test/ptx; the host run's launches find it there.
PTX_MACHINE := $(patsubst test/%.cpp,$(BUILD)/test/%.o,$(filter-out test/ptx/ptx_%.cpp,$(wildcard test/ptx/*.cpp)))
PTX_PROGRAM := $(PTX_MACHINE) $(BUILD)/test/gpu_checks.o $(BUILD)/test/fingerprints.o $(BUILD)/test/cases.o $(HOST_KERNELS)
$(BUILD)/test/ptx_run: $(BUILD)/test/ptx/ptx_run.o $(PTX_PROGRAM) $(ROOMS_ptx_run:%=$(BUILD)/%.a)
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)

# Its reader is one of the parsers that get damaged files.
$(BUILD)/test/damage $(BUILD)/test/fuzz: $(filter-out %/launch.o %/symbols.o,$(PTX_MACHINE))

$(BUILD)/test/ptx_opcodes: $(BUILD)/test/ptx/ptx_opcodes.o $(filter-out %/launch.o %/symbols.o,$(PTX_MACHINE))
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)
$(BUILD)/test/ptx_mutations: $(BUILD)/test/ptx/ptx_mutations.o $(PTX_PROGRAM) $(ROOMS_ptx_run:%=$(BUILD)/%.a)
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)

# For one architecture in `make test`, in `make test-all` for all that this nvcc knows of these.
PTX_FIRST := compute_90
PTX_KNOWN := $(if $(NVCC),$(shell $(NVCC) --list-gpu-arch 2>/dev/null))
PTX_REST := $(filter compute_75 compute_80 compute_120,$(PTX_KNOWN))
PTX_ALL := $(PTX_FIRST) $(PTX_REST)
PTX_OF = $(KERNELS:src/gpu/%.cu=$(BUILD)/ptx/$(1)/%.ptx)
define PTX
$(BUILD)/ptx/$(1)/%.ptx: src/gpu/%.cu $(BUILD)/cuda_flags
	@mkdir -p $$(@D)
	@echo "  PTX  $$< for $(1)"
	@$$(NVCC) $$(NVCCFLAGS) -ccbin $$(CCBIN) -arch=$(1) -lineinfo -ptx -MMD -MP -o $$@ $$<
endef
$(foreach a,$(PTX_ALL),$(eval $(call PTX,$(a))))

$(BUILD)/test/cuda_on_host_test: $(BUILD)/test/cuda_on_host_test.o $(HOST_SHIM)
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)

# Change when a command line or a compiler's version does, so that objects of other flags are never mixed.
CUDA_LINE = $(CXX) $(CUDA_WANTED) $(NVCC) $(if $(NVCC),$(shell $(NVCC) --version 2>/dev/null | tail -n 1)) $(NVCCFLAGS) $(GENCODE)
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(COMMAND_LINES)' | cmp -s - $@ || echo '$(COMMAND_LINES)' > $@
$(BUILD)/cuda_flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CUDA_LINE)' | cmp -s - $@ || echo '$(CUDA_LINE)' > $@
$(BUILD)/mpi_flags: FORCE
	@mkdir -p $(@D)
	@echo '$(MPI_FLAGS) $(MPI_LIBRARIES)' | cmp -s - $@ || echo '$(MPI_FLAGS) $(MPI_LIBRARIES)' > $@
.PHONY: FORCE
FORCE:

# ---- Tests ----------------------------------------------------------------------------------------------------------

# What is built with the default flags, and what only the double build can tell.
# The longest first, so that none goes on alone at the end.
FLOAT_TESTS := host_run ranks reproduction programs images exchange runs numerics files oracle analysis regular_languages text_data bits \
  storm damage cuda_on_host_test gpu_math_on_host
DOUBLE_TESTS := gradients oracle identities analysis
DOUBLE := $(BUILD)/double

float-tests: $(FLOAT_TESTS:%=$(BUILD)/test/%) $(BUILD)/examples/train $(BUILD)/test/bench $(PROGRAMS:%=$(BUILD)/%)
double-tests:
	@$(MAKE) --no-print-directory BUILD=$(DOUBLE) REAL=double $(DOUBLE_TESTS:%=$(DOUBLE)/test/%)

HOUSE_TESTS := test/rooms.sh test/names.sh test/rows.sh "test/big_endian.sh $(CXX)" "test/cuda_found.sh $(CXX)" test/make.sh "test/check_docs.sh --consistent"
BUILT_TESTS := $(FLOAT_TESTS:%=$(BUILD)/test/%) $(DOUBLE_TESTS:%=$(DOUBLE)/test/%) "test/python.sh $(BUILD)" "test/install.sh $(BUILD)" "test/examples.sh $(BUILD)" \
  "$(BUILD)/test/bench --once --threads 1"
export NVCC NVCCFLAGS CCBIN

# One PTX for who reads it and for who runs it. Where nvcc cannot make it there is none: then a line says so.
PTX_ANSWER := $(if $(filter test test-all,$(MAKECMDGOALS)),$(if $(NVCC),$(shell \
  src/gpu/probe.sh $(BUILD)/ptx_probe $(NVCC) $(NVCCFLAGS) -gencode arch=$(PTX_FIRST),code=$(PTX_FIRST) -ccbin $(CCBIN)),there is no nvcc))
PTX_MADE := $(filter yes,$(PTX_ANSWER))
PTX_BUILT := $(if $(PTX_MADE),$(patsubst %,$(BUILD)/test/ptx_%,opcodes run mutations) $(call PTX_OF,$(PTX_FIRST)))
PTX_BUILT_ALL := $(if $(PTX_MADE),$(foreach a,$(PTX_ALL),$(call PTX_OF,$(a))))
PTX_COMMAND = "env PTX=$(BUILD)/ptx/$(1) $(2)"
PTX_SKIPPED := "test/skip.sh ptx: $(PTX_ANSWER)"
PTX_TESTS := $(if $(PTX_MADE),"test/ptx_lint.sh $(call PTX_OF,$(PTX_FIRST))" $(BUILD)/test/ptx_opcodes \
  $(call PTX_COMMAND,$(PTX_FIRST),$(BUILD)/test/ptx_run) $(call PTX_COMMAND,$(PTX_FIRST),$(BUILD)/test/ptx_mutations),$(PTX_SKIPPED))
PTX_TESTS_ALL := $(if $(PTX_MADE),"test/ptx_lint.sh $(foreach a,$(PTX_ALL),$(call PTX_OF,$(a)))" $(BUILD)/test/ptx_opcodes \
  $(call PTX_COMMAND,$(PTX_FIRST),PTX_ORDERS=all $(BUILD)/test/ptx_run) \
  $(call PTX_COMMAND,$(PTX_FIRST),PTX_MUTATIONS=220 $(BUILD)/test/ptx_mutations) \
  $(foreach a,$(PTX_REST),$(call PTX_COMMAND,$(a),$(BUILD)/test/ptx_run)) \
  "test/sass.sh $(foreach a,$(PTX_ALL),$(call PTX_OF,$(a)))",$(PTX_SKIPPED))

# The programs' tests are of the CPU, also where there is a GPU.
ON_THE_CPU := CUDA_VISIBLE_DEVICES=
test: float-tests double-tests $(PTX_BUILT)
	@$(ON_THE_CPU) test/run.sh $(HOUSE_TESTS) $(PTX_TESTS) $(BUILT_TESTS)

# The same bits from every build: each of these compares itself with test/golden.txt and with the oracles.
MATRIX := generic O0 noopenmp plain sanitize races $(if $(X86),v3 oldest) $(if $(shell command -v clang++),clang)
generic_FLAGS := ARCH=generic
# Flags that come last and take away what ARCH gave.
oldest_FLAGS := CXXFLAGS=-march=x86-64 OPENMP=0
O0_FLAGS := OPTIMIZE=-O0
noopenmp_FLAGS := OPENMP=0
# Both: loops are then vectorised in other ways.
plain_FLAGS := ARCH=generic OPENMP=0
# What two threads do to one word without an order between them.
races_FLAGS := OPTIMIZE=-O1 CXXFLAGS=-fsanitize=thread LDFLAGS=-fsanitize=thread MPI=0
# What does not compute takes a third of the compiler's time at -O0, and the checks are the same.
sanitize_FLAGS := SANITIZE=1 OPTIMIZE=-O1 OPTIMIZE_REST=-O0
v3_FLAGS := ARCH=x86-64-v3
clang_FLAGS := CXX=clang++ FILES=1
sanitize_TESTS := files text_data exchange programs damage
TESTS_OF = $(addprefix $(BUILD)/$(1)/test/,bits $(if $(filter races,$(1)),,oracle) $($(1)_TESTS))

matrix-%:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/$* $($*_FLAGS) $(call TESTS_OF,$*) $(if $($*_TESTS),$(PROGRAMS:%=$(BUILD)/$*/%),$(BUILD)/$*/train_copy)
# Other processors, where their compiler and an emulator of their programs are installed; a line of skip where not.
PROCESSORS := aarch64 riscv64
# riscv64: g++ 12 has no vectors for it, and warns of every loop that asks for them.
riscv64_FLAGS := CXXFLAGS=-Wno-error
CROSS_FLAGS = CXX=$*-linux-gnu-g++ ARCH=generic OPTIMIZE=-O2 LDFLAGS=-static MPI=0 CUDA=0 $($*_FLAGS)
EMULATED = $(foreach p,$(PROCESSORS),"test/emulated.sh $(p) $(BUILD)/$(p) $(BUILD)/train_copy")
processor-%:
	@if command -v $*-linux-gnu-g++ > /dev/null && command -v qemu-$* > /dev/null; then \
	  $(MAKE) --no-print-directory BUILD=$(BUILD)/$* $(CROSS_FLAGS) $(addprefix $(BUILD)/$*/,test/bits test/oracle train_copy); fi
# As long as a third of all others together: begun last, it went on alone.
LONGEST := $(BUILD)/sanitize/test/programs
test-all: $(PROCESSORS:%=processor-%) float-tests double-tests $(PTX_BUILT) $(PTX_BUILT_ALL) $(MATRIX:%=matrix-%)
	@$(ON_THE_CPU) test/run.sh $(LONGEST) $(HOUSE_TESTS) $(PTX_TESTS_ALL) $(BUILT_TESTS) \
	  $(filter-out $(LONGEST),$(foreach m,$(MATRIX),$(call TESTS_OF,$(m)))) $(EMULATED) \
  $(if $(filter clang,$(MATRIX)),,"test/skip.sh clang: there is no clang++") $(if $(X86),,"test/skip.sh v3, oldest: of x86-64 alone")

# Every function of numerics.h on all 2^32 inputs.
test-exhaustive: $(BUILD)/test/numerics_exhaustive
	@$<

# Runs that are killed, processes that meet, files that are damaged: minutes where nothing else runs.
KILLS ?= 3000
ROUNDS ?= 300
DAMAGED ?= 1000000
storm: $(BUILD)/test/storm $(BUILD)/test/damage $(BUILD)/test/ranks $(PROGRAMS:%=$(BUILD)/%)
	@test/run.sh "$(BUILD)/test/damage --files $(DAMAGED)" "$(BUILD)/test/storm --kills $(KILLS) --rounds $(ROUNDS)" \
	  "env PETROGLYPH_KILLS=50 $(BUILD)/test/ranks killed"

# Every parser under clang's libFuzzer, FUZZ_SECONDS each, where that is installed; what it finds goes to build/fuzz.
FUZZ_SECONDS ?= 60
fuzz:
	@test/fuzz.sh $(BUILD)/fuzz $(FUZZ_SECONDS) "$(MAKE) --no-print-directory BUILD=$(BUILD)/fuzz CXX=clang++ CUDA=0 OPENMP=0 \
	  SANITIZE=1 OPTIMIZE=-O1 CXXFLAGS=-fsanitize=fuzzer-no-link LDFLAGS=-fsanitize=fuzzer $(BUILD)/fuzz/test/fuzz"

bench: $(BUILD)/test/bench $(BUILD)/test/bench_ranks
	@$<
	@$(if $(MPI_FLAGS),for n in 2 4; do OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
	  mpirun --oversubscribe -n $$n $(BUILD)/test/bench_ranks || exit 1; done,echo "left out: the exchange between processes (no MPI)")

# Days; goes on where it stopped. make check-docs SECONDS=60: only what takes a minute at most.
check-docs: $(PROGRAMS)
	@test/check_docs.sh $(SECONDS)

# On a machine with a GPU: the host run's comparisons through the driver, every function on all 2^32 inputs, 200 steps of
# train_copy on both devices, and compute-sanitizer where it is installed. One after the other: a GPU may be one process's only.
GPU_TESTS := $(BUILD)/test/gpu_run $(BUILD)/test/gpu_math
$(BUILD)/test/gpu_run: $(BUILD)/test/gpu_run.o $(BUILD)/test/gpu_checks.o $(BUILD)/test/cases.o $(ROOMS_gpu_run:%=$(BUILD)/%.a)
$(BUILD)/test/gpu_math: $(BUILD)/test/gpu_math.o $(BUILD)/math.a $(BUILD)/base.a
$(BUILD)/test/gpu_math: override LDFLAGS += -fopenmp
$(GPU_TESTS):
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)
$(BUILD)/test/gpu_run.o: test/host_run.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(COMPUTING) -Itest -MMD -MP -c -o $@ $<
# What the host computes of it takes an instruction for each fma, where the processor has one: calls take many times as long.
$(BUILD)/test/gpu_math.o: test/gpu_math.cu $(BUILD)/flags $(BUILD)/cuda_flags
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	@$(NVCC) $(NVCCFLAGS) $(GENCODE) -ccbin $(CCBIN) -Xcompiler $(subst $(SPACE),$(COMMA),$(strip $(ARCHFLAGS) $(CONTRACT) -fopenmp)) \
	  -Itest -MMD -MP -c -o $@ $<
test-gpu: $(GPU_TESTS) $(PROGRAMS:%=$(BUILD)/%)
	@TEST_JOBS=1 test/run.sh $(GPU_TESTS) "test/gpu_training.sh $(BUILD)/train_copy" "test/gpu_sanitizer.sh $(BUILD)/test/gpu_run"
# Its parts, for who has a GPU for minutes at a time.
test-gpu-run test-gpu-math: test-gpu-%: $(BUILD)/test/gpu_%
	@test/run.sh $<
test-gpu-training: $(BUILD)/train_copy
	@test/run.sh "test/gpu_training.sh $<"
$(SANITIZERS:%=test-gpu-%): test-gpu-%: $(BUILD)/test/gpu_run
	@test/run.sh "test/gpu_sanitizer.sh $< $*"
bench-gpu: $(BUILD)/test/bench
	@$< --device cuda

# ---- The rest -------------------------------------------------------------------------------------------------------

SOURCES := $(wildcard src/*/*.h src/*/*.cpp src/*/*.cu src/*/*.cuh test/*.h test/*.cpp test/*.cu test/ptx/*.h test/ptx/*.cpp)

format:
	@clang-format -i $(filter-out src/ops/catalogue.h,$(SOURCES))
lint: $(BUILD)/flags
	@clang-format --dry-run -Werror $(filter-out src/ops/catalogue.h,$(SOURCES))
	@clang-tidy --quiet $(filter src/%.cpp,$(SOURCES)) -- -std=c++17 -Isrc -fopenmp-simd -DPETROGLYPH_VERSION=\"\"

# All programs behind one name, so that none of theirs stands in another's way: petroglyph train_copy --length 16
PREFIX ?= /usr/local
INSTALLED := $(if $(filter /%,$(firstword $(PREFIX))),,$(CURDIR)/)$(PREFIX)
LIBEXEC := $(INSTALLED)/libexec/petroglyph
COMMAND := $(DESTDIR)$(INSTALLED)/bin/petroglyph
MAN := $(DESTDIR)$(INSTALLED)/share/man/man1
COMPLETIONS := $(DESTDIR)$(INSTALLED)/share/bash-completion/completions
install: $(PROGRAMS:%=$(BUILD)/%)
	@$(MAKE) --no-print-directory install-built
# Builds nothing: for who builds as himself and installs as root.
install-built:
	@umask 022 && mkdir -p "$(DESTDIR)$(INSTALLED)/bin" "$(DESTDIR)$(LIBEXEC)" "$(MAN)" "$(COMPLETIONS)"
	@install -m 755 $(PROGRAMS:%=$(BUILD)/%) "$(DESTDIR)$(LIBEXEC)"
	@sed 's|@LIBEXEC@|$(LIBEXEC)|; s|@PROGRAMS@|$(PROGRAMS)|' install/petroglyph.in > "$(COMMAND)"
	@chmod 755 "$(COMMAND)"
	@install/man.sh $(PROGRAMS:%=$(BUILD)/%) > "$(MAN)/petroglyph.1"
	@chmod 644 "$(MAN)/petroglyph.1"
	@install -m 644 install/completion.bash "$(COMPLETIONS)/petroglyph"
	@echo "installed $(COMMAND)"
uninstall:
	@rm -rf "$(DESTDIR)$(LIBEXEC)" "$(COMMAND)" "$(MAN)/petroglyph.1" "$(COMPLETIONS)/petroglyph"

# Of a folder that is no build's nothing is removed.
clean:
	@[ ! -e "$(BUILD)/flags" ] || rm -rf "$(BUILD)"
	@for p in $(PROGRAMS); do [ "$$(readlink $$p)" != "$(BUILD)/$$p" ] || rm -f $$p; done

define HELP
make                  builds $(PROGRAMS) here; objects go to build/
make examples         builds the programs of examples/, which are for reading, into build/examples/
make test             every gradient, oracle, bit and program: six to twelve minutes on two cores, building included
make test-all         that, and bits and fixtures of every other build: instruction sets, -O0, clang++, no OpenMP, sanitizers
make test-exhaustive  the largest error of exp, log, tanh … over all 2^32 inputs
make storm            thousands of killed runs, of processes that meet, a million damaged files: docs/reliability.md
make fuzz             the parsers under clang's libFuzzer, where it is installed
make bench            how fast, and how near this machine's limits
make check-docs       runs the documentation's commands and compares their weights; SECONDS=60: those that take so many at most
make test-gpu         on a machine with a GPU: its bits against the CPU's; in parts: docs/gpu.md; make bench-gpu: its speed
make format lint      clang-format and clang-tidy, where they are installed
make install          into PREFIX=/usr/local: the command petroglyph, its man page, completion for bash; make uninstall
make clean

ARCH=native           instruction set: x86-64-v3, generic, … (the results are the same)
CUDA=auto             where a GPU is; 1 builds it, 0 leaves it out; GPU_ARCH="80 90": what to build for, default the GPU that is here
FILES=0               1 compiles every file by itself, not a room at a time: faster where few files change
MPI=auto              where mpicxx is: several processes train one model (mpirun -n 4 ./train_copy --shards 4); 0 leaves it out
CXX=g++ OPENMP=1 DEBUG=0 SANITIZE=0 OPTIMIZE=-O3 OPTIMIZE_REST=-Og REAL=float WERROR=1 BUILD=build
endef
export HELP
help:
	@echo "$$HELP"

# A damaged one must not keep anybody from removing it.
ifeq ($(filter clean,$(MAKECMDGOALS)),)
-include $(wildcard $(BUILD)/*.d $(BUILD)/*/*.d $(BUILD)/*/*/*.d)
endif
.PRECIOUS: $(BUILD)/%.o $(BUILD)/test/%.o
endif
