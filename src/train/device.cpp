// The only file that depends on whether this build has CUDA.

#include "train/device.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/program.h"
#include "cpu/make_cpu.h"
#include "cpu/parallel.h"
#include "reference/reference.h"
#ifdef PETROGLYPH_CUDA
#include "gpu/make_gpu.h"
#endif

namespace petroglyph {

namespace {

#ifdef PETROGLYPH_CUDA
void say_left_out(int number, const std::string& obstacle) {
  std::fprintf(stderr, "--device auto leaves out GPU %d: %s\n", number, obstacle.c_str());
}

// What "auto" takes here: the number of the first GPU that works, or none, the CPU.
std::optional<int> first_gpu() {
  if (gpu_absent()) return std::nullopt;
  std::vector<std::string> obstacles;
  do {
    const int number = static_cast<int>(obstacles.size());
    obstacles.push_back(gpu_obstacle(number));
    if (!obstacles.back().empty()) continue;
    for (int other = 0; other < number; ++other) say_left_out(other, obstacles[static_cast<size_t>(other)]);
    return number;
  } while (static_cast<int>(obstacles.size()) < gpu_count());
  std::fprintf(stderr, "--device auto takes the CPU: %s\n", obstacles[0].c_str());
  return std::nullopt;
}
#endif

}  // namespace

std::unique_ptr<Ops> make_device(const std::string& name, int threads) {
  if (name == "reference") return std::make_unique<Reference>();
  const bool cuda = name.rfind("cuda", 0) == 0;
#ifdef PETROGLYPH_CUDA
  if (cuda) return make_gpu(name.size() > 5 ? std::atoi(name.c_str() + 5) : 0);
  const std::optional<int> first = name == "auto" ? first_gpu() : std::nullopt;
  if (first) return make_gpu(*first);
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
  if (gpus > 1) {
    const int rank = ranks.rank_here(), number = rank % gpus;
    const std::string obstacle = gpu_obstacle(number);
    if (obstacle.empty() || name == "cuda") return make_gpu(number);
    // Every other GPU belongs to another rank, and two on one GPU would hold up all of them.
    std::fprintf(stderr, "--device auto: rank %d takes the CPU, as its GPU %d cannot be used: %s\n", rank, number,
                 obstacle.c_str());
    return make_cpu(threads);
  }
#endif
  return make_device(name, threads);
}

std::string describe_device(const std::string& name, int threads) {
  int ends[2];
  std::fflush(nullptr);
  const pid_t child = pipe(ends) == 0 ? fork() : -1;
  if (child < 0) throw Error("--device " + name + ": cannot start a process: " + std::strerror(errno));
  if (child == 0) {
    const int status = run_program("petroglyph", [&] {
      const std::string description = make_device(name, threads)->description();
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
