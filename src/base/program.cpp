#include "base/program.h"

#include <fcntl.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <csignal>
#include <cstring>
#include <new>

#include "base/text.h"

namespace petroglyph {

namespace {

const char* program_name = "petroglyph";  // of the lines below

// Uses only calls that a signal's handler may use.
[[noreturn]] void end_at_once(const char* sentence) {
  (void)!write(STDERR_FILENO, program_name, std::strlen(program_name));
  (void)!write(STDERR_FILENO, sentence, std::strlen(sentence));
  _exit(1);
}

// SIGBUS: a mapped file (mapped_file.h) was truncated while it was read, or its disk fails.
extern "C" void petroglyph_end_of_file(int) {
  end_at_once(
      ": a file that is being read has become shorter; what was saved before is whole, and --resume continues\n");
}

// Without memory a program ends here, with one line. An exception would have to pass through places that let none pass
// (destructors, functions that are noexcept), through library code that takes it for something else (a stream that
// reads the number 0), and, under g++ 12, through half-built nested lists, which it destroys twice. Memory for tensors
// is allocated elsewhere (Ops::allocate), and that error is an exception like others.
void stop_without_memory() {
  std::fflush(stdout);
  end_at_once(": not enough memory; a smaller batch, context or model needs less\n");
}

// Before main() and before other static objects are made: they allocate, too.
__attribute__((constructor(101))) void prepare_for_static_objects() { std::set_new_handler(stop_without_memory); }

}  // namespace

void begin_program(const char* name) {
  program_name = name;
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

int complain(const char* name, const std::string& sentence, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", name, in_one_line(sentence).c_str());
  return status;
}

}  // namespace petroglyph
