// What torch.save writes: a zip archive of FOLDER/data.pkl, a pickle (pickle.h) of everything but the numbers, and FOLDER/data/0,
// 1, …, the storages that its tensors name. Only tensors, numbers and words are read; nothing is run. What is written is the same,
// for torch.load with or without weights_only.
#pragma once

#include <map>

#include "base/zip.h"
#include "exchange/pickle.h"
#include "exchange/weights.h"

namespace petroglyph {

class TorchFile final : public Weights {
 public:
  // The tensors of the dictionary under the first of these keys that the file has, or of the file itself.
  TorchFile(const std::string& path, const std::vector<std::string>& keys);

  std::string origin() const override { return file_.path(); }
  std::vector<std::string> names() const override;
  const Shape* shape(const std::string& name) const override;
  std::vector<float> read(const std::string& name) const override;

  // A value beside the tensors, such as pickle().find(pickle().root(), "model_args").
  const Pickle& pickle() const { return pickle_; }

 private:
  struct Tensor {
    std::string type, storage;  // torch's FloatStorage …; the member's name in data/
    int64_t first = 0;          // of its elements in the storage
    Shape shape, strides;
  };

  const Pickle::Value* rebuilt(const Pickle::Value& value) const;
  void add(const std::string& name, const Pickle::Value& call);
  Shape integers(const Pickle::Value& list) const;
  void check_room(const std::string& name, const Tensor& tensor) const;
  [[noreturn]] void fail(const std::string& complaint) const;

  MappedFile file_;
  ZipFile archive_;
  std::string folder_;  // "ckpt/"
  Pickle pickle_;
  std::map<std::string, Tensor> tensors_;
};

struct TorchTensor {
  std::string name;
  Shape shape;
  size_t storage;  // index; tensors may share one
};
// Writes a dictionary with the tensors, in a dictionary of their own under `key`, and with what `beside` has.
void write_torch_file(const std::string& path, const std::string& key, const std::vector<TorchTensor>& tensors,
                      const std::vector<std::string>& storages, Precision precision, const Json& beside);

}  // namespace petroglyph
