#include "ptx/launch.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "ptx/decode.h"

namespace ptx {

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
