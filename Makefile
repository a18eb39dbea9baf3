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
TESTS := numerics files oracle gradients bits programs
LIBRARY := $(filter-out $(PROGRAMS:%=src/%.cpp),$(wildcard src/*.cpp src/cpu/*.cpp src/models/*.cpp src/tasks/*.cpp src/train/*.cpp))
OBJECTS := $(LIBRARY:src/%.cpp=$(BUILD)/%.o)

.PHONY: all test test-all test-exhaustive bench format lint clean help
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

-include $(wildcard $(BUILD)/*.d $(BUILD)/*/*.d)
.SECONDARY:
