#include "train/ranks.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/checksum.h"
#include "base/error.h"

#ifdef PETROGLYPH_MPI
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#ifdef __linux__
#include <sched.h>
#endif
#endif

namespace petroglyph {

namespace {

class OneRank final : public Ranks {
 public:
  int rank() const override { return 0; }
  int count() const override { return 1; }
  int rank_here() const override { return 0; }
  int sharing() const override { return 1; }
  void gather(void* all, const void* mine, size_t bytes) override {
    if (bytes > 0) std::memcpy(all, mine, bytes);
  }
  void broadcast(void*, size_t) override {}
  void swap(int, const void*, size_t, void*, size_t) override { throw Error("one rank alone has no partner"); }
  void abandon(int status) override { std::exit(status); }
};

// The number of processes that the launcher started, from its environment: Open MPI's variable, then that of MPICH,
// Intel MPI and srun; PMIx gives no number, Slurm does. 1 without any.
int launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"}) {
    const char* const value = std::getenv(name);
    if (value) return std::max(1, std::atoi(value));
  }
  const char* const tasks = std::getenv("PMIX_RANK") ? std::getenv("SLURM_STEP_NUM_TASKS") : nullptr;
  return tasks ? std::max(1, std::atoi(tasks)) : 1;
}

#ifdef PETROGLYPH_MPI

extern "C" void petroglyph_finalize_mpi() {
  int done = 0;
  MPI_Finalized(&done);
  if (!done) MPI_Finalize();
}

// Errors of MPI itself end the job: that is its default.
class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    std::atexit(petroglyph_finalize_mpi);  // --help leaves through exit()
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
    MPI_Comm here;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &rank_here_);
    sharing_ = count_sharing(here);
    MPI_Comm_free(&here);
  }

  int rank() const override { return rank_; }
  int count() const override { return count_; }
  int rank_here() const override { return rank_here_; }
  int sharing() const override { return sharing_; }

  void gather(void* all, const void* mine, size_t bytes) override {
    const int n = static_cast<int>(bytes);  // a few numbers
    MPI_Allgather(mine, n, MPI_BYTE, all, n, MPI_BYTE, MPI_COMM_WORLD);
  }
  void broadcast(void* data, size_t bytes) override {
    for (size_t done = 0; done < bytes; done += MOST)
      MPI_Bcast(static_cast<char*>(data) + done, at_once(bytes, done), MPI_BYTE, 0, MPI_COMM_WORLD);
  }
  void swap(int partner, const void* give, size_t given, void* take, size_t taken) override {
    for (size_t done = 0; done < std::max(given, taken); done += MOST)
      MPI_Sendrecv(static_cast<const char*>(give) + std::min(done, given), at_once(given, done), MPI_BYTE, partner, 0,
                   static_cast<char*>(take) + std::min(done, taken), at_once(taken, done), MPI_BYTE, partner, 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  void abandon(int status) override {
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, status);
    std::abort();  // MPI_Abort does not return
  }

 private:
  // A launcher may have bound each rank to cores of its own.
  static int count_sharing(MPI_Comm here) {
    int count = 1;
    MPI_Comm_size(here, &count);
#ifdef __linux__
    cpu_set_t mine;
    CPU_ZERO(&mine);
    std::vector<cpu_set_t> all(static_cast<size_t>(count));
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) return count;
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, here);
    count = static_cast<int>(std::count_if(all.begin(), all.end(), [&](const cpu_set_t& other) {
      cpu_set_t common;
      CPU_AND(&common, &mine, &other);
      return CPU_COUNT(&common) > 0;
    }));
#endif
    return count;
  }

  static constexpr size_t MOST = size_t(1) << 30;  // bytes of one message, counted by an int
  static int at_once(size_t bytes, size_t done) {
    return static_cast<int>(std::min(bytes - std::min(done, bytes), MOST));
  }
  int rank_ = 0, count_ = 1, rank_here_ = 0, sharing_ = 1;
};

#endif

}  // namespace

bool Ranks::any(bool mine) {
  const std::vector<char> all = gather(static_cast<char>(mine));
  return std::any_of(all.begin(), all.end(), [](char one) { return one != 0; });
}

std::string Ranks::broadcast(std::string words) {
  uint64_t size = words.size();
  broadcast(&size, sizeof size);
  words.resize(static_cast<size_t>(size));
  broadcast(words.data(), words.size());
  return words;
}

void Ranks::check_same(uint64_t mine, const std::string& what) {
  const std::vector<uint64_t> all = gather(mine);
  for (size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0]) throw Error(text("rank %zu differs from rank 0 in ", r) + what);
}

void check_command_lines(Ranks& ranks, const std::string& program, const std::vector<std::string>& words) {
  std::string compared = program + "\n";
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    if (name == "--quiet" || name == "--no-quiet") continue;
    const bool of_machine = name == "--device" || name == "--threads";
    if (!of_machine) compared += words[i] + "\n";
    if (of_machine && equals == std::string::npos) ++i;
  }
  Checksum checksum;
  checksum.update(compared.data(), compared.size());
  ranks.check_same(checksum.value(), "its command line");
}

std::unique_ptr<Ranks> one_rank() { return std::make_unique<OneRank>(); }

// A process that no launcher started does not initialize MPI, which takes time.
std::unique_ptr<Ranks> join_ranks() {
  if (launched() == 1) return one_rank();
#ifdef PETROGLYPH_MPI
  return std::make_unique<MpiRanks>();
#else
  throw Error(
      text("started as one of %d processes, and this build has no MPI; build it where mpicxx is found, or with "
           "MPI=1",
           launched()));
#endif
}

void hush() {
  if (!std::freopen("/dev/null", "w", stdout)) throw Error("/dev/null: cannot be written");
}

}  // namespace petroglyph
