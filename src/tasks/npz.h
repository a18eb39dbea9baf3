// The arrays of a .npz file, which is a zip archive of numpy's .npy files, where they lie in the file: nothing is copied, so
// they may be larger than memory. Their members must be stored as they are, which is what numpy.savez does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/mapped_file.h"

namespace petroglyph {

struct NpyArray {
  std::string type;            // as numpy writes it: "|u1", "<i8"
  std::vector<int64_t> shape;  // the last index runs fastest
  const unsigned char* data;   // good as long as the file is mapped; at any alignment
};

// The array that numpy knows as file[name]. Throws Error, with the file's name, where there is none, where it is compressed, or
// where the file is damaged. (The archive's checksums are not computed: they would read all of it.)
NpyArray find_array(const MappedFile& file, const std::string& name);

}  // namespace petroglyph
