// Files of photographs as they come from elsewhere, made here: CIFAR's records, and numpy's arrays.
#pragma once

#include <cstdint>
#include <string>

#include "check.h"

namespace petroglyph {

constexpr size_t PIXELS = 1024, BYTES = 3072;

inline std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header += std::string(63 - (10 + header.size()) % 64, ' ') + "\n";
  return std::string("\x93NUMPY") + '\1' + '\0' + little(header.size(), 2) + header + data;
}

// Image i has the bytes i, i + 1, … in the planes' order.
inline std::string planes(int i) {
  std::string bytes;
  for (size_t k = 0; k < BYTES; ++k) bytes += static_cast<char>(i + k);
  return bytes;
}

inline std::string cifar10(int count, int first = 0) {
  std::string file;
  for (int i = first; i < first + count; ++i) file += static_cast<char>(i % 10) + planes(i);
  return file;
}

inline std::string cifar100(int count) {
  std::string file;
  for (int i = 0; i < count; ++i)
    file += little(static_cast<uint64_t>(i % 20), 1) + static_cast<char>(i % 100) + planes(i);
  return file;
}

// CIFAR-5M's X.npy and Y.npy.
struct Arrays {
  std::string images, labels;
};

inline Arrays cifar5m(int count, const std::string& type = "<i8", const std::string& sides = "32, 32, 3",
                      int first_label = 0) {
  std::string pixels, labels;
  for (int i = 0; i < count; ++i) {
    const std::string plane = planes(i);
    for (size_t k = 0; k < BYTES; ++k) pixels += plane[k % 3 * PIXELS + k / 3];
    labels += little(static_cast<uint64_t>(first_label + i % 10), type == "<i8" ? 8 : 4);
  }
  const std::string n = std::to_string(count);
  return {npy("|u1", "(" + n + ", " + sides + ")", pixels), npy(type, "(" + n + ",)", labels)};
}

}  // namespace petroglyph
