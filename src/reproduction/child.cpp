#include "reproduction/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/program.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr int POLL_MILLISECONDS = 100;  // the longest delay before a Ctrl-C is passed on

[[noreturn]] void fail(const std::string& program, const char* what) {
  throw Error(program + ": " + what + ": " + std::strerror(errno));
}

// Both ends of a pipe, which the destructor closes.
struct Pipe {
  int ends[2] = {-1, -1};

  explicit Pipe(const std::string& program) {
    if (pipe(ends) != 0) fail(program, "cannot make a pipe");
    for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int which) {
    if (ends[which] >= 0) close(ends[which]);
    ends[which] = -1;
  }
};

// Runs in the child, and uses only calls that are allowed between fork and exec. The child gets its own process
// group: otherwise it would receive a terminal's Ctrl-C twice, from the terminal and from this program, and the
// second one ends a program at once.
[[noreturn]] void become(pid_t parent, const char* path, char* const* words, int output, int failure) {
  setpgid(0, 0);
  end_with_parent(parent);
  std::signal(SIGPIPE, SIG_IGN);  // it may print after this program has ended, before it has saved its state
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0) execv(path, words);
  const int reason = errno;
  const ssize_t written = write(failure, &reason, sizeof reason);  // the parent reports the error
  _exit(written == sizeof reason ? 127 : 126);
}

// Reads the child's output until the child closes its end.
class Echo {
 public:
  Echo(const std::string& path, bool quiet) : log_(path, OutputFile::Mode::Append), quiet_(quiet) {}

  bool read_some(int end) {
    char buffer[4096];
    const ssize_t n = read(end, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    const std::string_view words(buffer, static_cast<size_t>(n));
    if (!quiet_) {
      std::fwrite(words.data(), 1, words.size(), stdout);
      std::fflush(stdout);
    }
    log_.write(words);
    for (const char c : words) {
      if (c == '\n' || c == '\r') {
        if (!line_.empty()) last_line = line_;
        line_.clear();
      } else {
        line_ += c;
      }
    }
    return true;
  }
  std::string last_line;

 private:
  OutputFile log_;
  bool quiet_;
  std::string line_;
};

}  // namespace

ChildOutcome run_child(const std::string& program, const std::vector<std::string>& words, const std::string& log,
                       bool quiet) {
  if (!std::filesystem::exists(program)) throw Error(program + ": there is no such program; make builds it");
  std::vector<std::string> all = {program};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  Echo echo(log, quiet);
  Pipe output(program), failure(program);
  std::fflush(stdout);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) fail(program, "cannot be started");
  if (child == 0) become(parent, program.c_str(), pointers.data(), output.ends[1], failure.ends[1]);
  setpgid(child, child);  // both processes set it, whichever is first; this call fails after the child's exec
  output.close_end(1);
  failure.close_end(1);
  int reason = 0;
  const bool started = read(failure.ends[0], &reason, sizeof reason) != sizeof reason;
  bool passed_on = false;
  int status = 0;
  try {
    for (bool open = started; open;) {
      pollfd waiting = {output.ends[0], POLLIN, 0};
      if (poll(&waiting, 1, POLL_MILLISECONDS) > 0) open = echo.read_some(output.ends[0]);
      if (interrupted() && !passed_on) kill(child, SIGINT), passed_on = true;
    }
  } catch (...) {  // the log cannot be written: ends the child, which saves first, and waits for it before the next run
    kill(child, SIGTERM);
    char rest[4096];  // its remaining output
    while (read(output.ends[0], rest, sizeof rest) > 0) {
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    throw;
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  errno = reason;
  if (!started) fail(program, "cannot be started");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), echo.last_line};
}

std::string program_folder(const char* argv0) {
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  const std::filesystem::path path = none ? std::filesystem::absolute(argv0) : self;
  return path.parent_path().string();
}

}  // namespace petroglyph
