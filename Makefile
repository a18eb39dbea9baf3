# Petroglyph. `make help` lists the targets and the variables; docs/building.md explains them.

BUILD ?= build
ARCH ?= native
REAL ?= float
OPENMP ?= 1
CUDA ?= $(if $(filter test-gpu% bench-gpu,$(MAKECMDGOALS)),1,auto)
MPI ?= auto
WERROR ?= $(if $(filter test%,$(MAKECMDGOALS)),1,0)
PREFIX ?= /usr/local
NVCC ?= nvcc
MPICXX ?= mpicxx
$(if $(word 2,$(BUILD)),$(error BUILD=$(BUILD): the name of the build folder must not contain spaces))
# Without -j, make uses all cores.
CORES := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 1)
JOBS := $(if $(filter 0,$(MAKELEVEL)$(filter -j% --jobs%,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS"))),-j$(CORES))
MAKEFLAGS += $(JOBS)

# ---- Compiler flags --------------------------------------------------------------------------------------------------
# These change results: -Ofast, for example, links code that replaces subnormal numbers by zero.
UNSAFE := $(filter -Ofast -ffast-math -funsafe-math-optimizations -fassociative-math -freciprocal-math -ffinite-math-only \
  -fno-signed-zeros -fsingle-precision-constant -mrecip% -mdaz-ftz -ffp-model=%,$(CXX) $(CPPFLAGS) $(CXXFLAGS) $(LDFLAGS))
$(if $(UNSAFE),$(error $(UNSAFE): this flag would change the weights; remove it (the arithmetic contract: src/math/numerics.h)))
# The machine that the compiler makes code for; it may be another one than this.
TARGET := $(firstword $(subst -, ,$(shell $(CXX) -dumpmachine 2>/dev/null)) $(shell uname -m))
X86_FLAGS := -march=$(ARCH) -mprefer-vector-width=512
ARCH_FLAGS := $(if $(filter-out generic,$(ARCH)),$(if $(filter x86_64 amd64 i686,$(TARGET)),$(X86_FLAGS),-mcpu=$(ARCH)))
CLANG := $(findstring clang,$(shell $(CXX) --version 2>/dev/null))
MACROS = $(shell $(CXX) $(ARCH_FLAGS) $(CPPFLAGS) $(CXXFLAGS) -dM -E -x c++ /dev/null 2>/dev/null | $(1))
# The arithmetic contract: no contraction of a*b+c. These flags come last, behind the user's. Without an fma instruction
# numerics.h computes in double; g++ 12's SLP vectoriser then takes a float that is widened again for the double that it was.
CONTRACT := -ffp-contract=off -fno-math-errno -fno-trapping-math \
  $(if $(CLANG)$(call MACROS,grep -E '__FMA__|__aarch64__|__ARM_FEATURE_FMA'),,-fno-tree-slp-vectorize)
# OPENMP=0, or a compiler without OpenMP: one thread. g++'s OpenMP is linked as an archive, because src/cpu/parallel.cpp must set
# how long waiting threads spin before OpenMP starts.
OPENMP_MISSING := $(if $(filter 0,$(OPENMP)),,$(shell echo 'int main() {}' | $(CXX) -fopenmp -include omp.h -x c++ - -o /dev/null 2>&1 || echo no))
OPENMP_FLAGS := $(if $(filter 0,$(OPENMP)),,-fopenmp$(if $(OPENMP_MISSING),-simd))
LIBGOMP := $(if $(CLANG),,$(filter /%,$(shell $(CXX) -print-file-name=libgomp.a)))
OPENMP_LIBRARY := $(if $(filter -fopenmp,$(OPENMP_FLAGS)),$(or $(LIBGOMP:%=% -ldl),-fopenmp)) -pthread
# clang++ warns where it does not vectorise a loop: such a loop is slow, not wrong.
WARNINGS := -Wall -Wextra -Wno-psabi -Wno-unknown-pragmas $(if $(CLANG),-Wno-pass-failed)
# Loops that compute (SPEED) need -O3; all other files compile fastest with -Og. Results do not depend on the level.
OPTIMIZE = -Og
SPEED := $(addprefix $(BUILD)/,cpu/%.o math/%.o reference/%.o tokenizers/%.o test/numerics.o test/host_run.o test/gpu_run.o test/peak.o \
  test/gpu_math%.o test/ptx%.o host/gpu/%.o)
$(SPEED): OPTIMIZE = -O3
# The reference defines the operations; no vectoriser touches it.
$(BUILD)/reference/%.o: MORE = -fno-tree-vectorize -fno-tree-slp-vectorize
# The standard library's headers, compiled once: with g++ this halves the time of `make`.
STANDARD := $(if $(CLANG),,$(BUILD)/standard.h)
$(SPEED): STANDARD =

FLAGS = -std=c++17 $(ARCH_FLAGS) $(OPTIMIZE) $(WARNINGS) $(if $(filter 1,$(WERROR)),-Werror) -Isrc -Itest $(CPPFLAGS) $(CXXFLAGS) \
  $(if $(filter double,$(REAL)),-DPETROGLYPH_DOUBLE) $(CUDA_DEFINE) $(MPI_FLAGS) $(MORE) $(OPENMP_FLAGS) $(CONTRACT)

# ---- CUDA and MPI ----------------------------------------------------------------------------------------------------
# auto: MPI where its compiler wrapper works; CUDA in the default build where there are a GPU and an nvcc that works. Each
# probe compiles a program, and writes its answer into a file that is read here.
CCBIN := $(if $(filter ccache distcc sccache,$(notdir $(firstword $(CXX)))),$(word 2,$(CXX)),$(firstword $(CXX)))
NVCCFLAGS := -std=c++17 -O3 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -Isrc -DPETROGLYPH_CUDA
# nvcc takes more flags from these, such as -use_fast_math.
export WERROR NVCC NVCCFLAGS CCBIN
unexport NVCC_APPEND_FLAGS NVCC_PREPEND_FLAGS
CUDA_CHOICE := $(or $(filter 0 1,$(CUDA)),$(if $(filter build-float,$(BUILD)-$(REAL)),auto,0))
ifneq ($(filter-out clean help format lint,$(or $(MAKECMDGOALS),all)),)
$(shell src/gpu/probe.sh $(BUILD)/cuda.mk $(CUDA_CHOICE) '$(NVCC)' '$(GPU_ARCH)' $(NVCCFLAGS) -ccbin $(CCBIN))
$(shell src/train/probe_mpi.sh $(BUILD)/mpi.mk $(or $(filter 0 1,$(MPI)),auto) '$(MPICXX)' $(CXX) $(CXXFLAGS) $(LDFLAGS))
include $(BUILD)/cuda.mk $(BUILD)/mpi.mk
$(foreach part,CUDA MPI,$(if $(filter 1,$($(part))),$(if $($(part)_LEFT_OUT),$(error $(part)=1: $($(part)_LEFT_OUT)))))
-include $(wildcard $(BUILD)/*/*.d $(BUILD)/*/*/*.d)
endif

# ---- Library and programs --------------------------------------------------------------------------------------------
# Two archives: one for training, decoding and models, and one for the modules that only some programs need.
MODULES := base math ops reference cpu models tokenizers tasks figures train generation
TOOLS := exchange analysis reproduction
PROGRAMS := train_copy train_text train_regular train_image scaling convert generate tokenize inspect reproduce
KERNELS := $(wildcard src/gpu/*.cu)
objects_of = $(patsubst src/%.cpp,$(BUILD)/%.o,$(wildcard $(1:%=src/%/*.cpp)))
BUILT := $(PROGRAMS:%=$(BUILD)/%)
LIBRARIES := $(addprefix $(BUILD)/,libtest.a libtools.a libpetroglyph.a)

.PHONY: all examples test test-all ptx storm fuzz bench bench-gpu check-docs format lint install clean help FORCE
.DEFAULT_GOAL := all
.DELETE_ON_ERROR .SECONDARY:
all: $(if $(filter build,$(BUILD)),$(PROGRAMS),$(BUILT))
	@$(foreach part,CUDA MPI,$(if $($(part)_LEFT_OUT),echo "left out: $(part) ($($(part)_LEFT_OUT))";))
# ./train_copy is a link to build/train_copy. Another build's programs stay in their own folder.
$(PROGRAMS): %: $(BUILD)/% FORCE
	@$(if $(filter build,$(BUILD)),ln -sf $< $@)

compile = @mkdir -p $(@D); echo "  CXX  $<"; $(CXX) $(FLAGS) $(STANDARD:%=-include %) -MMD -MP -c -o $@ $<
link = @echo "  LINK $@"; $(CXX) $(CXXFLAGS) -o $@ $(filter %.o,$^) $(filter $^,$(LIBRARIES)) $(LDFLAGS) $(OPENMP_LIBRARY) \
  $(CUDA_LIBRARIES) $(MPI_LIBRARIES)

$(BUILT): $(BUILD)/%: $(BUILD)/programs/%.o $(BUILD)/libpetroglyph.a
	$(link)
$(filter-out %train_copy %train_text %generate %tokenize,$(BUILT)): $(BUILD)/libtools.a
$(BUILD)/libpetroglyph.a: $(call objects_of,$(MODULES)) $(if $(CUDA_WANTED),$(KERNELS:src/%.cu=$(BUILD)/%.o))
$(BUILD)/libtools.a: $(call objects_of,$(TOOLS))
$(LIBRARIES): $(BUILD)/sources.stamp
	@rm -f $@; $(AR) rcs $@ $(filter %.o,$^)
vpath %.cpp src
$(BUILD)/%.o: %.cpp $(BUILD)/flags.stamp $(STANDARD:%=%.gch)
	$(compile)
$(BUILD)/gpu/%.o: src/gpu/%.cu $(BUILD)/flags.stamp
	@mkdir -p $(@D); echo "  NVCC $<"; $(NVCC) $(NVCCFLAGS) -ccbin $(CCBIN) $(GENCODE) -Xcompiler -ffp-contract=off,-Wall,-Wextra -MMD -MP -c -o $@ $<
$(BUILD)/standard.h.gch: src/base/standard.h $(BUILD)/flags.stamp
	@echo "  CXX  $<"; cp $< $(BUILD)/standard.h; $(CXX) $(FLAGS_OF_ALL) -x c++-header -o $@ $<

$(BUILD)/base/version.o: MORE = -DPETROGLYPH_VERSION='"$(STAMP_version)"'
$(BUILD)/base/version.o: $(BUILD)/version.stamp
# The papers' experiments are text files; the program has them as strings.
$(BUILD)/reproduction/experiments.inc: $(wildcard src/reproduction/experiments/*.txt)
	@mkdir -p $(@D); for f in $^; do echo "{\"$$(basename $$f .txt)\", R\"text("; cat $$f; echo ')text"},'; done > $@
$(BUILD)/reproduction/experiment.o: MORE = -I$(BUILD)
$(BUILD)/reproduction/experiment.o: $(BUILD)/reproduction/experiments.inc

# Programs to read. Those of one file are compiled as their first lines say.
examples: $(addprefix $(BUILD)/examples/,causal_rn gpt2 train)
$(addprefix $(BUILD)/examples/,causal_rn gpt2): $(BUILD)/examples/%: examples/%.cpp
	@mkdir -p $(@D); echo "  CXX  $<"; $(CXX) -O3 -march=native -ffp-contract=off -fno-math-errno -fopenmp $< -o $@
$(BUILD)/examples/train: $(BUILD)/examples/train.o $(BUILD)/libpetroglyph.a
	$(link)

# A stamp changes when its text does, and what depends on it is made again: objects by other flags, archives of other files.
FLAGS_OF_ALL := $(FLAGS)
STAMP_version := $(shell src/base/version.sh)
STAMP_sources := $(shell ls src/*/*.cpp test/ptx/*.cpp | cksum) $(CUDA_WANTED)
STAMP_flags := $(CXX) $(filter-out -Werror,$(FLAGS_OF_ALL)) $(LDFLAGS) $(NVCCFLAGS) $(CUDA_VERSION) $(GENCODE) $(CUDA_LIBRARIES) \
  $(MPI_LIBRARIES) $(call MACROS,cksum)
$(BUILD)/%.stamp: FORCE
	@mkdir -p $(@D); echo '$(STAMP_$*)' | cmp -s - $@ || echo '$(STAMP_$*)' > $@
$(if $(filter clean,$(MAKECMDGOALS)),$(addprefix $(BUILD)/,version.stamp sources.stamp flags.stamp): | clean)

# ---- Tests -----------------------------------------------------------------------------------------------------------
# Programs of one file each, linked with what several of them share (libtest.a). The longest come first.
TESTS := host_run ranks reproduction programs images exchange runs numerics files oracle analysis regular_languages text_data bits \
  storm damage failing_calls cuda_on_host_test gpu_math_on_host
DOUBLE_TESTS := gradients oracle identities analysis
OTHER_TESTS := bench bench_ranks side_by_side fuzz gradients identities ptx_run ptx_opcodes ptx_mutations gpu_run gpu_math
SHIM := $(BUILD)/test/cuda_on_host.o $(BUILD)/test/cuda_on_host_runtime.o
ON_HOST := $(KERNELS:src/%.cu=$(BUILD)/host/%.o) $(BUILD)/host/train/device.o $(SHIM)
$(BUILD)/libtest.a: $(patsubst %.cpp,$(BUILD)/%.o,$(wildcard test/cases.cpp test/model_cases.cpp test/fingerprints.cpp test/gpu_checks.cpp test/peak.cpp test/ptx/*.cpp))
BUILT_TESTS := $(patsubst %,$(BUILD)/test/%,$(TESTS) $(OTHER_TESTS))
$(BUILT_TESTS): $(BUILD)/test/%: $(BUILD)/test/%.o $(BUILD)/libtest.a $(BUILD)/libpetroglyph.a
	$(link)
$(filter-out %/bits %/oracle %/gradients,$(BUILT_TESTS)): $(BUILD)/libtools.a
# The kernels for the host (test/cuda_on_host.h): threads become fibers, whose loops gain nothing from vectors.
$(addprefix $(BUILD)/test/,host_run ptx_run ptx_mutations): $(ON_HOST)
$(addprefix $(BUILD)/test/,cuda_on_host_test gpu_math_on_host): $(SHIM)
$(addprefix $(BUILD)/test/,host_run.o gpu_math_on_host.o ptx%.o): MORE = -include test/cuda_on_host.h
$(BUILD)/host/gpu/%.o: MORE = -O2 -fno-tree-vectorize $(if $(CLANG),,-Wno-maybe-uninitialized) -x c++ -include test/cuda_on_host.h
$(BUILD)/host/train/device.o: MORE = -DPETROGLYPH_CUDA
$(BUILD)/host/gpu/%.o: src/gpu/%.cu $(BUILD)/flags.stamp
	$(compile)
$(BUILD)/host/%.o: src/%.cpp $(BUILD)/flags.stamp
	$(compile)
# What nvcc makes of the kernels; test/ptx_run.cpp executes it on the CPU.
PTX_ARCH ?= compute_90
PTX := $(if $(NVCC_WORKS),$(KERNELS:src/gpu/%.cu=$(BUILD)/ptx/$(PTX_ARCH)/%.ptx))
ptx: $(PTX)
$(BUILD)/ptx/$(PTX_ARCH)/%.ptx: src/gpu/%.cu $(BUILD)/flags.stamp
	@mkdir -p $(@D); echo "  PTX  $<"; $(NVCC) $(NVCCFLAGS) -ccbin $(CCBIN) -arch=$(PTX_ARCH) -lineinfo -ptx -MMD -MP -o $@ $<
test: $(TESTS:%=$(BUILD)/test/%) $(BUILD)/test/bench $(BUILD)/examples/train $(BUILT) $(if $(PTX),$(PTX) $(patsubst %,$(BUILD)/test/ptx_%,run opcodes mutations))
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/double REAL=double $(DOUBLE_TESTS:%=$(BUILD)/double/test/%)
	@CUDA_VISIBLE_DEVICES= test/run.sh $(MORE_TESTS) $(if $(PTX),$(BUILD)/test/ptx_opcodes \
	  $(patsubst %,"env PTX=$(BUILD)/ptx/$(PTX_ARCH) $(BUILD)/test/ptx_%",run mutations),"test/skip.sh ptx: $(CUDA_LEFT_OUT)") \
	  "test/examples.sh $(BUILD)" $(DOUBLE_TESTS:%=$(BUILD)/double/test/%) $(TESTS:%=$(BUILD)/test/%) "$(BUILD)/test/bench --once --threads 1" \
	  test/rooms.sh test/rows.sh test/make.sh test/probes.sh test/pages.sh "test/check_docs.sh --consistent" "test/big_endian.sh $(CXX)" \
	  "test/unsafe_flags.sh $(CXX)" "test/python.sh $(BUILD)"
# These scripts call make for what they need: all other builds, killed runs and damaged files, libFuzzer.
test-all storm fuzz:
	+@BUILD=$(BUILD) test/$(@:test-%=%).sh
bench bench-gpu: $(BUILD)/test/bench
	@$< $(if $(filter bench-gpu,$@),--device cuda)
check-docs: $(PROGRAMS)
	@test/check_docs.sh $(SECONDS)
# With a GPU; all, or one part of the tests.
test-gpu $(addprefix test-gpu-,run math training memcheck racecheck synccheck initcheck): $(BUILD)/test/gpu_run $(BUILD)/test/gpu_math $(BUILD)/train_copy
	@test/gpu.sh $(BUILD) $(@:test-gpu-%=%)
$(BUILD)/test/gpu_math.o: test/gpu_math.cu $(BUILD)/flags.stamp
	@mkdir -p $(@D); $(NVCC) $(NVCCFLAGS) $(GENCODE) -ccbin $(CCBIN) -Xcompiler "$(ARCH_FLAGS) $(CONTRACT) -fopenmp" -Itest -MMD -MP -c -o $@ $<

# ---- The rest --------------------------------------------------------------------------------------------------------
SOURCES := $(filter-out src/ops/catalogue.h,$(wildcard src/*/*.h src/*/*.cpp src/*/*.cu src/*/*.cuh test/*.h test/*.cpp test/*.cu test/ptx/*))
format:
	@clang-format -i $(SOURCES)
lint:
	@clang-format --dry-run -Werror $(SOURCES)
	@clang-tidy --quiet $(filter src/%.cpp,$(SOURCES)) -- -std=c++17 -Isrc -fopenmp -DPETROGLYPH_VERSION=\"\"
# Installed programs have a prefix: another program called convert exists.
install: $(BUILT)
	@mkdir -p "$(DESTDIR)$(PREFIX)/bin"
	@for p in $(PROGRAMS); do install -m 755 $(BUILD)/$$p "$(DESTDIR)$(PREFIX)/bin/petroglyph-$$p" || exit 1; done
clean:
	@[ ! -e $(BUILD)/flags.stamp ] || rm -rf $(BUILD)
	@for p in $(PROGRAMS); do [ "$$(readlink $$p)" != $(BUILD)/$$p ] || rm -f $$p; done
help:
	@sed -n '/^```/,/^```/p' docs/building.md | sed '/^```/d'
