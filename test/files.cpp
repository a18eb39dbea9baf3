// Everything that reads, writes or explains: JSON, configurations, checkpoints, options, logs, progress, figures; above
// all what happens when a file or a command line is wrong.
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/atomic_file.h"
#include "base/cadence.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/folder_lock.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/log.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "base/version.h"
#include "check.h"
#include "dice.h"
#include "figures/figure.h"
#include "models/config.h"

using namespace petroglyph;

namespace {

constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();
constexpr double INFINITE = std::numeric_limits<double>::infinity();

// Runs the function in a child process and returns the status from waitpid.
template <class Function>
int status_of_child(Function function) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    function();
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

void text_forms(Test& test) {
  for (const auto& [found, expected] : std::vector<std::pair<std::string, std::string>>{
           {in_one_line("a\nb\tü"), "a\\nb\\x09ü"},
           // A terminal's commands, broken letters, control characters of 8 bits, turned text.
           {in_one_line("\x1b[2J\xff\xc3\xbc\xc3"), "\\x1B[2J\\xFFü\\xC3"},
           {in_one_line("\u009b1m \u202eü \u2066 \u200f"), "\\u009B1m \\u202Eü \\u2066 \\u200F"},
           {text("%s %d", "step", 7), "step 7"},
           {text("%s", ""), ""},
           {markup_text("<a b=\"1\">&\n\tü\x1b\xff"), "&lt;a b=&quot;1&quot;&gt;&amp;\n\tü\\x1B\\xFF"},
           {markup_text("a\ufffe\uffff\u009b\u202eb"), "a\\uFFFE\\uFFFF\\u009B\\u202Eb"},
           {with_commas(1204224), "1,204,224"},
           {with_commas(-999), "-999"},
           {with_commas(INT64_MIN), "-9,223,372,036,854,775,808"},
           {counted(0, "token") + ", " + counted(1, "token"), "0 tokens, 1 token"},
           {duration_text(42.2) + " " + duration_text(59.7) + " " + duration_text(3909), "0:42 1:00 1:05:09"},
           {duration_text(NOT_A_NUMBER), "?"},
           {shape_text({192, 64}) + " " + shape_text({}), "192×64 scalar"},
           {nearest_word("lenght", {"width", "length", "layers"}), "length"},
           {nearest_word("len", {"width", "length", "layers"}), "length"},
           {nearest_word("zebra", {"width", "length", "layers"}), ""},
           {std::string(trim(" \ta b\r\n")), "a b"}})
    test.equal(expected, found, expected);
  // The longest beginning that is UTF-8: not with an overlong form, a surrogate, a cut character, one beyond U+10FFFF.
  for (const auto& [bytes, length] : {std::pair("aä€😀", size_t(10)),
                                      {"a\xC0\x80", 1},
                                      {"a\xED\xA0\x80", 1},
                                      {"a\xE2\x82", 1},
                                      {"\xF4\x90\x80\x80", 0}})
    test.equal(std::string("UTF-8: ") + bytes, utf8_prefix(bytes), length);
  test.throws("/nowhere/x: cannot read: No such file", [] { read_file("/nowhere/x"); });
  test.throws("expected a file, found something else", [] { read_file("/"); });
}

void numbers(Test& test) {
  for (const char* bad :
       {"", "-", ".", "e5", "1e", "1e+", "0x10", "1,5", " 1", "1 ", "+1", "inf", "nan", "1e999", "--1"}) {
    test.check(std::string("not a number: \"") + bad + "\"", !parse_number(bad));
  }
  test.equal("half", *parse_number(".5"), 0.5);
  test.equal("trailing point", *parse_number("5."), 5.0);
  test.equal("exponent", *parse_number("-2.5e-3"), -0.0025);
  test.equal("largest integer", *parse_integer("9223372036854775807"), INT64_MAX);
  test.check("one more is none", !parse_integer("9223372036854775808"));
  test.check("a whole number has no point", !parse_integer("3.0"));
  test.equal("exact: whole", exact_text(1e15), "1000000000000000");
  test.equal("exact: 2^53", exact_text(9007199254740992.0), "9007199254740992");
  test.equal("exact: negative zero", exact_text(-0.0), "-0");
  test.equal("exact: tenth", exact_text(0.1), "0.1");
  test.equal("exact: third", exact_text(1.0 / 3), "0.3333333333333333");
  test.equal("of a log: a count beyond nine digits", log_text(1000000008), "1000000008");
  test.equal("of a log: a loss", log_text(1.0 / 3), "0.333333333");
  Dice dice(1);
  bool doubles = true, floats = true;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t bits =
        uint64_t(dice.below(1u << 31)) << 33 ^ uint64_t(dice.below(1u << 31)) << 10 ^ dice.below(1u << 20);
    double wide;
    float narrow;
    const uint32_t few = uint32_t(bits >> 32);
    std::memcpy(&wide, &bits, sizeof wide);
    std::memcpy(&narrow, &few, sizeof narrow);
    if (std::isnormal(wide)) doubles = doubles && same(*parse_number(exact_text(wide)), wide);
    if (std::isfinite(narrow)) floats = floats && same(float(*parse_number(number_text(narrow, 9))), narrow);
  }
  test.check("doubles come back from exact_text", doubles);
  test.check("floats come back from 9 digits", floats);
}

void checksums(Test& test) {
  const std::string bytes = read_bytes(test.program()).substr(0, 5000);
  Checksum whole;
  whole.update(bytes.data(), bytes.size());
  bool equal = true;
  Dice dice(1);
  for (int i = 0; i < 200; ++i) {
    Checksum pieces;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = std::min(bytes.size() - at, dice.below(100));
      pieces.update(bytes.data() + at, size);
      at += size;
    }
    equal = equal && pieces.value() == whole.value();
  }
  test.check("any cutting gives the same", equal);
  test.equal("of nothing", Checksum().hex(), "b9b7de19a608ff49");
  Checksum abc;
  abc.update("abc", 3);
  test.equal("of abc", abc.hex(), "a20908740600b294");
  Checksum zero;
  zero.update("abc\0", 4);
  test.check("a zero at the end counts", zero.value() != abc.value());
}

void json_values(Test& test) {
  const char* const text = R"({"a":[1,-2.5,1e+300,true,false,null,"x"],"b":{},"c":[],"":"\"\\\n\u0001é😀"})";
  const Json json = Json::parse(text, "file");
  test.equal("comes back as it was", json.text(), text);
  test.check("equal to itself", json == Json::parse(json.text(), "again"));
  test.equal("escapes", Json::parse(R"("\u00e9\ud83d\ude00\/\b\f\n\r\t\u0041")", "file").string(), "é😀/\b\f\n\r\tA");
  test.equal("space around", Json::parse(" \r\n\t[ 1 , 2 ] \n", "file").text(), "[1,2]");
  test.equal("integer", Json::parse("9007199254740991", "file").integer(), int64_t(9007199254740991));
  test.equal("an integer with an exponent", Json::parse("1.5e3", "file").integer(), 1500);
  test.equal("order and replacement", Json::object().set("b", 1).set("a", 2).set("b", "x").text(),
             R"({"b":"x","a":2})");
  test.equal("array", Json::array().push(1).push(0.5).push(nullptr == nullptr).text(), "[1,0.5,true]");
  test.equal("find", json.find("c")->items().size(), size_t(0));
  test.check("find nothing", json.find("z") == nullptr);
  test.throws("at", "expected a key \"z\"", [&] { json.at("z"); });
  test.throws("another kind", "expected a number, found a string", [] { Json("1").number(); });
  test.throws("not whole", "expected a whole number, found 0.5", [] { Json(0.5).integer(); });
  test.throws("no NaN", "JSON has no number for nan", [] { Json json(NOT_A_NUMBER); });
  test.throws("no infinity", "JSON has no number for -inf", [] { Json json(-INFINITE); });
  test.throws("too large an integer", "expected a whole number, found 1.8446744073709552e+19",
              [] { Json json(UINT64_MAX); });
  test.throws("too small an integer", "expected a whole number, found -9.223372036854776e+18",
              [] { Json json(INT64_MIN); });
  test.throws("bytes that are not UTF-8", "expected UTF-8 text, byte 1 is not", [] { Json json("a\xFF"); });
}

