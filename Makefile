# Petroglyph. `make help` lists what there is to make.

ARCH ?= native
BUILD ?= build
REAL ?= float
DEBUG ?= 0
SANITIZE ?= 0
OPENMP ?= auto
OPTIMIZE ?= $(if $(filter 1,$(DEBUG)),-O1 -g,-O3)

# ---- Compiler -------------------------------------------------------------------------------------------------------

MACHINE := $(shell uname -m)
X86 := $(filter x86_64 amd64 i686,$(MACHINE))
# generic: what every machine of the kind can run
ARCHFLAGS := $(if $(filter generic,$(ARCH)),,$(if $(X86),-march=$(ARCH) -mprefer-vector-width=512,-mcpu=$(ARCH)))

# The arithmetic contract (src/math/numerics.h): no contraction of a*b+c, no reordering, no errno from sqrt. Never -ffast-math.
CONTRACT := -ffp-contract=off -fno-math-errno -fno-trapping-math

# Whether this compiler has OpenMP; without it everything works on one thread. OPENMP=0 leaves it out.
OPENMP_WORKS := $(if $(filter 0,$(OPENMP)),,$(shell echo 'int main() { return 0; }' | \
  $(CXX) -fopenmp -x c++ - -o /dev/null 2>/dev/null && echo yes))
OPENMPFLAGS := $(if $(OPENMP_WORKS),-fopenmp,-fopenmp-simd)

CXXFLAGS ?=
FLAGS = -std=c++17 $(OPTIMIZE) $(ARCHFLAGS) $(CONTRACT) $(OPENMPFLAGS) -Wall -Wextra -Werror -Wno-psabi -Wno-unknown-pragmas -Isrc \
  $(if $(filter double,$(REAL)),-DPETROGLYPH_DOUBLE) $(if $(CUDA_WANTED),-DPETROGLYPH_CUDA) $(if $(filter 1,$(DEBUG)),-DPETROGLYPH_POISON) \
  $(if $(filter 1,$(SANITIZE)),-g -fsanitize=address$(COMMA)undefined -fno-sanitize-recover=all -DPETROGLYPH_POISON) $(CXXFLAGS)
COMMA := ,
LINKFLAGS = $(OPENMPFLAGS) $(if $(filter 1,$(SANITIZE)),-fsanitize=address$(COMMA)undefined) $(LDFLAGS) $(CUDA_LIBRARIES)

# ---- CUDA -----------------------------------------------------------------------------------------------------------

# auto: where nvcc is found, with the default flags only; the GPU knows no double build and no sanitizer.
CUDA ?= auto
NVCC ?= $(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc))
CUDA_WANTED := $(if $(filter auto,$(CUDA)),$(if $(NVCC),$(if $(filter build-float-0,$(BUILD)-$(REAL)-$(SANITIZE)),yes)),$(filter 1,$(CUDA)))
# The GPU that is here; else two generations of large ones, and PTX that newer ones compile for themselves.
GPU_HERE := $(if $(CUDA_WANTED),$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .))
GPU_ARCH ?= $(or $(GPU_HERE),80 90)
GENCODE := $(foreach a,$(GPU_ARCH),-gencode arch=compute_$(a),code=sm_$(a)) \
  -gencode arch=compute_$(lastword $(GPU_ARCH)),code=compute_$(lastword $(GPU_ARCH))
NVCCFLAGS := -std=c++17 -O3 -fmad=false -ftz=false -prec-div=true -prec-sqrt=true -Isrc -DPETROGLYPH_CUDA
CUDA_LIBRARIES := $(if $(CUDA_WANTED),-L$(dir $(NVCC))../lib64 -lcudart_static -ldl -lrt -lpthread)

# ---- What is built --------------------------------------------------------------------------------------------------

