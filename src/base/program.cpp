#include "base/program.h"

#include <fcntl.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <csignal>

#include "base/text.h"

namespace petroglyph {

namespace {

// A file is read where it lies (mapped_file.h), and somebody cut it short: the system has nothing to put in place of what is gone.
extern "C" void petroglyph_end_of_file(int) {
  constexpr char SENTENCE[] =
      "a file that is being read has become shorter; what was saved before is whole, and training goes on from there "
      "with --resume\n";
  (void)!write(STDERR_FILENO, SENTENCE, sizeof SENTENCE - 1);
  _exit(1);
}

}  // namespace

void prepare_process() {
  // open() gives the lowest free number, so that this fills what is closed among 0, 1 and 2.
  for (int number = 0; number >= 0 && number <= STDERR_FILENO;) {
    number = open("/dev/null", O_RDWR);
    if (number > STDERR_FILENO) close(number);
  }
  std::signal(SIGCHLD, SIG_DFL);  // ignored, as a parent may have it, nobody could wait for a process
  std::signal(SIGXFSZ, SIG_IGN);  // the write fails instead, and says for which file
  std::signal(SIGBUS, petroglyph_end_of_file);
}

void end_with_parent([[maybe_unused]] int parent) {
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) raise(SIGTERM);  // it ended before we asked
#endif
}

std::string called(const std::string& program) {
  return "./" + program;
}

int complain(const char* name, const std::string& sentence, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", name, in_one_line(sentence).c_str());
  return status;
}

}  // namespace petroglyph