void json_errors(Test& test) {
  const auto refuses = [&](const std::string& text, const std::string& message) {
    test.throws("a.json: line " + message, [&] { Json::parse(text, "a.json"); });
  };
  refuses("", "1: expected a value, found the end");
  refuses("{\n\"a\": 1,\n}", "3: expected a key in double quotes, found '}'");
  refuses("{\"a\" 1}", "1: expected ':' after a key, found '1'");
  refuses("{\"a\":1 \"b\":2}", "1: expected ',' or '}', found '\"'");
  refuses("{\"a\":1,\n\"\\u0061\":2}", "2: expected each key once, found \"a\" again");
  refuses("[1,]", "1: expected a value, found ']'");
  refuses("[1\n", "2: expected ',' or ']', found the end");
  refuses("1 2", "1: expected the end, found '2'");
  refuses("1-2", "1: expected a number that fits a double, found 1-2");
  refuses("1e999", "1: expected a number that fits a double, found 1e999");
  for (const char* number : {"01", "-012", "1.", "-.5", "1.e5"})
    refuses(number, std::string("1: expected a number that fits a double, found ") + number);
  refuses("NaN", "1: expected a value, found 'N'");
  refuses("tru", "1: expected a value, found 't'");
  refuses("\"a", "1: expected '\"' at the end of a string, found the end");
  refuses("\"a\nb\"", "1: expected no control character in a string, found '\\n'");
  refuses("\"\\x\"", "1: expected an escape such as \\n or \\u0041, found 'x'");
  refuses("\"\\u12g4\"", "1: expected four hexadecimal digits after \\u, found 'g'");
  refuses("\"\\ud800x\"", "1: expected the second half of a surrogate pair, found 'x'");
  refuses("\"\\udc00\"", "1: expected the first half of a surrogate pair before its second, found '\"'");
  refuses("\n\"\xFF\"", "2: expected UTF-8, found '\\xFF'");
  refuses(std::string("\0", 1), "1: expected a value, found '\\x00'");
  const std::string deep = std::string(64, '[') + std::string(64, ']');
  test.check("64 levels are read", Json::parse(deep, "file").is(Json::Kind::Array));
  refuses("[" + deep + "]", "1: expected at most 64 levels, found one more");
  refuses(std::string(1000000, '['), "1: expected at most 64 levels, found one more");
  std::string many = "[0";
  for (int i = 0; i < Json::MAX_VALUES; ++i) many += ",0";
  refuses(many, "1: expected at most 4,000,000 values, found one more");
  test.check("a value is small", sizeof(Json) <= 48, std::to_string(sizeof(Json)) + " bytes");
}

void config(Test& test) {
  const auto reader = [](const char* text) { return ConfigReader("causal_rn", Json::parse(text, "file")); };
  ConfigReader good =
      reader(R"({"hidden":192,"dropout":0.1,"bias":false,"activation":"exp","kernels":[3,5],"name":null})");
  test.equal("integer", good.integer("hidden", 1, 1024), 192);
  test.equal("number", good.number("dropout", 0, 1), 0.1);
  test.equal("boolean", good.boolean("bias"), false);
  test.equal("choice", good.choice("activation", {"exp", "relu"}), "exp");
  test.equal("integers", good.integers("kernels", 1, 9), std::vector<int64_t>{3, 5});
  test.equal("null means absent", good.string("name", "none"), "none");
  test.equal("absent integer", good.integer("heads", 1, 4, 2), 2);
  test.equal("absent choice", good.choice("norm", {"pre", "post"}, "post"), "post");
  good.finish();

  for (const auto& [config, message] :
       {std::pair(R"({"heads":5,"kernels":[]})", "heads 5 out of range 1 to 4"),
        {R"({"heads":1e300,"kernels":[]})", "heads 1e+300 out of range 1 to 4"},
        {R"({"heads":2.5,"kernels":[]})", "heads 2.5 is not a whole number"},
        {R"({"dropout":1.5,"kernels":[]})", "dropout 1.5 out of range 0 to 1"},
        {R"({"activation":"gulu","kernels":[]})", "activation \"gulu\" is not one of exp, relu"},
        {R"({"bias":0,"kernels":[]})", "bias: expected true or false, found a number"},
        {R"({"kernels":[3,0]})", "kernels[1] 0 out of range 1 to 9"},
        {"{}", "config lacks \"kernels\""},
        {R"({"kernels":[3],"hiden":3})", "unknown key \"hiden\" in the config"}}) {
    ConfigReader bad = reader(config);
    const auto read_all = [&] {
      bad.integer("heads", 1, 4, 2);
      bad.number("dropout", 0, 1, 0);
      bad.choice("activation", {"exp", "relu"}, "exp");
      bad.boolean("bias", false);
      bad.integers("kernels", 1, 9);
      bad.finish();
    };
    test.equal(message, message_of(read_all), std::string("causal_rn: ") + message);
  }
  test.throws("causal_rn: expected an object as config, found a list", [&] { reader("[]"); });
}

// A checkpoint with every type, an empty tensor, a scalar and names that JSON must escape.
struct SmallCheckpoint {
  std::vector<float> weight = {1.5f, -0.0f, 3e-45f, 4, 5, std::nanf("")};
  std::vector<double> moment = {0.1, -2, 1e300};
  std::vector<int32_t> counts = {-1, 2};
  std::vector<int64_t> step = {1234567890123};
  std::vector<uint8_t> bytes = {0, 255, 7};

  void save(const std::string& path) const {
    SafetensorsWriter writer;
    writer.metadata("config", R"({"width":64})");
    writer.metadata("seed", "1");
    writer.add("blocks.0.weight", {2, 3}, weight.data());
    writer.add("moment \"é\"", "F64", {3, 1}, moment.data());
    writer.add("counts", "I32", {2}, counts.data());
    writer.add("nothing", "I32", {0, 7}, counts.data());
    writer.add("step", "I64", {}, step.data());
    writer.add("bytes", "U8", {3}, bytes.data());
    writer.save(path);
  }
};

bool holds(const SafetensorsFile& file, const SmallCheckpoint& saved) {
  const auto equal = [&](const char* name, const auto& values) {
    const auto& entry = file.entry(name);
    const size_t size = values.size() * sizeof values[0];
    return entry.end - entry.begin == size && std::memcmp(file.data_of(entry), values.data(), size) == 0;
  };
  const std::map<std::string, std::string> metadata = {{"config", R"({"width":64})"}, {"seed", "1"}};
  return file.metadata() == metadata && file.names().size() == 6 && equal("blocks.0.weight", saved.weight) &&
         equal("moment \"é\"", saved.moment) && equal("counts", saved.counts) && file.entry("nothing").count() == 0 &&
         equal("step", saved.step) && equal("bytes", saved.bytes) &&
         file.entry("blocks.0.weight").shape == std::vector<int64_t>{2, 3} && file.entry("step").shape.empty();
}