PROGRAMS := train_copy train_text train_regular train_image scaling generate tokenize inspect reproduce
LIBRARY := $(filter-out src/programs/%,$(wildcard src/*/*.cpp))
KERNELS := $(wildcard src/gpu/*.cu)
OBJECTS := $(LIBRARY:src/%.cpp=$(BUILD)/%.o) $(if $(CUDA_WANTED),$(KERNELS:src/%.cu=$(BUILD)/%.o))

.PHONY: all test test-all test-exhaustive bench test-gpu bench-gpu format lint clean help float-tests double-tests
.DELETE_ON_ERROR:
all: $(PROGRAMS)
ifeq ($(OPENMP_WORKS),)
	@echo "$(CXX) has no OpenMP: built for one thread"
endif

$(PROGRAMS): %: $(BUILD)/%
	@ln -sf $< $@

$(BUILD)/%: $(BUILD)/programs/%.o $(BUILD)/petroglyph.a
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)
$(BUILD)/test/%: $(BUILD)/test/%.o $(BUILD)/test/cases.o $(BUILD)/petroglyph.a
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)
$(BUILD)/petroglyph.a: $(OBJECTS)
	@rm -f $@
	@$(AR) rcs $@ $^

$(BUILD)/%.o: src/%.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(FLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/test/%.o: test/%.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(FLAGS) -Itest -MMD -MP -c -o $@ $<

$(BUILD)/gpu/%.o: src/gpu/%.cu $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	@$(NVCC) $(NVCCFLAGS) $(GENCODE) -ccbin $(CXX) -Xcompiler -ffp-contract=off,-Wall,-Wextra -MMD -MP -c -o $@ $<

# The same kernels for the host (test/cuda_on_host.h): threads become fibers.
HOST_SHIM := $(BUILD)/test/cuda_on_host.o $(BUILD)/test/cuda_on_host_runtime.o
HOST_KERNELS := $(KERNELS:src/gpu/%.cu=$(BUILD)/host/%.o) $(HOST_SHIM)
$(BUILD)/host/%.o: src/gpu/%.cu $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $< for the host"
	@$(CXX) $(FLAGS) -O2 -Wno-maybe-uninitialized -Itest -x c++ -include test/cuda_on_host.h -MMD -MP -c -o $@ $<
$(BUILD)/test/host_run.o: test/host_run.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(FLAGS) -Itest -include test/cuda_on_host.h -MMD -MP -c -o $@ $<
$(BUILD)/test/gpu_math_on_host.o: test/gpu_math.cu $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $< for the host"
	@$(CXX) $(FLAGS) -O2 -Itest -x c++ -include test/cuda_on_host.h -MMD -MP -c -o $@ $<
$(BUILD)/test/gpu_math_on_host: $(BUILD)/test/gpu_math_on_host.o $(HOST_SHIM) $(BUILD)/petroglyph.a
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)
$(BUILD)/test/host_run: $(BUILD)/test/host_run.o $(BUILD)/test/cases.o $(HOST_KERNELS) $(BUILD)/petroglyph.a
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)
$(BUILD)/test/cuda_on_host_test: $(BUILD)/test/cuda_on_host_test.o $(HOST_SHIM)
	@echo "  LINK $@"
	@$(CXX) -o $@ $^ $(LINKFLAGS)

# Changes when the command line does, so that objects of other flags are never mixed.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CXX) $(FLAGS)' | cmp -s - $@ || echo '$(CXX) $(FLAGS)' > $@
.PHONY: FORCE
FORCE:

# ---- Tests ----------------------------------------------------------------------------------------------------------

# What is built with the default flags, and what only the double build can tell.
FLOAT_TESTS := numerics files oracle analysis regular_languages images text_data bits programs reproduction cuda_on_host_test gpu_math_on_host host_run
DOUBLE_TESTS := gradients oracle identities analysis
DOUBLE := $(BUILD)/double

float-tests: $(FLOAT_TESTS:%=$(BUILD)/test/%) $(PROGRAMS:%=$(BUILD)/%)
double-tests:
	@$(MAKE) --no-print-directory BUILD=$(DOUBLE) REAL=double $(DOUBLE_TESTS:%=$(DOUBLE)/test/%)

PTX_LINT := "test/ptx_lint.sh $(KERNELS)"
export NVCCFLAGS

test: float-tests double-tests
	@test/run.sh $(FLOAT_TESTS:%=$(BUILD)/test/%) $(DOUBLE_TESTS:%=$(DOUBLE)/test/%) $(PTX_LINT)

# The same bits from every build: each of these compares itself with test/golden.txt and with the oracles.
MATRIX := generic O0 noopenmp sanitize $(if $(X86),v3) $(if $(shell command -v clang++),clang)
generic_FLAGS := ARCH=generic
O0_FLAGS := OPTIMIZE=-O0
noopenmp_FLAGS := OPENMP=0
sanitize_FLAGS := SANITIZE=1 OPTIMIZE=-O1
v3_FLAGS := ARCH=x86-64-v3
clang_FLAGS := CXX=clang++
sanitize_TESTS := files text_data programs
TESTS_OF = $(addprefix $(BUILD)/$(1)/test/,bits oracle $($(1)_TESTS))

matrix-%:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/$* $($*_FLAGS) $(call TESTS_OF,$*) $(if $($*_TESTS),$(PROGRAMS:%=$(BUILD)/$*/%))
test-all: float-tests double-tests $(MATRIX:%=matrix-%)
	@test/run.sh $(FLOAT_TESTS:%=$(BUILD)/test/%) $(DOUBLE_TESTS:%=$(DOUBLE)/test/%) \
	  $(PTX_LINT) $(foreach m,$(MATRIX),$(call TESTS_OF,$(m)))

