#include "generation/character_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace petroglyph {

namespace {

void print(const char* bytes, size_t count) {
  if (std::fwrite(bytes, 1, count, stdout) == count && std::fflush(stdout) == 0) return;
  throw Error(std::string("cannot write to the standard output: ") + std::strerror(errno));
}

}  // namespace

void CharacterWriter::write(std::string_view bytes) {
  held_ += bytes;
  const size_t whole = held_.size() - incomplete();
  print(held_.data(), whole);
  held_.erase(0, whole);
}

void CharacterWriter::finish() {
  print(held_.data(), held_.size());
  held_.clear();
}

size_t CharacterWriter::incomplete() const {
  for (size_t back = 1; back <= 3 && back <= held_.size(); ++back) {
    const auto byte = static_cast<unsigned char>(held_[held_.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const size_t wants = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return wants > back ? back : 0;
  }
  return 0;
}

}  // namespace petroglyph
