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

# The arithmetic contract (src/numerics.h): no contraction of a*b+c, no reordering, no errno from sqrt. Never -ffast-math.
CONTRACT := -ffp-contract=off -fno-math-errno -fno-trapping-math

# Whether this compiler has OpenMP; without it everything works on one thread. OPENMP=0 leaves it out.
OPENMP_WORKS := $(if $(filter 0,$(OPENMP)),,$(shell echo 'int main() { return 0; }' | \
  $(CXX) -fopenmp -x c++ - -o /dev/null 2>/dev/null && echo yes))
OPENMPFLAGS := $(if $(OPENMP_WORKS),-fopenmp,-fopenmp-simd)

CXXFLAGS ?=
FLAGS := -std=c++17 $(OPTIMIZE) $(ARCHFLAGS) $(CONTRACT) $(OPENMPFLAGS) -Wall -Wextra -Werror -Wno-psabi -Isrc \
  $(if $(filter double,$(REAL)),-DPETROGLYPH_DOUBLE) $(if $(filter 1,$(DEBUG)),-DPETROGLYPH_POISON) \
  $(if $(filter 1,$(SANITIZE)),-g -fsanitize=address$(COMMA)undefined -fno-sanitize-recover=all -DPETROGLYPH_POISON) $(CXXFLAGS)
COMMA := ,
LINKFLAGS := $(OPENMPFLAGS) $(if $(filter 1,$(SANITIZE)),-fsanitize=address$(COMMA)undefined) $(LDFLAGS)

# ---- What is built --------------------------------------------------------------------------------------------------

PROGRAMS := train_copy
LIBRARY := $(filter-out $(PROGRAMS:%=src/%.cpp),$(wildcard src/*.cpp src/cpu/*.cpp src/models/*.cpp src/tasks/*.cpp src/train/*.cpp))
OBJECTS := $(LIBRARY:src/%.cpp=$(BUILD)/%.o)

.PHONY: all test test-all test-exhaustive bench format lint clean help float-tests double-tests
.DELETE_ON_ERROR:
all: $(PROGRAMS)
ifeq ($(OPENMP_WORKS),)
	@echo "$(CXX) has no OpenMP: built for one thread"
endif

$(PROGRAMS): %: $(BUILD)/%
	@ln -sf $< $@

$(BUILD)/%: $(BUILD)/%.o $(BUILD)/petroglyph.a
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

# Changes when the command line does, so that objects of other flags are never mixed.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CXX) $(FLAGS)' | cmp -s - $@ || echo '$(CXX) $(FLAGS)' > $@
FORCE:

# ---- Tests ----------------------------------------------------------------------------------------------------------

# What is built with the default flags, and what only the double build can tell.
FLOAT_TESTS := numerics files oracle bits programs
DOUBLE_TESTS := gradients oracle
DOUBLE := $(BUILD)/double

float-tests: $(FLOAT_TESTS:%=$(BUILD)/test/%) $(PROGRAMS:%=$(BUILD)/%)
double-tests:
	@$(MAKE) --no-print-directory BUILD=$(DOUBLE) REAL=double $(DOUBLE_TESTS:%=$(DOUBLE)/test/%)

test: float-tests double-tests
	@test/run.sh $(FLOAT_TESTS:%=$(BUILD)/test/%) $(DOUBLE_TESTS:%=$(DOUBLE)/test/%)

# The same bits from every build: each of these compares itself with test/golden.txt and with the oracles.
MATRIX := generic O0 noopenmp sanitize $(if $(X86),v3) $(if $(shell command -v clang++),clang)
generic_FLAGS := ARCH=generic
O0_FLAGS := OPTIMIZE=-O0
noopenmp_FLAGS := OPENMP=0
sanitize_FLAGS := SANITIZE=1 OPTIMIZE=-O1
v3_FLAGS := ARCH=x86-64-v3
clang_FLAGS := CXX=clang++
sanitize_TESTS := files programs
TESTS_OF = $(addprefix $(BUILD)/$(1)/test/,bits oracle $($(1)_TESTS))

matrix-%:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/$* $($*_FLAGS) $(call TESTS_OF,$*) $(if $($*_TESTS),$(PROGRAMS:%=$(BUILD)/$*/%))
test-all: float-tests double-tests $(MATRIX:%=matrix-%)
	@test/run.sh $(FLOAT_TESTS:%=$(BUILD)/test/%) $(DOUBLE_TESTS:%=$(DOUBLE)/test/%) \
	  $(foreach m,$(MATRIX),$(call TESTS_OF,$(m)))

# Every function of numerics.h on all 2^32 inputs.
test-exhaustive: $(BUILD)/test/numerics_exhaustive
	@$<

bench: $(BUILD)/test/bench
	@$<

# ---- The rest -------------------------------------------------------------------------------------------------------

SOURCES := $(wildcard src/*.h src/*.cpp src/*/*.h src/*/*.cpp src/*/*.cu src/*/*.cuh test/*.h test/*.cpp)

format:
	@clang-format -i $(filter-out src/catalogue.h,$(SOURCES))
lint: $(BUILD)/flags
	@clang-format --dry-run -Werror $(filter-out src/catalogue.h,$(SOURCES))
	@clang-tidy --quiet $(filter src/%.cpp,$(SOURCES)) -- -std=c++17 -Isrc -fopenmp-simd

clean:
	@rm -rf build $(PROGRAMS)

define HELP
make                  builds $(PROGRAMS) here; objects go to build/
make test             every gradient, oracle, bit and program: under five minutes on two cores
make test-all         that for every build there is: instruction sets, -O0, clang++, no OpenMP, sanitizers
make test-exhaustive  the largest error of exp, log, tanh … over all 2^32 inputs
make bench            how fast, and how near this machine's limits
make format lint      clang-format and clang-tidy, where they are installed
make clean

ARCH=native           instruction set: x86-64-v3, generic, … (the results are the same)
CXX=g++ OPENMP=auto DEBUG=0 SANITIZE=0 OPTIMIZE=-O3 REAL=float BUILD=build
endef
export HELP
help:
	@echo "$$HELP"

-include $(wildcard $(BUILD)/*.d $(BUILD)/*/*.d)
.SECONDARY:
