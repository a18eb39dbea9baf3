// Feeds a parser with what clang's libFuzzer makes up. PETROGLYPH_FUZZ names the parser (parsers.h); the rest of the
// command line is libFuzzer's: PETROGLYPH_FUZZ=json build/fuzz/test/fuzz -max_total_time=60 test/corpus/json

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include "base/atomic_file.h"
#include "dice.h"
#include "parsers.h"

namespace {

const petroglyph::Parser& chosen() {
  petroglyph::work_in_memory();
  const char* const name = std::getenv("PETROGLYPH_FUZZ");
  for (const petroglyph::Parser& parser : petroglyph::parsers())
    if (name && std::string(name) == parser.name) return parser;
  std::fprintf(stderr, "PETROGLYPH_FUZZ: expected the name of a parser\n");
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const petroglyph::Parser& parser = chosen();
  const std::string path =
      (std::filesystem::temp_directory_path() / ("petroglyph-fuzz-" + std::to_string(getpid()) + parser.suffix))
          .string();
  {
    petroglyph::OutputFile file(path, petroglyph::OutputFile::Mode::New);
    file.write(data, size);
  }
  try {
    parser.read(path);
  } catch (const petroglyph::Error&) {
  }
  unlink(path.c_str());
  return 0;
}
