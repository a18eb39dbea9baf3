#include "base/program.h"

#include <fcntl.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/atomic_file.h"
#include "base/text.h"

namespace petroglyph {

namespace {

const char* program_name = "petroglyph";  // of the lines below

// SIGBUS: a mapped file (mapped_file.h) was truncated while it was read, or its disk fails.
extern "C" void petroglyph_end_of_file(int) {
  discard_unfinished_file();
  constexpr char SENTENCE[] =
      ": a file that is being read has become shorter; what was saved before is whole, and --resume continues from "
      "there"
      "with --resume\n";
  (void)!write(STDERR_FILENO, program_name, std::strlen(program_name));
  (void)!write(STDERR_FILENO, SENTENCE, sizeof SENTENCE - 1);
  _exit(1);
}

[[noreturn]] void stop_without_memory(size_t size) {
  std::fflush(stdout);
  discard_unfinished_file();
  char line[512];
  const int length =
      std::snprintf(line, sizeof line,
                    size < (size_t(1) << 20) ? "%s: not enough memory\n"
                                             : "%s: not enough memory: %zu MiB were requested at once; a "
                                               "smaller batch, context or model needs less\n",
                    program_name, size >> 20);
  (void)!write(STDERR_FILENO, line, static_cast<size_t>(std::clamp(length, 0, int(sizeof line) - 1)));
  _exit(1);
}

}  // namespace

void prepare_process() {
  // open() gives the lowest free number, so that this fills what is closed among 0, 1 and 2.
  for (int number = 0; number >= 0 && number <= STDERR_FILENO;) {
    number = open("/dev/null", O_RDWR);
    if (number > STDERR_FILENO) close(number);
  }
  std::signal(SIGCHLD, SIG_DFL);  // a parent may have set it to ignored, and then no child could be waited for
  std::signal(SIGXFSZ, SIG_IGN);  // the write fails instead, with an error that names the file
  std::signal(SIGBUS, petroglyph_end_of_file);
}

void end_with_parent([[maybe_unused]] int parent) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) raise(SIGTERM);  // it ended before the call
#endif
}

std::string called(const std::string& program) { return "./" + program; }

void begin_program(const char* name) {
  program_name = name;
  prepare_process();
}

int complain(const char* name, const std::string& sentence, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", name, in_one_line(sentence).c_str());
  return status;
}

}  // namespace petroglyph

// Without memory a program ends here, with one line. An exception would have to pass through places that let none pass
// (destructors, functions that are noexcept), through library code that takes it for something else (a stream that
// reads the number 0), and, under g++ 12, through half-built nested lists, which it destroys twice. Memory for tensors
// is allocated elsewhere (Ops::allocate), and that error is an exception like others. Weak: clang's checker for races
// has its own.
[[gnu::weak]] void* operator new(size_t size) {
  if (void* const memory = std::malloc(size > 0 ? size : 1)) return memory;
  petroglyph::stop_without_memory(size);
}
[[gnu::weak]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::weak]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
