#include "generation/character_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

CharacterWriter::CharacterWriter() : terminal_(isatty(STDOUT_FILENO)) {}

void CharacterWriter::print(std::string_view bytes) const {
  std::string shown;
  for (size_t at = 0, end; terminal_ && at < bytes.size(); at = end + 1) {
    end = std::min(bytes.find_first_of("\n\t", at), bytes.size());
    shown += in_one_line(bytes.substr(at, end - at));
    shown += bytes.substr(end, 1);
  }
  if (terminal_) bytes = shown;
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0) return;
  throw Error(std::string("cannot write to the standard output: ") + std::strerror(errno));
}

void CharacterWriter::write(std::string_view bytes) {
  held_ += bytes;
  const size_t whole = held_.size() - incomplete();
  print(std::string_view(held_).substr(0, whole));
  held_.erase(0, whole);
}

void CharacterWriter::finish() {
  print(held_);
  held_.clear();
}

size_t CharacterWriter::incomplete() const {
  for (size_t back = 1; back <= 3 && back <= held_.size(); ++back) {
    const auto byte = static_cast<unsigned char>(held_[held_.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

}  // namespace petroglyph
