// The time spent in each operation, measured for the bench.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace petroglyph {

struct Profile {
  struct Entry {
    double seconds = 0;
    int64_t calls = 0;
  };
  std::map<std::string, Entry> entries;
};

// Adds the time from its construction to its destruction to the caller's entry, unless profile is null.
class Measured {
 public:
  Measured(Profile* profile, const char* caller) : profile_(profile), caller_(caller) {
    if (profile) start_ = std::chrono::steady_clock::now();
  }
  ~Measured() {
    if (!profile_) return;
    Profile::Entry& entry = profile_->entries[caller_];
    entry.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    ++entry.calls;
  }
  Measured(const Measured&) = delete;

 private:
  Profile* const profile_;
  const char* const caller_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace petroglyph