void safetensors(Test& test) {
  const TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  const SmallCheckpoint saved;
  saved.save(path);
  const SafetensorsFile file(path);
  test.check("comes back, bit for bit", holds(file, saved));
  test.equal("order of the names", file.names(),
             std::vector<std::string>{"blocks.0.weight", "moment \"é\"", "counts", "nothing", "step", "bytes"});
  const std::string bytes = read_bytes(path);
  uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  test.equal("the data is aligned", length % 8, 0);
  saved.save(path);
  test.check("equal contents make equal files", read_bytes(path) == bytes);
  test.check("an open file outlives its replacement", holds(file, saved));
  test.equal("as float from float", file.read_as_float("blocks.0.weight"), saved.weight);
  float two[2];
  file.read_as_float("moment \"é\"", 0, 1, two);
  test.equal("as float from double", two[0], 0.1f);
  const auto fails_with = [&](const std::string& message, auto ask) {
    test.equal(message, message_of(ask), path + ": " + message);
  };
  fails_with("it has no tensor head", [&] { file.entry("head"); });
  fails_with("its metadata lacks \"task\"", [&] { file.metadata("task"); });
  fails_with("tensor moment \"é\" has 1e+300, too large for 32 bits", [&] { file.read_as_float("moment \"é\""); });
  fails_with("tensor counts is of type I32, expected F32, F64, F16 or BF16", [&] { file.read_as_float("counts"); });
  fails_with("tensor step has shape scalar, expected 1", [&] { file.expect_shape("step", {1}); });
  file.expect_shape("blocks.0.weight", {2, 3});

  SafetensorsWriter().save(path);
  test.equal("a file without tensors", SafetensorsFile(path).names().size(), size_t(0));
  SafetensorsWriter writer;
  writer.add("a", {1}, two);
  test.throws("tensor a: this name was used before", [&] { writer.add("a", {1}, two); });
  test.throws("__metadata__: this name was used before", [&] { writer.add("__metadata__", {1}, two); });
  test.throws("tensor b: impossible shape -1×2", [&] { writer.add("b", {-1, 2}, two); });
  test.throws("tensor b: impossible shape", [&] { writer.add("b", {INT64_MAX, INT64_MAX}, two); });
  test.throws("tensor b: impossible shape 1 of type F31", [&] { writer.add("b", "F31", {1}, two); });
  test.throws("is reserved for the checksums", [&] { writer.metadata("checksum_of_data", "x"); });
}

// Every length that is cut off and every bit that is flipped is noticed, in one line that names the file.
void safetensors_damaged(Test& test) {
  const TemporaryFolder folder;
  const std::string path = folder.file("damaged.safetensors");
  SmallCheckpoint().save(path);
  const std::string bytes = read_bytes(path), length = with_commas(int64_t(bytes.size()));
  const auto refused = [&](const std::string& name, const std::string& words) {
    const std::string message = message_of([&] { SafetensorsFile file(path); });
    const bool clear = message.compare(0, path.size() + 2, path + ": ") == 0 &&
                       message.find(words) != std::string::npos && message.find('\n') == std::string::npos;
    if (!clear) test.check(name, false, message.empty() ? "not noticed" : message);
    return clear;
  };
  size_t cut = 0, flipped = 0;
  for (size_t size = bytes.size(); size-- > 0;) {
    std::filesystem::resize_file(path, size);
    cut += refused(text("cut to %zu bytes", size), size == 1 ? " byte long" : " bytes long");
  }
  test.equal("every length is refused", cut, bytes.size());
  for (const std::string& other : {bytes + "x", bytes.substr(0, bytes.size() - 1)}) {
    write_bytes(path, other);
    test.throws("bytes long, expected " + length + ": truncated or damaged", [&] { SafetensorsFile file(path); });
  }
  write_bytes(path, bytes);
  {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto put = [&](size_t at, char byte) { stream.seekp(std::streamoff(at)).put(byte).flush(); };
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      put(bit / 8, static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8));
      flipped += refused(text("bit %zu", bit), "");
      put(bit / 8, bytes[bit / 8]);
    }
  }
  SafetensorsFile restored(path);  // or the loop above has tested something else
  test.equal("every flipped bit is noticed", flipped, bytes.size() * 8);
  std::string data = bytes, metadata = bytes;
  std::swap(data[data.size() - 40], data[data.size() - 12]);
  metadata[metadata.find("width")] = 'W';
  for (const auto& [changed, words] :
       {std::pair(data, "checksum of the data is "), {metadata, "checksum of the header is "}}) {
    write_bytes(path, changed);
    test.throws(path + ": " + words, [&] { SafetensorsFile file(path); });
  }
}

std::string with_header(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

void safetensors_foreign(Test& test) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  const std::string eight(8, 'd');
  write_bytes(path, with_header(R"({"__metadata__": {"format": "pt"},
    "b": {"dtype": "F16", "shape": [2], "data_offsets": [4, 8]},
    "a": {"shape": [1], "data_offsets": [0, 4], "dtype": "F32"}}   )",
                                eight));
  const SafetensorsFile good(path);
  test.equal("another program's file is read", good.read_as_float("a").size(), size_t(1));
  test.equal("its metadata", good.metadata("format"), "pt");
  test.equal("a type known by its size", good.entry("b").count(), 2);

  const auto refuses = [&](const std::string& bytes, const std::string& message) {
    write_bytes(path, bytes);
    test.equal(message, message_of([&] { SafetensorsFile file(path); }), path + ": " + message);
  };
  const auto tensor = [&](const std::string& entry) { return with_header("{\"a\":" + entry + "}", eight); };
  const auto fields = [&](const char* dtype, const char* shape, const char* offsets) {
    return tensor(text(R"({"dtype":"%s","shape":%s,"data_offsets":%s})", dtype, shape, offsets));
  };
  refuses("", "0 bytes long: truncated, or not a safetensors file");
  refuses("This is a text, not a checkpoint.\n", "34 bytes long: truncated, or not a safetensors file");
  refuses(with_header("[]"), "10 bytes long: truncated, or not a safetensors file");
  refuses(with_header("{a}"), "header: line 1: expected a key in double quotes, found 'a'");
  refuses(with_header("{}", "x"), "11 bytes long, expected 10: truncated or damaged");
  refuses(tensor("7"), "a: expected an object, found a number");
  refuses(tensor("{}"), "a: expected a key \"dtype\"");
  refuses(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"),
          "a: expected dtype, shape and two data_offsets");
  refuses(fields("F32", "[2]", "[0]"), "a: expected dtype, shape and two data_offsets");
  refuses(fields("F32", "2", "[0,8]"), "a: expected a list, found a number");
  refuses(fields("F32", "[2.5]", "[0,8]"), "a: expected a whole number, found 2.5");
  for (const auto& [dtype, shape, from, to] : {std::tuple("F31", "2", "0", "8"),
                                               {"F32", "-2,-1", "0", "8"},
                                               {"F32", "4294967296,4294967296", "0", "8"},
                                               {"F32", "3", "0", "8"},
                                               {"F32", "2", "8", "0"},
                                               {"F32", "2", "-8", "0"}})
    refuses(fields(dtype, text("[%s]", shape).c_str(), text("[%s,%s]", from, to).c_str()),
            text("a: the shape %s of type %s does not take the bytes %s to %s", join(split(shape, ','), "×").c_str(),
                 dtype, from, to));
  refuses(fields("F32", "[1]", "[4,8]"), "tensor a begins at byte 4 of the data, expected 0");
  refuses(fields("F64", "[1000]", "[0,8000]"), "76 bytes long, expected 8,068: truncated or damaged");
  refuses(with_header(R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},)"
                      R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                      eight),
          "tensor b begins at byte 4 of the data, expected 5");
  refuses(with_header(R"({"__metadata__":{"a":3}})"), "__metadata__: expected a string, found a number");
  refuses(with_header(R"({"__metadata__":{"checksum_of_data":"0"}})"), "it has one checksum of two: damaged");
}

// Also a link that leads nowhere.
bool exists(const std::string& name) { return std::filesystem::exists(std::filesystem::symlink_status(name)); }

// Temporary files in the folder.
int leftovers(const TemporaryFolder& folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    count += entry.path().extension() == ".tmp";
  return count;
}

// Places where no file can be written. Disks that are full: test/programs.cpp.
void no_place(Test& test, const TemporaryFolder& folder, const std::string& path) {
  std::filesystem::create_directory(folder.file("d"));
  for (const auto& [place, words] : {std::pair(folder.file("no/such/a"), "No such file or directory"),
                                     {path + "/b", "Not a directory"},
                                     {folder.file("d"), "Is a directory"}}) {
    const std::string refused = place + ": cannot write: " + words;
    test.throws(refused, [&, place = place] { write_file_atomically(place, "x"); });
    test.throws(refused, [place = place] { check_writable(place); });
  }
  // Root may write everywhere, so that a child process without its rights has to try.
  chmod(folder.path().c_str(), 0755);
  chmod(folder.file("d").c_str(), 0555);
  const std::string locked = folder.file("d/x");
  const int denied = status_of_child([&] {
    constexpr uid_t NOBODY = 65534;
    if (geteuid() == 0 && setuid(NOBODY) != 0) _exit(2);
    const std::string message = message_of([&] { write_file_atomically(locked, "x"); });
    _exit(message == locked + ": cannot write: Permission denied" ? 0 : 1);
  });
  test.equal("an unwritable folder", denied, 0);
}

void kept_files(Test& test, const TemporaryFolder& folder) {
  const std::string path = folder.file("kept"), other = folder.file("kept-before");
  const auto write = [&](const char* words, const std::string& kept) {
    write_file_atomically(
        path, [&](OutputFile& file) { file.write(words); }, kept);
  };
  for (const char* words : {"1", "2", "3"}) write(words, other);
  test.equal("the file before", read_bytes(other) + read_bytes(path), "23");
  std::filesystem::remove(other);
  std::filesystem::create_hard_link(path, other);
  write("4", other);
  test.equal("two names of one file", read_bytes(other) + read_bytes(path), "34");
  test.throws(folder.path(), [&] { write("5", folder.path()); });
  test.equal("a name that is taken: nothing changes", read_bytes(other) + read_bytes(path), "34");
  test.throws("a link, a pipe or a device is never replaced", [] { check_replaced("/dev/null", true); });
  test.check("claims a folder once", make_folder(folder.file("p/q")) && !make_folder(folder.file("p/q")));
}

void folder_locks(Test& test) {
  const TemporaryFolder folder;
  const std::string held = folder.path() + ": another process is at work in this folder";
  {
    const FolderLock lock(folder.path());
    test.throws(held, [&] { FolderLock second(folder.path()); });
  }
  status_of_child([&] {
    const FolderLock lock(folder.path());
    std::raise(SIGKILL);
  });
  test.equal("a dead process's lock is none", message_of([&] { FolderLock{folder.path()}; }), "");
  test.throws("No such file or directory", [&] { FolderLock(folder.file("none")); });
  // A process that dies while its child still runs.
  make_folder(folder.file("family"));
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  status_of_child([&] {
    const FolderLock lock(folder.file("family"));
    if (fork() == 0) {
      char byte;
      close(ends[1]);
      _exit(static_cast<int>(read(ends[0], &byte, 1)));  // until the test closes its end
    }
    std::raise(SIGKILL);
  });
  test.throws("or a child of one", [&] { FolderLock{folder.file("family")}; });
  close(ends[1]);
  for (int i = 0; i < 1000 && !message_of([&] { FolderLock{folder.file("family")}; }).empty(); ++i) usleep(10000);
  const FolderLock after(folder.file("family"));
  test.equal("a folder that is still there", message_of([&] { after.check(); }), "");
  std::filesystem::rename(folder.file("family"), folder.file("moved"));
  const std::string other = folder.file("family") + ": was moved, removed or replaced while this process was at work";
  test.throws(other, [&] { after.check(); });
  make_folder(folder.file("family"));
  const FolderLock next(folder.file("family"));
  test.throws(other, [&] { after.check(); });
  test.equal("who holds it", message_of([&] { next.check(); }), "");
  std::filesystem::remove_all(folder.file("family"));
  test.throws(other, [&] { next.check(); });
}

// A .lock that came with a folder from somebody else is never written to. One that is a link: test/runs.cpp.
void foreign_locks(Test& test) {
  const TemporaryFolder folder;
  const std::string lock = folder.file(".lock"), victim = folder.file("victim");
  write_bytes(victim, "precious");
  std::filesystem::create_hard_link(victim, lock);
  FolderLock{folder.path()};
  test.equal("a second name is not written through", read_bytes(victim), "precious");
  std::filesystem::remove(lock);
  mkfifo(lock.c_str(), 0666);
  FolderLock{folder.path()};
}

void atomic_file(Test& test) {
  const TemporaryFolder folder;
  const std::string path = folder.file("a");
  write_file_atomically(path, "one");
  write_file_atomically(path, "two");
  test.equal("replaces", read_bytes(path), "two");
  test.equal("leaves no temporary file", leftovers(folder), 0);
  no_place(test, folder, path);
  const auto failing = [](OutputFile& file) {
    file.write("half");
    throw std::runtime_error("no more");
  };
  test.throws("no more", [&] { write_file_atomically(path, failing); });
  test.check("a writer that throws changes nothing", read_bytes(path) == "two" && leftovers(folder) == 0);

  const int status = status_of_child([&] {
    write_file_atomically(path, [](OutputFile& file) {
      file.write("half");
      std::raise(SIGKILL);
    });
  });
  test.check("killed while writing", WIFSIGNALED(status) && read_bytes(path) == "two");
  std::filesystem::create_symlink(path, folder.file("to"));
  test.throws("to: cannot write: ", [&] { OutputFile(folder.file("to"), OutputFile::Mode::Append); });
  test.throws("to: expected a folder, found a link", [&] { refuse_link(folder.file("to")); });
  std::filesystem::remove(folder.file("to"));
  refuse_link(folder.file("to"));
  write_file_atomically(path, "3");
  test.check("what it left is in nobody's way", read_bytes(path) == "3" && leftovers(folder) == 1);
  folder.write("mine.tmp", "");
  remove_leftovers(folder.path());
  test.check("and is cleared, with nothing else", leftovers(folder) == 1 && exists(folder.file("mine.tmp")));
  std::filesystem::remove(folder.file("mine.tmp"));
  kept_files(test, folder);
}

// A program's options with their variables, as a program would declare them.
struct Program {
  int length = 64, heads = 4;
  int64_t steps = 10000;
  uint64_t seed = 1;
  double rate = 1e-3, decay = 0.1;
  bool quiet = false, post_norm = true;
  std::string activation = "exp", name;
  Options options{"train_copy", "Trains a sequence model on the copying task."};

  Program() {
    options.section("Task");
    options.add("length", &length, 1, 4096, "letters in a string");
    options.section("Model");
    options.add("heads", &heads, 1, 64, "heads of the relation");
    options.add("activation", &activation, {"exp", "relu"}, "what weighs a pair");
    options.add("post-norm", &post_norm, "normalize what the relation gives");
    options.section("Training");
    options.add("steps", &steps, 0, 1e15, "when to stop").not_saved();
    options.add("rate", &rate, 0, 1, "learning rate at the end of the warm-up");
    options.add("decay", &decay, 0, 10, "weight decay");
    options.add("seed", &seed, 0, LARGEST_SEED, "all randomness comes from this number");
    options.section("Run");
    options
        .add("name", &name, "NAME",
             "the run is kept in runs/NAME; without a name nothing is saved and the run is over "
             "when it is over")
        .not_saved();
    options.add("quiet", &quiet, "say nothing").not_saved();
  }

  void parse(const std::vector<std::string>& words) { options.parse(words); }
};

void options_defaults(Test& test) {
  Program program;
  program.options.set_defaults("length=16 heads=2");
  test.check("before the command line: shown",
             program.options.help().find("letters in a string [16]") != std::string::npos);
  program.parse({"--heads", "8"});
  program.options.set_defaults("heads=1 rate=0.5");
  test.equal("before", program.length, 16);
  test.equal("not of one that was given", program.heads, 8);
  test.equal("after", program.rate, 0.5);
  test.check("after: it counts as not given", !program.options.given("rate"));
  test.throws("no such option", "option --x was never declared", [&] { program.options.set_defaults("x=1"); });
  test.throws("no such value", "default length=0: expected a whole number",
              [&] { program.options.set_defaults("length=0"); });
}

void options_without_names(Test& test) {
  Program switches;
  switches.parse({"--quiet=no", "--post-norm=off"});
  test.check("switches with a value", !switches.quiet && !switches.post_norm);

  Program positional;
  std::vector<std::string> files, file;
  positional.options.positional("FILE", &files, "texts");
  positional.parse({"a", "--heads", "3", "-"});
  test.equal("positional", files, std::vector<std::string>{"a", "-"});
  Program lacking;
  lacking.options.positional("FILE", &file, "a text", 1);
  test.throws("positional missing", "expected FILE (a text); see --help", [&] { lacking.parse({}); });
  test.throws("positional empty", "expected FILE (a text); see --help", [&] { lacking.parse({""}); });
  test.throws("one too many", "unexpected argument \"b\"; options begin with --", [&] { lacking.parse({"a", "b"}); });
}

void options_help(Test& test) {
  const std::string help = Program().options.help();
  for (const char* words :
       {"Usage: train_copy [options]\nTrains a sequence model on the copying task.\n\nTask\n",
        "  --length N                letters in a string [64]\n\nModel\n",
        "  --activation WORD         what weighs a pair: exp, relu [exp]\n",
        "  --[no-]post-norm          normalize what the relation gives [true]\n",
        "  --rate X                  learning rate at the end of the warm-up [0.001]\n",
        "  --name NAME               the run is kept in runs/NAME; without a name nothing is saved and the\n"
        "                            run is over when it is over\n  --[no-]quiet              say nothing [false]\n\n",
        "  --help                    print this and stop\n"})
    test.check(words, help.find(words) != std::string::npos, help);
}

void options_errors(Test& test) {
  const auto fails_with = [&](std::vector<std::string> words, const std::string& message) {
    std::string found = "nothing";
    Program program;
    std::string data, prompt;
    program.options.add("data", &data, "FILES", "what to learn from");
    program.options.add("prompt", &prompt, "TEXT", "what comes first");
    try {
      program.parse(words);
    } catch (const UsageError& error) {
      found = error.what();
    }
    test.equal(join(words, " "), found, message);
  };
  fails_with({"--lenght=3"}, "unknown option --lenght=3 (did you mean --length?)");
  fails_with({"--postnorm"}, "unknown option --postnorm (did you mean --post-norm?)");
  fails_with({"--no-quiet=false"}, "unknown option --no-quiet=false");
  fails_with({"--no-length"}, "unknown option --no-length");
  fails_with({"-length", "3"}, "unknown option -length (did you mean --length?)");
  fails_with({"--zebra"}, "unknown option --zebra");
  for (const char* value : {"0", "65", "two", "2.0", "99999999999999999999", "-3"})
    fails_with({"--heads", value}, std::string("--heads ") + value + ": expected a whole number from 1 to 64");
  fails_with({"--heads", ""}, "--heads: expected a whole number from 1 to 64");
  fails_with({"--heads", "--quiet"}, "--heads: expected a whole number from 1 to 64");
  fails_with({"--activation="}, "--activation: expected one of exp, relu");
  fails_with({"--name", ""}, "--name: expected NAME in UTF-8");
  fails_with({"--data="}, "--data: expected FILES in UTF-8");
  fails_with({"--prompt"}, "--prompt: expected TEXT in UTF-8");
  fails_with({"--prompt="}, "nothing");
  fails_with({"--steps", "-1"}, "--steps -1: expected a whole number from 0 to 1000000000000000");
  fails_with({"--seed", "-1"}, "--seed -1: expected a whole number from 0 to 9007199254740991");
  for (const char* value : {"1.5", "nan", "0,1"})
    fails_with({"--rate", value}, std::string("--rate ") + value + ": expected a number from 0 to 1");
  fails_with({"--activation", "gulu"}, "--activation gulu: expected one of exp, relu");
  fails_with({"--quiet=maybe"}, "--quiet=maybe: expected true or false");
  fails_with({"--name", "\xFF"}, "--name \xFF: expected NAME in UTF-8");
  fails_with({"8"}, "unexpected argument \"8\"; options begin with --");
}

void options_resume(Test& test) {
  Program first;
  first.parse({"--length", "8", "--rate", "0.3", "--no-post-norm", "--seed", "9007199254740991", "--steps", "5"});
  const Json saved = Json::parse(first.options.to_json().text(), "file");
  test.equal("what is saved", saved.text(),
             R"({"length":8,"heads":4,"activation":"exp","post-norm":false,"rate":0.3,"decay":0.1,)"
             R"("seed":9007199254740991})");
  Program second;
  second.parse({"--steps", "7", "--rate=3e-1"});
  second.options.restore(saved, "m.safetensors");
  test.check("comes back", second.length == 8 && second.rate == 0.3 && !second.post_norm && second.seed == first.seed);
  test.equal("what may change does not", second.steps, 7);
  const auto restored = [&](std::vector<std::string> words, const Json& json, bool same = false) {
    Program program;
    program.parse(std::move(words));
    return message_of([&] { program.options.restore(json, "m.safetensors", same); });
  };
  const std::string cannot = ", and an option that defines a run cannot change; nothing was changed";
  // The same options are required: no option is given, and the defaults are not what was saved.
  test.equal("other defaults", restored({}, saved, true), "--length 64: this run was started with --length 8" + cannot);
  test.equal("the same options",
             restored({"--length", "8", "--rate", "0.3", "--no-post-norm", "--seed", "9007199254740991"}, saved, true),
             "");
  Program later;
  int every = 100;
  later.options.add("save-every", &every, 1, 1000, "steps between checkpoints").always();
  const Json older = later.options.to_json();
  every = 7;
  later.options.restore(older, "m.safetensors");
  test.equal("an option that may always be given comes back", every, 100);
  later.parse({"--save-every", "5"});
  later.options.restore(older, "m.safetensors");
  test.equal("and is given", every, 5);
  const auto lacking = [](const char* words) {
    Program program;
    int shards = 1;
    program.options.add("shards", &shards, 1, 8, "parts");
    program.parse({words});
    return message_of([&] { program.options.restore(Json::parse(Program().options.to_json().text(), "m"), "m"); });
  };
  test.equal("an option that the file lacks had its default", lacking("--shards=1"), message_of([] {}));
  test.equal("and no other value", lacking("--shards=4"), "--shards 4: this run was started with --shards 1" + cannot);
  struct Row {
    std::vector<std::string> words;
    Json json;
    std::string message;
  };
  for (const Row& row : std::initializer_list<Row>{
           {{"--length", "9"}, saved, "--length 9: this run was started with --length 8" + cannot},
           {{"--post-norm"}, saved, "--post-norm: this run was started with --no-post-norm" + cannot},
           {{"--seed=1"}, saved, "--seed 1: this run was started with --seed 9007199254740991" + cannot},
           {{}, Json(saved).set("zoom", 1), "m.safetensors: saved with option --zoom, which train_copy does not have"},
           {{},
            Json(saved).set("steps", 1),
            "m.safetensors: saved with option --steps, which train_copy does not have"},
           {{},
            Json(saved).set("heads", Json::array()),
            "m.safetensors: saved with --heads []: expected a whole number from 1 to 64"},
           {{}, Json("x"), "expected an object, found a string"}})
    test.equal(row.message, restored(row.words, row.json), row.message);
}

// What a checkpoint keeps of the log's rows. Logs that were changed: test/runs.cpp.
void log_checksums(Test& test, const std::string& path) {
  const std::vector<std::string> columns = {"step", "loss", "seconds"};
  const auto log_of = [&](double loss, double seconds) {
    std::filesystem::remove(path);
    CsvLog log = CsvLog::create(path, columns);
    log.append(0, {1, 0.5});
    log.append(1, {loss, seconds});
    return log.checksum();
  };
  const std::string checksum = log_of(2, 3);
  test.check("another loss", log_of(2.5, 3) != checksum);
  test.equal("seconds do not count", log_of(2, 4), checksum);
  test.equal("resumed", CsvLog::resume(path, columns, 2, checksum).checksum(), checksum);
  CsvLog log = CsvLog::resume(path, columns, 1, "");
  log.append(1, {2, 9});
  test.equal("resumed earlier", log.checksum(), checksum);
  std::filesystem::remove(path);
  mkfifo(path.c_str(), 0600);
  test.throws(path + ": expected a file, found something else", [&] { CsvLog::resume(path, columns, 2, ""); });
  std::filesystem::remove(path);
}

void csv_log(Test& test) {
  const TemporaryFolder folder;
  const std::string path = folder.file("log.csv");
  const std::vector<std::string> columns = {"step", "loss", "rate"};
  {
    CsvLog log = CsvLog::create(path, columns);
    log.append(0, {1.0 / 3, 0.001});
    test.equal("a row is there at once", read_bytes(path), "step,loss,rate\n0,0.333333333,0.001\n");
    log.append(1000000000000, {NOT_A_NUMBER, -INFINITE});
    log.append(7, {1e-12, -0.0});
  }
  const std::string rows = "step,loss,rate\n0,0.333333333,0.001\n1000000000000,nan,-inf\n7,1e-12,-0\n";
  test.equal("rows", read_bytes(path), rows);
  const CsvTable table = read_csv(path);
  test.equal("columns come back", table.column("loss"), std::vector<double>{0.333333333, NOT_A_NUMBER, 1e-12});
  test.equal("infinity comes back", table.column("rate")[1], -INFINITE);
  test.throws("no such column", path + ": it has no column lost, only step, loss, rate", [&] { table.column("lost"); });
  test.throws("another run's log", path + ": a log is here already, of another run; nothing was changed",
              [&] { CsvLog::create(path, columns); });
  test.equal("stays", read_bytes(path), rows);

  const auto resumed = [&](const std::string& name, const std::string& before, int64_t step, const std::string& after) {
    write_bytes(path, before);
    CsvLog log = CsvLog::resume(path, columns, step);
    log.append(step, {1, 2});
    test.equal(name, read_bytes(path), after + std::to_string(step) + ",1,2\n");
  };
  const std::string head = "step,loss,rate\n";
  const std::string first = head + "0,1,1\n1,0.50,2\n2, 1e0,\n";
  resumed("resume cuts", first + "3,1,1\n4,1,1\n", 3, first);
  resumed("resume from the start", first, 0, head);
  resumed("a row cut off behind the checkpoint is dropped", first + "3,0.4", 3, first);
  resumed("and whatever else a machine that went down left there", first + "3,x" + std::string(9, '\0') + "\n5\n", 3,
          first);
  resumed("an empty file", "", 0, head);
  resumed("a header cut off", "step,lo", 0, head);
  resumed("other line ends stay", "step,loss,rate\r\n0,2,3\r\n9,2,3\r\n", 1, "step,loss,rate\r\n0,2,3\r\n");
  std::filesystem::remove(path);
  CsvLog::resume(path, columns, 0).append(0, {1, 2});
  test.equal("a missing log is started anew at step 0", read_bytes(path), head + "0,1,2\n");

  for (const auto& [content, words] :
       {std::pair(std::string("step,loss\n1,2\n"), std::string(":1: expected the columns step,loss,rate")),
        {"", ": ends before the row of step 0, and the checkpoint stands at step 3"},
        {head + "0,2,3\n1,1,1\n2,1", ": ends before the row of step 2, and the checkpoint stands at step 3"}}) {
    write_bytes(path, content);
    test.throws(path + words + "; nothing was changed", [&] { CsvLog::resume(path, columns, 3, ""); });
    test.equal("and keeps it", read_bytes(path), content);
  }
  log_checksums(test, path);
  write_bytes(path, head + "1,x,3\n");
  test.throws(path + ":2: expected a row of 3 numbers", [&] { read_csv(path); });
  write_bytes(path, "");
  test.throws(path + ": expected a line of column names", [&] { read_csv(path); });
  if (std::filesystem::exists("/dev/full")) {
    OutputFile device("/dev/full", OutputFile::Mode::Append);
    test.throws("/dev/full: cannot write: No space left on device", [&] { device.write("1,2,3\n"); });
  }
}

void progress(Test& test) {
  const TemporaryFolder folder;
  const std::string path = folder.file("out");
  double now = 100;
  double wait = 0;
  const auto shows = [&](bool quiet, auto use) {
    std::FILE* stream = std::fopen(path.c_str(), "wb");
    {
      Progress progress(0, 2000, {quiet, "step", wait, false, stream, [&] { return now; }});
      use(progress);
    }
    std::fclose(stream);
    return read_bytes(path);
  };
  const auto train = [&](Progress& progress) {
    for (int64_t step = 500; step <= 2000; step += 500) {
      now += 5;
      if (progress.due(step)) progress.show(step, "loss 0.1");
    }
  };
  test.equal("plain lines", shows(false, train),
             "step 500 of 2,000  100 steps/s  ETA 0:15  loss 0.1\n"
             "step 1,000 of 2,000  100 steps/s  ETA 0:10  loss 0.1\n"
             "step 1,500 of 2,000  100 steps/s  ETA 0:05  loss 0.1\n"
             "step 2,000 of 2,000  100 steps/s  in 0:20  loss 0.1\n");
  test.equal("an evaluation, whose time counts for all steps",
             shows(false,
                   [&](Progress& progress) {
                     for (const auto& [step, seconds] : {std::pair(500, 5), {1000, 20}}) {
                       now += seconds;
                       progress.show(step, "");
                     }
                   }),
             "step 500 of 2,000  100 steps/s  ETA 0:15\n"
             "step 1,000 of 2,000  25.0 steps/s  ETA 0:25\n");
  test.equal("quiet", shows(true, train), "");
  test.equal("a line between",
             shows(false,
                   [&](Progress& progress) {
                     now += 0.25;
                     progress.show(1, "loss 0.1");
                     progress.show(2, "not yet");
                     progress.line("validation 0.5");
                   }),
             "step 1 of 2,000  4.00 steps/s  ETA 8:20  loss 0.1\nvalidation 0.5\n");
  test.equal("slow steps",
             shows(false,
                   [&](Progress& progress) {
                     now += 120;
                     progress.show(40, "");
                   }),
             "step 40 of 2,000  3.00 s/step  ETA 1:38:00\n");
  wait = 6;
  test.equal("after a while", shows(false, train),
             "step 1,000 of 2,000  100 steps/s  ETA 0:10  loss 0.1\n"
             "step 1,500 of 2,000  100 steps/s  ETA 0:05  loss 0.1\n"
             "step 2,000 of 2,000  100 steps/s  in 0:20  loss 0.1\n");
  wait = 0;
  std::string lines;  // the seconds at which they come
  shows(false, [&](Progress& progress) {
    for (int second = 1; second <= 160; ++second) {
      now += 1;
      if (progress.due(second)) progress.show(second, ""), lines += std::to_string(second) + " ";
    }
  });
  test.equal("fewer and fewer lines", lines,
             "1 2 3 4 5 6 7 8 10 12 14 16 19 22 26 30 35 40 46 53 61 70 80 90 100 110 120 130 140 150 160 ");
  wait = 21;
  test.equal("what is soon over", shows(false, train), "");
}

