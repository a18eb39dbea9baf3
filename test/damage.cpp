// A storm of damaged files: each parser (parsers.h) gets good files with bits flipped, pieces cut out, doubled,
// exchanged. It reads what it gets or refuses it, in one line that names the file; a checkpoint, which has checksums, is
// refused whatever was changed.
//
//   damage [--files N] [--seed N]     make storm: long; make test: some seconds' part

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/options.h"
#include "base/program.h"
#include "check.h"
#include "dice.h"
#include "parsers.h"

namespace petroglyph {
namespace {

// Damage that takes the checksums away makes a file as others write it, which has none.
bool has_checksum(const std::string& bytes) { return bytes.find("checksum") != std::string::npos; }

struct DamageCounts {
  uint64_t inputs = 0, refused = 0;
  char fault[512] = "";
};

// So many damaged files for a parser, in a process of its own: one that crashes or hangs is seen.
DamageCounts damaged_batch(const Parser& parser, const std::vector<std::string>& good, const std::string& path,
                           uint64_t seed, int count) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    DamageCounts counts;
    Dice dice(seed);
    const bool sealed = std::string(parser.name) == "safetensors";
    for (int i = 0; i < count && counts.fault[0] == 0; ++i) {
      const std::string& whole = good[dice.below(good.size())];
      const std::string bytes = damage(whole, good[dice.below(good.size())], dice);
      write_bytes(path, bytes);
      ++counts.inputs;
      try {
        parser.read(path);
        if (sealed && bytes != whole && std::find(good.begin(), good.end(), bytes) == good.end() && has_checksum(bytes))
          std::snprintf(counts.fault, sizeof counts.fault, "input %d of seed %llu: damaged, and taken", i,
                        static_cast<unsigned long long>(seed));
      } catch (const Error& error) {
        const std::string message = error.what(), name = std::filesystem::path(path).stem().string();
        if (message.find(name) == std::string::npos || message.find('\n') != std::string::npos)
          std::snprintf(counts.fault, sizeof counts.fault, "input %d of seed %llu: not one line with the file: %.300s",
                        i, static_cast<unsigned long long>(seed), message.c_str());
        ++counts.refused;
      } catch (const std::exception& error) {
        std::snprintf(counts.fault, sizeof counts.fault, "input %d of seed %llu: %.400s", i,
                      static_cast<unsigned long long>(seed), error.what());
      }
    }
    _exit(write(ends[1], &counts, sizeof counts) == sizeof counts ? 0 : 1);
  }
  close(ends[1]);
  DamageCounts counts;
  const bool told = read(ends[0], &counts, sizeof counts) == sizeof counts;
  close(ends[0]);
  const int status = wait_for(child);
  if (!told)
    std::snprintf(counts.fault, sizeof counts.fault, "seed %llu: ended with status %d",
                  static_cast<unsigned long long>(seed), status);
  return counts;
}

// The corpus as it is: good files are read, and what a fuzzer found (found-*) is read or refused.
std::string read_undamaged(const Parser& parser, const std::filesystem::path& file, const std::string& path) {
  write_bytes(path, read_bytes(file.string()));
  try {
    parser.read(path);
  } catch (const Error& error) {
    if (file.filename().string().rfind("found-", 0) != 0) return file.string() + ": " + error.what();
  } catch (const std::exception& error) {
    return file.string() + ": " + error.what();
  }
  return "";
}

void damaged_files(Test& test, int wanted, uint64_t seed, const std::string& corpus) {
  constexpr int BATCH = 1000;
  const TemporaryFolder folder;
  const auto start = Clock::now();
  uint64_t inputs = 0, refused = 0;
  const int each = (wanted + static_cast<int>(parsers().size()) - 1) / static_cast<int>(parsers().size());
  for (const Parser& parser : parsers()) {
    std::vector<std::string> good;
    std::string fault;
    for (const auto& entry : std::filesystem::directory_iterator(corpus + "/" + parser.name)) {
      good.push_back(read_bytes(entry.path().string()));
      if (fault.empty()) fault = read_undamaged(parser, entry.path(), folder.file("whole") + parser.suffix);
    }
    if (!test.check(std::string("a corpus of ") + parser.name, !good.empty() && fault.empty(), fault)) continue;
    std::sort(good.begin(), good.end());
    for (int done = 0; done < each && fault.empty(); done += BATCH) {
      const DamageCounts counts =
          damaged_batch(parser, good, folder.file("damaged") + parser.suffix, seed++, std::min(BATCH, each - done));
      inputs += counts.inputs;
      refused += counts.refused;
      fault = counts.fault;
    }
    test.check(std::string("damaged files of ") + parser.name + " are refused or read", fault.empty(), fault);
  }
  std::printf("     storm of damage: %llu damaged files, %llu refused, the others read, %.0f s\n",
              static_cast<unsigned long long>(inputs), static_cast<unsigned long long>(refused), seconds_since(start));
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  return run_program("damage", [&] {
    int files = 8000;
    uint64_t seed = 1;
    std::string corpus = "test/corpus";
    Options options("damage", "Damages files at random and lets them be read.");
    options.add("files", &files, 1, 1 << 30, "damaged files to read");
    options.add("seed", &seed, 0, 1 << 30, "other damage");
    options.add("corpus", &corpus, "FOLDER", "good files to damage");
    options.parse({argv + 1, argv + argc});
    work_in_memory();
    Test test(1, argv);
    test.run("damage", [&] { damaged_files(test, files, seed, corpus); });
    return test.finish();
  });
}
