#include "reproduction/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/program.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr std::chrono::milliseconds POLL(100);  // the longest delay of the output and of a Ctrl-C

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw Error(path + ": " + what + ": " + std::strerror(errno));
}

// Prints the log from byte `begin` on; returns where it ends. pread: the child's output moves the file's position.
off_t print_from(int log, off_t begin) {
  char buffer[4096];
  for (ssize_t n; (n = pread(log, buffer, sizeof buffer, begin)) > 0; begin += n)
    std::fwrite(buffer, 1, static_cast<size_t>(n), stdout);
  std::fflush(stdout);
  return begin;
}

std::string last_line_of(const std::string& log) {
  const std::string output = read_regular_file(log);
  const size_t last = output.find_last_not_of("\r\n");
  if (last == std::string::npos) return "";
  const size_t before = output.find_last_of("\r\n", last);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  return output.substr(begin, last + 1 - begin);
}

}  // namespace

ChildOutcome run_child(const std::string& program, const std::vector<std::string>& words, const std::string& log) {
  if (access(program.c_str(), X_OK) != 0) fail(program, "cannot be run; make builds it");
  std::vector<std::string> all = {program};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int output = open(log.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (output < 0) fail(log, "cannot be opened");
  off_t printed = lseek(output, 0, SEEK_END);
  std::fflush(stdout);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {  // only calls that are allowed between fork and exec
    end_with_parent(parent);
    if (dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0) execv(program.c_str(), pointers.data());
    _exit(127);
  }
  if (child < 0) close(output), fail(program, "cannot be started");
  int status = 0;
  for (bool ended = false, passed_on = false; !ended;) {
    std::this_thread::sleep_for(POLL);
    if (interrupted() && !passed_on) kill(child, SIGINT), passed_on = true;
    ended = waitpid(child, &status, WNOHANG) == child;
    printed = print_from(output, printed);
  }
  close(output);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), last_line_of(log)};
}

}  // namespace petroglyph