void cadence(Test& test) {
  double now = 100, cost = 0;
  Cadence saving(8, [&] { return now; });
  std::string at;
  for (int quarter = 0; quarter < 160; ++quarter, now += 0.25) {
    if (quarter == 120) cost = 2;
    if (saving.due()) at += (at.empty() ? "" : " ") + number_text(now - 100, 4), saving.run([&] { now += cost; });
  }
  test.equal("soon, then later, then evenly, and never for long", at, "0.5 1.5 3.5 7.5 15.5 23.5 31.5");
  Cadence often(0.5, [&] { return now; });
  now += 0.5;
  often.run([] {});
  now += 0.5;
  test.check("no later than the longest", often.due());
}

void interrupts(Test& test) {
  {
    const InterruptGuard guard;
    std::raise(SIGTERM);
    {
      const InterruptGuard within;
      test.check("a guard within another keeps what was caught", interrupted());
    }
    test.check("and leaves it to the other", interrupted());
  }
  test.check("a signal is forgotten with its guard", !interrupted());
  // A second Ctrl-C ends the program, but not at the same moment.
  const auto ends = [&](const char* name, int expected, auto function) {
    const int status = status_of_child([&] {
      const InterruptGuard guard;
      function();
    });
    test.equal(name, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), expected);
  };
  ends("three signals at the same moment are one", 99, [] {
    for (const int signal : {SIGTERM, SIGTERM, SIGINT}) std::raise(signal);
  });
  ends("a second Ctrl-C ends the program", 128 + SIGINT, [] {
    std::raise(SIGINT);
    usleep(2100000);
    std::raise(SIGINT);
  });
}

// Whether the text is one XML element with balanced tags, quoted attributes and known entities; "" or what is wrong.
std::string xml_fault(const std::string& xml) {
  std::vector<std::string> open;
  const auto fault = [&](const char* what, size_t at) {
    return std::string(what) + " at \"" + xml.substr(at, 40) + "\"";
  };
  for (size_t at = 0; at < xml.size(); ++at) {
    const std::string rest = xml.substr(at, 6);
    if (xml[at] == '&' && rest.find("&amp;") != 0 && rest.find("&lt;") != 0 && rest.find("&gt;") != 0 &&
        rest != "&quot;")
      return fault("bad entity", at);
    if (static_cast<unsigned char>(xml[at]) < 0x20 && xml[at] != '\n') return fault("control character", at);
    if (xml[at] != '<') {
      if (open.empty() && xml[at] != '\n') return fault("text outside the root", at);
      continue;
    }
    const size_t end = xml.find('>', at);
    if (end == std::string::npos) return fault("open tag", at);
    const std::string inside = xml.substr(at + 1, end - at - 1);
    if (std::count(inside.begin(), inside.end(), '"') != 2 * std::count(inside.begin(), inside.end(), '='))
      return fault("unquoted attribute", at);
    if (inside[0] == '/') {
      if (open.empty() || "/" + open.back() != inside) return fault("unbalanced tag", at);
      open.pop_back();
    } else if (inside.back() != '/') {
      open.push_back(inside.substr(0, inside.find(' ')));
    }
    at = end;
  }
  return open.empty() ? "" : "unclosed " + open.back();
}