# Every function of numerics.h on all 2^32 inputs.
test-exhaustive: $(BUILD)/test/numerics_exhaustive
	@$<

bench: $(BUILD)/test/bench
	@$<

# On a machine with a GPU: the host run's comparisons through the driver, every function on all 2^32 inputs, 200 steps of
# train_copy on both devices, and compute-sanitizer where it is installed.
GPU_TESTS := $(BUILD)/test/gpu_run $(BUILD)/test/gpu_math
$(BUILD)/test/gpu_run.o: test/host_run.cpp $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  CXX  $<"
	@$(CXX) $(FLAGS) -Itest -MMD -MP -c -o $@ $<
$(BUILD)/test/gpu_math.o: test/gpu_math.cu $(BUILD)/flags
	@mkdir -p $(@D)
	@echo "  NVCC $<"
	@$(NVCC) $(NVCCFLAGS) $(GENCODE) -ccbin $(CXX) -Xcompiler -ffp-contract=off,-fopenmp -Itest -MMD -MP -c -o $@ $<
test-gpu: $(GPU_TESTS) $(PROGRAMS:%=$(BUILD)/%)
	@test/run.sh $(GPU_TESTS) "test/gpu_training.sh $(BUILD)/train_copy" "test/gpu_sanitizer.sh $(BUILD)/test/gpu_run"
bench-gpu: $(BUILD)/test/bench
	@$< --device cuda

# ---- The rest -------------------------------------------------------------------------------------------------------

SOURCES := $(wildcard src/*.h src/*.cpp src/*/*.h src/*/*.cpp src/*/*.cu src/*/*.cuh test/*.h test/*.cpp)

format:
	@clang-format -i $(filter-out src/ops/catalogue.h,$(SOURCES))
lint: $(BUILD)/flags
	@clang-format --dry-run -Werror $(filter-out src/ops/catalogue.h,$(SOURCES))
	@clang-tidy --quiet $(filter src/%.cpp,$(SOURCES)) -- -std=c++17 -Isrc -fopenmp-simd

clean:
	@rm -rf build $(PROGRAMS)

define HELP
make                  builds $(PROGRAMS) here; objects go to build/
make test             every gradient, oracle, bit and program: under five minutes on two cores
make test-all         that for every build there is: instruction sets, -O0, clang++, no OpenMP, sanitizers
make test-exhaustive  the largest error of exp, log, tanh … over all 2^32 inputs
make bench            how fast, and how near this machine's limits
make test-gpu         on a machine with a GPU: its bits against the CPU's; make bench-gpu: its speed
make format lint      clang-format and clang-tidy, where they are installed
make clean

ARCH=native           instruction set: x86-64-v3, generic, … (the results are the same)
CUDA=auto             0 leaves CUDA out; GPU_ARCH="80 90": what to build for, default the GPU that is here
CXX=g++ OPENMP=auto DEBUG=0 SANITIZE=0 OPTIMIZE=-O3 REAL=float BUILD=build
endef
export HELP
help:
	@echo "$$HELP"

-include $(wildcard $(BUILD)/*.d $(BUILD)/*/*.d)
.PRECIOUS: $(BUILD)/%.o $(BUILD)/test/%.o
