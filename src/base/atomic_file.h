// Replaces a file in one step: at every moment, also after a crash, the whole old file or the whole new one is there.
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
  enum class Mode { Append, New };  // New: the file must not exist
  // A link is refused: the file must not be written where another user's link points. name: the path in errors, where
  // that is another.
  OutputFile(const std::string& path, Mode mode, const std::string& name = "");
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
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

// Lets `writer` fill a temporary file in PATH's folder, of a name that no other process takes, flushes it to the disk
// and renames it to PATH. When anything fails, the temporary file is removed, and PATH is as before.
// A process that a signal ends may leave the temporary file, .petroglyph-NUMBER-1.tmp. What PATH was stays as
// `previous`, where that is named.
void write_file_atomically(const std::string& path, const std::function<void(OutputFile&)>& writer,
                           const std::string& previous = "");
void write_file_atomically(const std::string& path, std::string_view content);

// Removes the temporary files of processes that were killed while they wrote. Nobody else may be writing into the
// folder.
void remove_leftovers(const std::string& folder);

// Makes the folder and its parents, and flushes them to the disk. False if the folder exists already.
bool make_folder(const std::string& path);
// Throws Error if it is a link: a folder from another user must not redirect what is written.
void refuse_link(const std::string& path);
// Renames a file or folder to NAME.before, or NAME.before-2 and so on, and returns the new name: nothing is lost.
std::string put_aside(const std::string& path);

// write_file_atomically(), but a file that is there with another content is put aside first.
void write_keeping(const std::string& path, std::string_view content);

// Throws Error if the file exists, unless `force`. A device, a pipe or a link to a file is never replaced.
void check_replaced(const std::string& path, bool force);

// An output never replaces an input, forced or not: throws Error if `path` is one of the files that are read, under any
// name.
void check_not_read(const std::string& path, const std::vector<std::string>& read);

// Called before long work: throws Error if write_file_atomically(path) could not begin.
void check_writable(const std::string& path);

// All three, of one file.
void check_output(const std::string& path, bool force, const std::vector<std::string>& read);

// The sorted names in a folder; none if there is no folder. Throws an exception that names it if it cannot be read.
std::vector<std::string> names_in(const std::string& folder);

// Whether the path exists, a link to nowhere included; throws an exception that names it if the system
// cannot tell.
bool is_there(const std::string& path);

}  // namespace petroglyph
