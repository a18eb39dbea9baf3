#include "ptx/symbols.h"

#include <elf.h>
#include <link.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ptx/text.h"

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

}  // namespace

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

}  // namespace ptx
