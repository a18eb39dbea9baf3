#include "ptx/launch.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "ptx/decode.h"

namespace ptx {
namespace {

// The first loaded object is the program itself.
int take_first(dl_phdr_info* info, size_t, void* to) {
  *static_cast<uintptr_t*>(to) = info->dlpi_addr;
  return 1;
}

template <class T>
T value_at(const std::string& bytes, size_t at) {
  T value;
  if (at > bytes.size() || sizeof value > bytes.size() - at) throw Fault("this program's own file is cut short");
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string string_at(const std::string& bytes, size_t at) {
  if (at >= bytes.size()) throw Fault("this program's own file is cut short");
  return bytes.c_str() + at;
}

// Addresses of this program's functions and their names: a launch has a kernel's address, its PTX has a name. Linux only,
// as nvcc.
std::map<uintptr_t, Symbol> functions_of_this_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  uintptr_t base = 0;
  dl_iterate_phdr(take_first, &base);

  std::map<uintptr_t, Symbol> functions;
  const auto header = value_at<Elf64_Ehdr>(bytes, 0);
  const auto section = [&](size_t n) { return value_at<Elf64_Shdr>(bytes, header.e_shoff + n * header.e_shentsize); };
  for (size_t n = 0; n < header.e_shnum; ++n) {
    const Elf64_Shdr table = section(n);
    if (table.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr names = section(table.sh_link);
    std::string source;
    for (size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = value_at<Elf64_Sym>(bytes, table.sh_offset + at);
      const std::string name = string_at(bytes, names.sh_offset + symbol.st_name);
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FILE) source = std::filesystem::path(name).stem().string();
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_value == 0) continue;
      const bool local = ELF64_ST_BIND(symbol.st_info) == STB_LOCAL;
      functions[base + symbol.st_value] = {demangled(name), local ? source : ""};
    }
  }
  if (functions.empty()) throw Fault("this program has no table of its functions (stripped?)");
  return functions;
}

}  // namespace

Programs::Programs(const std::string& folder) : functions_(functions_of_this_program()) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".ptx") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths)
    for (Kernel& kernel : read_kernels(path))
      if (kernel.statements.size() > 1) kernels_.push_back(std::move(kernel));  // an empty kernel is only queried
  if (kernels_.empty()) throw Fault(folder + " holds no kernel's PTX");

  std::set<std::string> names;
  for (const auto& [address, symbol] : functions_) names.insert(symbol.name);
  for (const Kernel& kernel : kernels_) {
    check_arithmetic(kernel);
    if (names.count(kernel.name) == 0) throw Fault("kernel " + kernel.name + " of the PTX is not in this program");
    programs_.push_back(decode(kernel));
  }
}

Program& Programs::find(const cuda_on_host::Kernel& kernel) {
  const auto known = found_.find(kernel.function);
  if (known != found_.end()) return programs_[known->second];
  const auto symbol = functions_.find(reinterpret_cast<uintptr_t>(kernel.function));
  if (symbol == functions_.end()) throw Fault("kernel " + kernel.name + " has no name in this program");
  for (size_t n = 0; n < programs_.size(); ++n) {
    const bool same_file = symbol->second.file.empty() || symbol->second.file == programs_[n].file;
    if (programs_[n].name != symbol->second.name || !same_file) continue;
    found_[kernel.function] = n;
    return programs_[n];
  }
  throw Fault("kernel " + symbol->second.name + " of this program is not in the PTX");
}

void Programs::run(const cuda_on_host::Kernel& kernel, Order order, unsigned seed) {
  Program& program = find(kernel);
  if (program.shared_bytes + kernel.shared_bytes > kernel.shared_limit)
    throw Fault("kernel " + program.name + ": " + std::to_string(program.shared_bytes + kernel.shared_bytes) +
                " bytes of shared memory, " + std::to_string(kernel.shared_limit) + " are allowed");
  Launch launch;
  launch.grid = {kernel.grid.x, kernel.grid.y, kernel.grid.z};
  launch.block = {kernel.block.x, kernel.block.y, kernel.block.z};
  launch.shared_bytes = kernel.shared_bytes;
  launch.parameters = kernel.parameters;
  launch.order = order;
  launch.seed = seed;
  launch.most_branches = most_branches;
  launch.memory_at = [](uint64_t address, uint64_t& begin, uint64_t& end) {
    const cuda_on_host::Memory memory = cuda_on_host::device_memory_at(address);
    begin = memory.begin;
    end = memory.end;
  };
  ptx::run(program, launch);
}

}  // namespace ptx
