// Replaces a file in one step: whoever looks, whatever is killed, there is the old file or the new one, never half of
// it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace petroglyph {

// An open file. Every call that fails throws an Error with the path and the system's reason.
class OutputFile {
 public:
  enum class Mode { Append, New };  // New: where none is there
  // A link is refused: what is written must not go where somebody else's link leads.
  OutputFile(const std::string& path, Mode mode);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void flush_to_disk();
  void close();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_;
};

// Lets `writer` fill a temporary file in PATH's folder, of a name that no other process takes, flushes it to the disk and
// renames it to PATH. When anything fails, the temporary file is removed, PATH is as before, and the Error says so; the same where a
// signal that nobody catches ends the program. What PATH was stays as `previous`, where that is named:
// what `previous` was is lost when both of the others are on the disk, not before.
void write_file_atomically(const std::string& path, const std::function<void(OutputFile&)>& writer,
                           const std::string& previous = "");
void write_file_atomically(const std::string& path, std::string_view content);

// Removes the temporary file that is being written, where one is. For a process that ends at once; safe in a signal's handler.
void discard_unfinished_file() noexcept;

// Removes the temporary files of processes that were killed while they wrote. Nobody else may be writing into the folder.
void remove_leftovers(const std::string& folder);

// Makes the folder and those above it, which are on the disk then.
void make_folder(const std::string& path);
// Before long work, too: throws Error where make_folder(path) would, of a folder that is not there.
void check_folder(const std::string& path);
// Makes the folder, and those above it; false where it is there already.
bool claim_folder(const std::string& path);
// Throws Error where it is a link: a folder from somebody else must not lead what is written elsewhere.
void refuse_link(const std::string& path);
// Renames a file or folder to NAME.before, or NAME.before-2 and so on: nothing of it is lost. The new name.
std::string put_aside(const std::string& path);

// write_file_atomically(), but a file that is there with another content is put aside first.
void write_keeping(const std::string& path, std::string_view content);

// What we did not write is never replaced: throws Error where the file is there, unless `force`; a device, a pipe or a link to a
// file never is.
void check_replaced(const std::string& path, bool force);

// What is made of files replaces none of them, forced or not: throws Error where `path` is one of those that are read, under
// whatever name.
void check_not_read(const std::string& path, const std::vector<std::string>& read);

// Before long work rather than behind it: throws Error where write_file_atomically(path) could not begin.
void check_writable(const std::string& path);

// All three, of one file.
void check_output(const std::string& path, bool force, const std::vector<std::string>& read);

// The names in a folder, in order; none where there is no folder. Throws Error where it cannot be read to its end.
std::vector<std::string> names_in(const std::string& folder);

// Whether something lies there, be it a link to nowhere; throws Error where the system cannot tell.
bool is_there(const std::string& path);

}  // namespace petroglyph
