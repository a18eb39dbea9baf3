// Maps addresses of this program's functions to names: a launch has a kernel's address, its PTX has a name. Linux only,
// as nvcc.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ptx {

struct Symbol {
  std::string name;  // in C++ notation
  std::string file;  // source, e.g. "relation", of a function with internal linkage; otherwise empty
};

std::map<uintptr_t, Symbol> functions_of_this_program();

}  // namespace ptx
