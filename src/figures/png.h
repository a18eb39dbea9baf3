// Writes images as PNG files, which any viewer opens.
//
// The compression is deflate with its fixed codes. The only back reference is the repetition of the previous byte.
// This simple scheme suits figures: PNG's filters turn equal adjacent pixels into zeros.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace petroglyph {

// The bytes of the file. rgb: width × height × 3, row by row from the top.
std::string png(int width, int height, const std::vector<uint8_t>& rgb);

}  // namespace petroglyph
