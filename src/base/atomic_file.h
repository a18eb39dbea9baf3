// Replaces a file in one step: whoever looks, whatever is killed, there is the old file or the new one, never half of
// it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace petroglyph {

// An open file. Every call that fails throws an Error with the path and the system's reason.
class OutputFile {
 public:
  enum class Mode { Replace, Append };
  OutputFile(const std::string& path, Mode mode);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void flush_to_disk();
  void close(bool flushed);

 private:
  std::string path_;
  int descriptor_;
};

// Lets `writer` fill PATH.tmp, flushes it to the disk and renames it to PATH. When anything fails, PATH.tmp is removed,
// PATH is as before, and the Error says so.
void write_file_atomically(const std::string& path, const std::function<void(OutputFile&)>& writer);
void write_file_atomically(const std::string& path, std::string_view content);

// Makes the folder and those above it.
void make_folder(const std::string& path);

}  // namespace petroglyph
