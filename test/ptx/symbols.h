// The names of this program's own functions, by their addresses: how a launch, which has a kernel's address, finds its
// PTX, which has a name. Linux only, as nvcc is.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ptx {

struct Symbol {
  std::string name;  // as C++ writes it
  std::string file;  // "relation": the source of a function that only its file knows, else empty
};

std::map<uintptr_t, Symbol> functions_of_this_program();

}  // namespace ptx
