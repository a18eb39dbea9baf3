// Zip archives as other programs write them, byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32.h"
#include "base/zip.h"

namespace petroglyph {

struct Archive {
  bool large = false;  // sizes and offsets in 64 bits, as numpy writes them
  int method = 0;
  std::string comment;

  std::string operator()(const std::vector<std::pair<std::string, std::string>>& members) const {
    std::string file, directory;
    for (const auto& [name, data] : members) {
      const uint64_t at = file.size(), ones = 0xFFFFFFFF, size = large ? ones : data.size();
      const std::string numbers = little(data.size(), 8) + little(data.size(), 8);
      const std::string local_extra = large ? little(1, 2) + little(16, 2) + numbers : "";
      // an unknown field first, as other programs write them
      const std::string extra =
          large ? little(0x5455, 2) + little(1, 2) + "x" + little(1, 2) + little(24, 2) + numbers + little(at, 8) : "";
      const std::string common =
          little(method, 2) + little(0, 4) + little(crc32(data), 4) + little(size, 4) + little(size, 4);
      file += "PK\3\4" + little(20, 2) + little(0, 2) + common + little(name.size(), 2) +
              little(local_extra.size(), 2) + name + local_extra + data;
      directory += "PK\1\2" + little(20, 2) + little(20, 2) + little(0, 2) + common + little(name.size(), 2) +
                   little(extra.size(), 2) + std::string(2 + 2 + 2 + 4, '\0') + little(large ? ones : at, 4) + name +
                   extra;
    }
    const uint64_t begin = file.size(), count = members.size();
    file += directory;
    if (large) {
      const uint64_t end = file.size();
      file += "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) + little(count, 8) +
              little(count, 8) + little(directory.size(), 8) + little(begin, 8);
      file += "PK\6\7" + little(0, 4) + little(end, 8) + little(1, 4);
    }
    file += "PK\5\6" + little(0, 4) + little(large ? 0xFFFF : count, 2) + little(large ? 0xFFFF : count, 2) +
            little(directory.size(), 4) + little(large ? 0xFFFFFFFF : begin, 4) + little(comment.size(), 2) + comment;
    return file;
  }
};

}  // namespace petroglyph
