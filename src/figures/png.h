// Pictures as PNG files, which any viewer opens.
//
// The compression is deflate with its fixed codes, and of its back references only the one that repeats the byte before. That
// is little, but what figures have most of: PNG's filters turn equal pixels beside or above each other into zeros.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace petroglyph {

// The file's bytes. rgb: width × height × 3, row by row from the top.
std::string png(int width, int height, const std::vector<uint8_t>& rgb);

}  // namespace petroglyph