size_t count_of(const std::string& words, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = words.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

// The number behind these words of a figure, from a place on.
double number_behind(const std::string& svg, const std::string& words, size_t from = 0) {
  return std::atof(svg.c_str() + svg.find(words, from) + words.size());
}

std::vector<double> counting(int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(i);
  return values;
}

// One curve in one panel.
std::string curve(const std::vector<double>& xs, const std::vector<double>& ys) {
  Figure figure("");
  figure.panel().line("", xs, ys);
  return figure.svg();
}

// What lies close together, what is long, and values that no axis can span.
void extreme_figures(Test& test) {
  LineStyle dots;
  dots.joined = false;
  std::vector<double> xs(900, 1), ys;
  for (int i = 0; i < 900; ++i) ys.push_back(i % 9);
  xs.push_back(2), ys.push_back(0);
  Figure cloud(""), narrow(""), names(""), wide("");
  cloud.panel().line("", xs, ys, dots);
  test.equal("every mark of a cloud", count_of(cloud.svg(), " 0 1 0 "), size_t(2 * 901));

  narrow.panel_size(100, 100).panel().line("", {0, 1}, {0, 1});
  const double before = number_behind(narrow.svg(), " width=\"");
  narrow.caption(std::string(100, 'm'));
  test.check("a long caption is not cut", number_behind(narrow.svg(), " width=\"") > before + 500);

  names.panel_size(360, 100)
      .panel()
      .heatmap(1, 80, std::vector<double>(80, 1), "")
      .x_names(std::vector<std::string>(80, "abc"));
  test.equal("short names that are too wide for their cells are turned", count_of(names.svg(), "rotate(-90"),
             size_t(40));

  wide.panel().level("no number", NOT_A_NUMBER).line("", {0, 1, 2}, {-1e308, 1e308, 1});
  wide.panel().log_y().level("zero", 0).line("", {0, 1}, {1, 10});
  test.equal("values that no axis can span", xml_fault(wide.svg()), "");
  test.equal("and no overflow", count_of(wide.svg(), "922337203685477"), size_t(0));
}

void figures(Test& test) {
  const auto draw = [] {
    Figure figure("a < b & \"c\" \x01");
    std::vector<double> xs, ys;
    for (int i = 0; i < 100000; ++i) {
      xs.push_back(i);
      ys.push_back(i % 1000 == 500 ? 1e4 : i % 7);
    }
    figure.panel("many").x("step").y("loss").line("noisy", xs, ys);
    LineStyle style;
    style.markers = true;
    figure.panel("few").log_x().log_y().line("<gaps>", {1, 10, 100, 1e3, 1e4, 1e5},
                                             {1, NOT_A_NUMBER, 3, 0, -1, INFINITE}, style);
    figure.panel("map").heatmap(2, 3, {1, 2, 3, 4, NOT_A_NUMBER, 6}, "value").x_names({"a", "b", "c"});
    figure.panel("signs").heatmap(100, 70, std::vector<double>(7000, -2.5), "value", ColorMap::Diverging);
    figure.panel("empty");
    figure.panel("one value").line("", {3}, {5});
    return figure.caption("seed 1").svg();
  };
  const std::string svg = draw();
  test.equal("well-formed", xml_fault(svg), "");
  test.check("the same again", svg == draw());
  test.check("100,000 points are thinned", svg.size() < 60000, std::to_string(svg.size()) + " bytes");
  test.check("text is escaped", svg.find("a &lt; b &amp; &quot;c&quot; \\x01") != std::string::npos);
  test.check("no NaN or infinity is drawn", count_of(svg, "nan") == 0 && count_of(svg, "inf") == 0);
  test.equal("cells without a value", count_of(svg, "#BDBDBD"), size_t(1));
  const size_t map = svg.find("crispEdges"), width = svg.find("stroke-width=\"1.", map);
  test.check("the rows of a map reach into each other", width < svg.find('>', map));

  // The spikes of 1 point in 1000 survive the thinning: as many moves to the top as there are spikes.
  Figure spikes("");
  std::vector<double> xs, ys;
  for (int i = 0; i < 100000; ++i) xs.push_back(i), ys.push_back(i % 1000 == 500);
  spikes.panel_size(500, 100).panel().y_range(0, 1).line("", xs, ys);
  test.equal("spikes survive", count_of(spikes.svg(), ",0L"), size_t(100));

  for (const double scale : {1e-300, 1e-12, 1e-5, 1.0, 1e5, 1e12, 1e300}) {
    Figure figure("");
    figure.panel().line("", {0, scale}, {-scale, scale});
    figure.panel().log_x().log_y().line("", {scale, 1.01 * scale}, {scale, 1e8 * scale});
    const std::string drawn = figure.svg();
    test.check("scale " + number_text(scale, 3),
               xml_fault(drawn).empty() && count_of(drawn, "</text>") >= 8 && drawn.size() < 30000);
  }
  extreme_figures(test);
  const TemporaryFolder folder;
  Figure("").save(folder.file("a.svg"));
  test.equal("a figure without panels", xml_fault(folder.read("a.svg")), "");
  Figure figure("");
  Panel& panel = figure.panel();
  test.throws("curve a has 2 x and 1 y", [&] { panel.line("a", {1, 2}, {1}); });
  test.throws("a heat map of 2×3 cells got 5 values", [&] { panel.heatmap(2, 3, {1, 2, 3, 4, 5}, ""); });
}

void figure_legends(Test& test) {
  const std::string legend = " rx=\"3\" fill=\"#FFFFFF\"";  // of its box, the only white rectangle with round corners
  const std::vector<double> xs = counting(100);
  Figure one(""), twins(""), many("");
  one.panel_size(300, 200).panel().line("a", xs, xs);
  const std::string alone = one.svg();
  test.check("beside its panel", number_behind(alone, "<rect x=\"", alone.rfind("<rect", alone.find(legend))) >= 300);
  twins.panel().line("a", xs, xs).line("b", xs, xs);
  twins.panel().line("a", xs, xs).line("b", xs, xs).level("chance", 10);
  test.equal("one for neighbours with the same lines", count_of(twins.svg(), ">a</text>"), size_t(1));
  test.equal("what chance reaches", count_of(twins.svg(), "class=\"level\""), size_t(2));  // and in the legend
  Panel& panel = many.panel_size(300, 200).panel();
  for (int i = 0; i < 25; ++i) panel.line("variant", {0, 1}, {double(i), 1});
  const std::string svg = many.svg();
  const size_t box = svg.find(legend);
  test.check("one that is taller than its panel is whole",
             number_behind(svg, "height=\"") > number_behind(svg, "height=\"", svg.rfind("height=\"", box)) + 10);
  std::set<std::string> strokes;
  for (size_t at = box; (at = svg.find("<path class=\"line\"", at)) != std::string::npos; ++at)
    strokes.insert(svg.substr(at, svg.find(" d=", at) - at));
  test.equal("no two of it are drawn alike", strokes.size(), size_t(25));
}

void figure_lines(Test& test) {
  const auto marks = [](const std::vector<double>& xs, const std::vector<double>& ys) {
    return count_of(curve(xs, ys), "class=\"mark\"");
  };
  test.equal("a lone point is marked", marks({3}, {5}), size_t(1));
  test.equal("and one between gaps", marks({1, 2, 3, 4, 5, 6}, {1, 2, NOT_A_NUMBER, 5, NOT_A_NUMBER, 1}), size_t(1));
  test.equal("those that a line goes through are not", marks({1, 2, 3}, {1, 2, NOT_A_NUMBER}), size_t(0));
  test.equal("what has only begun has no step below 0", count_of(curve({0}, {5}), "−"), size_t(0));
  test.equal("no label between whole numbers", count_of(curve({1, 2, 3}, {1, 2, 1}), ">1.5</text>"), size_t(0));
  test.equal("one between others", count_of(curve({1, 1.5, 3}, {1, 2, 1}), ">1.5</text>"), size_t(1));
  Figure same(""), noisy("");
  std::vector<double> ys;
  for (int i = 0; i < 1000; ++i) ys.push_back(i % 2);
  same.panel().noisy_line("loss", counting(1000), std::vector<double>(1000, 5));
  noisy.panel().noisy_line("loss", counting(1000), ys);
  test.equal("values without noise: their average is the same", count_of(same.svg(), "opacity"), size_t(0));
  test.equal("faint values behind their average", count_of(noisy.svg(), "opacity=\"0.25\""), size_t(1));
}

void figure_labels(Test& test) {
  for (const auto& [low, high] : {std::pair(2e9, 3e10), {1.0, 70.0}, {2000.0, 40000.0}, {0.4, 2.0}, {1e-3, 1e12}}) {
    Figure figure("");
    figure.panel_size(360, 250).panel().log_x().line("", {low, high}, {1, 2});
    const size_t labels = count_of(figure.svg(), "text-anchor=\"middle\"");
    test.check("labels from " + number_text(low, 3), labels >= 3 && labels <= 9, std::to_string(labels));
  }
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("class_of_a_long_name_" + std::to_string(i) + "_");
  Figure figure("");
  figure.panel().heatmap(40, 40, std::vector<double>(1600, 1), "share").x_names(names).y_names(names);
  const std::string svg = figure.panel_size(320, 320).svg();
  bool whole = true;
  for (const std::string& name : names) whole = whole && count_of(svg, ">" + name + "</text>") == 2;
  test.check("all names, whole", whole);
}

}  // namespace

int main(int argc, char** argv) {
  Test test(argc, argv);
  test.run("text", text_forms);
  test.run("numbers", numbers);
  test.run("checksum", checksums);
  test.run("json", json_values);
  test.run("json_errors", json_errors);
  test.run("config", config);
  test.run("safetensors", safetensors);
  test.run("safetensors_damaged", safetensors_damaged);
  test.run("safetensors_foreign", safetensors_foreign);
  test.run("atomic_file", atomic_file);
  test.run("folder_lock", folder_locks);
  test.run("foreign locks", foreign_locks);
  test.run("options_defaults", options_defaults);
  test.run("options_without_names", options_without_names);
  test.run("options_help", options_help);
  test.run("options_errors", options_errors);
  test.run("options_resume", options_resume);
  test.run("csv", csv_log);
  test.run("progress", progress);
  test.run("cadence", cadence);
  test.run("interrupt", interrupts);
  test.run("figure", figures);
  test.run("figure_legends", figure_legends);
  test.run("figure_lines", figure_lines);
  test.run("figure_labels", figure_labels);
  return test.finish();
}
