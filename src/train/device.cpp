// The only file that depends on whether this build has CUDA.

#include "train/device.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/program.h"
#include "cpu/make_cpu.h"
#include "cpu/parallel.h"
#include "reference/reference.h"
#ifdef PETROGLYPH_CUDA
#include "gpu/make_gpu.h"
#endif

namespace petroglyph {

std::unique_ptr<Ops> make_device(const std::string& name, int threads) {
  if (name == "reference") return std::make_unique<Reference>();
  const bool cuda = name.rfind("cuda", 0) == 0;
#ifdef PETROGLYPH_CUDA
  if (cuda) return make_gpu(name.size() > 5 ? std::atoi(name.c_str() + 5) : 0);
  if (name == "auto" && !gpu_absent()) {
    const std::string obstacle = gpu_obstacle(0);
    if (obstacle.empty()) return make_gpu();
    std::fprintf(stderr, "--device auto takes the CPU: %s\n", obstacle.c_str());
  }
#else
  if (cuda)
    throw Error("--device " + name + ": this build has no CUDA; build it where nvcc is installed, or with CUDA=1");
#endif
  return make_cpu(threads);
}

std::unique_ptr<Ops> make_device(const std::string& name, int threads, const Ranks& ranks) {
  if (threads == 0) threads = std::max(1, available_threads() / ranks.sharing());
#ifdef PETROGLYPH_CUDA
  const int gpus = ranks.count() > 1 && (name == "auto" || name == "cuda") ? gpu_count() : 0;
  if (gpus > 1) return make_gpu(ranks.rank_here() % gpus);
#endif
  return make_device(name, threads);
}

std::string describe_device(const std::string& name) {
  int ends[2];
  std::fflush(nullptr);
  const pid_t child = pipe(ends) == 0 ? fork() : -1;
  if (child < 0) throw Error("--device " + name + ": cannot start a process: " + std::strerror(errno));
  if (child == 0) {
    const int status = run_program("petroglyph", [&] {
      const std::string description = make_device(name, 0)->description();
      const ssize_t size = static_cast<ssize_t>(description.size());
      return write(ends[1], description.data(), description.size()) == size ? 0 : 1;
    });
    _exit(status);
  }
  close(ends[1]);
  std::string description;
  char some[256];
  for (ssize_t n; (n = read(ends[0], some, sizeof some)) > 0;) description.append(some, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Error("--device " + name + ": this device does not work");
  return description;
}

}  // namespace petroglyph
