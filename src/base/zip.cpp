#include "base/zip.h"

#include <algorithm>

#include "base/atomic_file.h"
#include "base/crc32.h"

namespace petroglyph {

// A zip file is read from its end: a record there says where the central directory lies, whose entries say where the members
// do. Numbers that do not fit into 32 bits are all ones there and stand in 64 bits elsewhere (APPNOTE, 4.3 and 4.5.3).

namespace {
constexpr uint64_t END_SIZE = 22, LONGEST_COMMENT = 0xFFFF, ALL_ONES = 0xFFFFFFFF;
constexpr std::string_view END = "PK\5\6", END_64 = "PK\6\6", LOCATOR_64 = "PK\6\7", ENTRY = "PK\1\2", LOCAL = "PK\3\4";
}  // namespace

ZipFile::Directory ZipFile::find_directory(const std::string& what) const {
  const uint64_t most = std::min(file_.size(), END_SIZE + LONGEST_COMMENT);
  for (uint64_t back = END_SIZE; back <= most; ++back) {
    const uint64_t end = file_.size() - back;
    if (file_.text(end, 4) != END || file_.number(end + 20, 2) != back - END_SIZE) continue;
    const Directory directory{file_.number(end + 16, 4), file_.number(end + 10, 2)};
    if (directory.begin != ALL_ONES && directory.members != 0xFFFF) return directory;
    if (end < 20 || file_.text(end - 20, 4) != LOCATOR_64) return directory;
    const uint64_t end_64 = file_.number(end - 12, 8);
    if (file_.text(end_64, 4) != END_64) file_.fail("is truncated or damaged");
    return {file_.number(end_64 + 48, 8), file_.number(end_64 + 32, 8)};
  }
  file_.fail("is no " + what + ", or truncated: it does not end as a zip archive does");
}

// The numbers of an entry that are all ones stand, in this order, in its extra field 1.
void ZipFile::read_large_numbers(Member& member, const Bytes& extra) {
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const uint64_t id = extra.number(at, 2), size = extra.number(at + 2, 2);
    const Bytes field = extra.part(at + 4, size, extra.name());
    at += 4 + size;
    if (id != 1) continue;
    uint64_t next = 0;
    for (uint64_t* number : {&member.size, &member.stored_size, &member.header})
      if (*number == ALL_ONES) {
        *number = field.number(next, 8);
        next += 8;
      }
  }
}

ZipFile::ZipFile(const MappedFile& file, const std::string& what) : file_(file.data(), file.size(), file.path()) {
  const Directory directory = find_directory(what);
  uint64_t at = directory.begin;
  for (uint64_t i = 0; i < directory.members; ++i) {
    if (file_.text(at, 4) != ENTRY) file_.fail("is truncated or damaged");
    const uint64_t name = file_.number(at + 28, 2), extra = file_.number(at + 30, 2),
                   comment = file_.number(at + 32, 2);
    Member member{std::string(file_.text(at + 46, name)),
                  static_cast<int>(file_.number(at + 10, 2)),
                  file_.number(at + 20, 4),
                  file_.number(at + 24, 4),
                  file_.number(at + 42, 4),
                  file_.number(at + 16, 4)};
    read_large_numbers(member, file_.part(at + 46 + name, extra, file_.name()));
    members_.push_back(std::move(member));
    at += 46 + name + extra + comment;
  }
}

std::vector<std::string> ZipFile::names() const {
  std::vector<std::string> names;
  for (const Member& member : members_) names.push_back(member.name);
  return names;
}

const ZipFile::Member* ZipFile::find(const std::string& name) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const Member& m) { return m.name == name; });
  return found == members_.end() ? nullptr : &*found;
}

Bytes ZipFile::open(const std::string& name, const std::string& where, const std::string& compressed) const {
  const Member* member = find(name);
  if (!member) file_.fail("has no " + name);
  if (member->method != 0) throw Error(where + " is compressed; " + compressed);
  if (file_.text(member->header, 4) != LOCAL || member->stored_size != member->size)
    file_.fail("is truncated or damaged");
  const uint64_t begin =
      member->header + 30 + file_.number(member->header + 26, 2) + file_.number(member->header + 28, 2);
  return file_.part(begin, member->size, where);
}

Bytes ZipFile::open_checked(const std::string& name, const std::string& where, const std::string& compressed) const {
  const Bytes bytes = open(name, where, compressed);
  const uint64_t said = find(name)->checksum;
  if (said != 0 && crc32(bytes.all()) != said) bytes.fail("its checksum is another than the archive's: damaged");
  return bytes;
}

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

void ZipWriter::write(std::string_view bytes) {
  check_room(bytes.size());
  written_ += bytes.size();
  file_.write(bytes);
}

void ZipWriter::check_room(uint64_t bytes) const {
  if (bytes > ALL_ONES - written_)
    throw Error(file_.path() +
                ": cannot write: a zip archive of more than 4 GiB; numbers of 16 bits take half, as with " +
                "--precision bf16");
}

void ZipWriter::add(const std::string& name, std::string_view bytes) {
  check_room(bytes.size());  // before the checksum reads them
  constexpr int VERSION = 20, STORED = 0,
                DAY = 1 << 5 | 1;  // the first of January 1980: equal contents, equal archives
  const uint64_t begin = written_;
  const std::string common = little(VERSION, 2) + little(0, 2) + little(STORED, 2) + little(0, 2) + little(DAY, 2) +
                             little(crc32(bytes), 4) + little(bytes.size(), 4) + little(bytes.size(), 4) +
                             little(name.size(), 2) + little(0, 2);
  write("PK\3\4" + common + name);
  write(bytes);
  directory_ += "PK\1\2" + little(VERSION, 2) + common + little(0, 2 + 2 + 2) + little(0, 4) + little(begin, 4) + name;
  ++members_;
}

void ZipWriter::finish() {
  const uint64_t begin = written_;
  write(directory_);
  write("PK\5\6" + little(0, 4) + little(members_, 2) + little(members_, 2) + little(directory_.size(), 4) +
        little(begin, 4) + little(0, 2));
}

}  // namespace petroglyph
