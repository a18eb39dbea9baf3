// One result on any number of processes: the tree in which gradients are added, what a step and an evaluation take, the
// programs under mpirun, and what happens when a rank fails, is stopped or dies.
//
//   build/test/ranks                     the programs of the same build
//   PETROGLYPH_KILLS=50 build/test/ranks killed       as many deaths

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "check.h"
#include "cpu/make_cpu.h"
#include "fingerprints.h"
#include "math/random.h"
#include "models/model.h"
#include "shell.h"
#include "tasks/copying.h"
#include "train/gradient_tree.h"
#include "train/trainer.h"

namespace petroglyph {
namespace {

constexpr uint64_t SEED = FINGERPRINT_SEED;

// ---- Ranks that are threads of this process -------------------------------------------------------------------------

// Where they meet: all wait until the last one is there.
class Meeting {
 public:
  explicit Meeting(int count) : count_(count), given(static_cast<size_t>(count)) {}
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const int round = round_;
    if (++here_ == count_) {
      here_ = 0;
      ++round_;
      all_.notify_all();
    } else {
      all_.wait(lock, [&] { return round_ != round; });
    }
  }

 private:
  int count_, here_ = 0, round_ = 0;
  std::mutex mutex_;
  std::condition_variable all_;

 public:
  std::vector<const void*> given;  // by each rank
};

class ThreadRank final : public Ranks {
 public:
  ThreadRank(Meeting& meeting, int rank, int count) : meeting_(meeting), rank_(rank), count_(count) {}
  int rank() const override { return rank_; }
  int count() const override { return count_; }
  int rank_here() const override { return rank_; }
  int sharing() const override { return count_; }
  void gather(void* all, const void* mine, size_t bytes) override {
    const std::string copy(static_cast<const char*>(mine), bytes);
    give(copy.data());
    for (int r = 0; r < count_; ++r) std::memcpy(static_cast<char*>(all) + r * bytes, of(r), bytes);
    meeting_.wait();
  }
  void broadcast(void* data, size_t bytes) override {
    give(data);
    if (rank_ > 0 && bytes > 0) std::memcpy(data, of(0), bytes);
    meeting_.wait();
  }
  void swap(int partner, const void* mine, size_t given, void* take, size_t taken) override {
    bytes_ += given;
    give(mine);
    if (taken > 0) std::memcpy(take, of(partner), taken);
    meeting_.wait();
  }
  void abandon(int) override { throw std::runtime_error("abandoned"); }
  size_t bytes() const { return bytes_; }  // that it gave

 private:
  void give(const void* data) {
    meeting_.given[static_cast<size_t>(rank_)] = data;
    meeting_.wait();
  }
  const void* of(int rank) const { return meeting_.given[static_cast<size_t>(rank)]; }
  Meeting& meeting_;
  int rank_, count_;
  size_t bytes_ = 0;
};

// Calls f(rank) in as many threads. f must not throw.
template <class F>
void in_ranks(int count, F f) {
  Meeting meeting(count);
  std::vector<std::thread> threads;
  for (int r = 0; r < count; ++r) threads.emplace_back([&, r] { f(std::make_shared<ThreadRank>(meeting, r, count)); });
  for (std::thread& thread : threads) thread.join();
}

// ---- The tree -------------------------------------------------------------------------------------------------------

std::vector<real> part(int index, int64_t size) {
  std::vector<real> numbers;
  for (int64_t i = 0; i < size; ++i)
    numbers.push_back(normal(SEED, stream_of("part"), static_cast<uint32_t>(index), static_cast<uint64_t>(i)));
  return numbers;
}

// As it is written: (0+1)+(2+3), …
std::vector<real> sum_of(int first, int count, int64_t size) {
  if (count == 1) return part(first, size);
  std::vector<real> sum = sum_of(first, count / 2, size);
  const std::vector<real> right = sum_of(first + count / 2, count / 2, size);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

std::string tree_by_ranks(int parts, int ranks, int64_t size, const std::vector<real>& expected) {
  std::vector<std::string> wrong(static_cast<size_t>(ranks));
  in_ranks(ranks, [&](const std::shared_ptr<ThreadRank>& rank) {
    const auto ops = make_cpu(1);
    const int each = parts / ranks;
    std::string& found = wrong[static_cast<size_t>(rank->rank())];
    GradientTree tree(*ops, *rank, each, size);
    Tensor gradients(*ops, {size});
    for (int step = 0; step < 2; ++step) {  // the second one starts again
      for (int p = 0; p < each; ++p) {
        gradients.upload(part(rank->rank() * each + p, size));
        tree.add(gradients.data());
      }
      if (gradients.download() != expected) found = text("rank %d, step %d", rank->rank(), step);
    }
    const double most = 2.0 * 2 * (ranks - 1) / ranks * static_cast<double>(size * sizeof(real));
    if (std::abs(static_cast<double>(rank->bytes()) - most) > 2 * 2 * 64 * 8)
      found = text("rank %d gave %zu bytes, not %.0f", rank->rank(), rank->bytes(), most);
  });
  std::string all;
  for (const std::string& one : wrong) all += one;
  return all;
}

void tree(Test& test) {
  for (const int parts : {1, 2, 4, 8, 16}) {
    for (const int64_t size : {1, 16, 17, 63, 1024, 5000}) {
      const std::vector<real> expected = sum_of(0, parts, size);
      for (int ranks = 1; ranks <= parts; ranks *= 2) {
        const std::string wrong = tree_by_ranks(parts, ranks, size, expected);
        test.check(text("%d parts of %d numbers by %d ranks", parts, static_cast<int>(size), ranks), wrong.empty(),
                   wrong);
      }
    }
  }
  test.equal("numbers", GradientTree::sum({1e16, 1, -1e16, 1}), (1e16 + 1) + (-1e16 + 1));
  test.equal("one number", GradientTree::sum({7}), 7.0);
}

// ---- A step ---------------------------------------------------------------------------------------------------------

struct SmallTraining : SmallRun {
  SmallTraining(int shards, const std::shared_ptr<Ranks>& ranks, int threads = 1)
      : SmallRun(make_cpu(threads), 2, 16, shards, ranks) {}
  // Weights, and every measure on the way.
  std::string train() {
    std::string said;
    for (int step = 0; step < 6; ++step) {
      const Measures trained = trainer.step(step, 1e-3);
      said += text("%a %a %a ", trained.loss, trained.accuracy, optimizer.gradient_norm());
    }
    const Measures measured = trainer.evaluate(task, 6, 45).value();
    said += text("%a %a ", measured.loss, measured.accuracy);
    return said + fingerprint();
  }
};

// The same measures and weights from one process with shards, with threads, and from as many ranks as divide them.
void steps(Test& test) {
  std::vector<std::string> by_shards;
  for (const int shards : {1, 2, 4, 8}) {
    const std::string expected = SmallTraining(shards, one_rank()).train();
    test.equal(text("%d shards, three threads", shards), SmallTraining(shards, one_rank(), 3).train(), expected);
    for (int ranks = 2; ranks <= shards; ranks *= 2) {
      std::vector<std::string> found(static_cast<size_t>(ranks));
      in_ranks(ranks, [&](const std::shared_ptr<ThreadRank>& rank) {
        found[static_cast<size_t>(rank->rank())] = SmallTraining(shards, rank).train();
      });
      test.equal(text("%d shards by %d ranks", shards, ranks), found,
                 std::vector<std::string>(static_cast<size_t>(ranks), expected));
    }
    test.check(text("%d shards are a tree of their own", shards),
               std::find(by_shards.begin(), by_shards.end(), expected) == by_shards.end());
    by_shards.push_back(expected);
  }
}

// The gradient of two shards is the sum of what each gives alone.
void parts_alone(Test& test) {
  SmallTraining whole(2, one_rank());
  whole.trainer.step(0, 0);
  std::vector<real> sum(static_cast<size_t>(whole.model->parameters.padded_size()));
  for (const int shard : {0, 1}) {
    SmallTraining alone(1, one_rank());
    Model& model = *alone.model;
    model.parameters.zero_gradients();
    for (const int a : {0, 1}) {
      const Batch batch = alone.task.batch(SEED, stream_of("train"), 0, (shard * 2 + a) * 8, 8);
      const int64_t rows = static_cast<int64_t>(batch.targets.size());
      Tokens tokens(*alone.ops, {8, batch.length}), targets(*alone.ops, {rows});
      Tensor losses(*alone.ops, {rows}), dlogits(*alone.ops, {rows, model.classes()});
      tokens.upload(batch.tokens);
      targets.upload(batch.targets);
      const Input input{tokens.data(), 8, batch.length};
      alone.ops->cross_entropy(losses.data(), dlogits.data(), model.forward(input), targets.data(),
                               1 / static_cast<real>(batch.counted * 4), rows, model.classes());
      model.backward(input, dlogits.data());
    }
    const std::vector<real> gradient = model.parameters.gradients().download();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
  }
  test.equal("the sum of two", whole.model->parameters.gradients().download(), sum);
}

// The copying task, which records the requested samples.
class Asked final : public Task {
 public:
  struct Part {
    uint64_t seed;
    uint32_t stream, step;
  };
  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override {
    for (int i = first; i < first + count; ++i) {
      parts.push_back({seed, stream, step});
      samples.push_back(i);
    }
    return task_.batch(seed, stream, step, first, count);
  }
  double accuracy(const Batch& batch, const std::vector<int32_t>& best) const override {
    return task_.accuracy(batch, best);
  }
  // Whether the samples first … first+count−1 were requested, each once, and no others; clears the record.
  bool were(const char* stream, uint32_t step, int first, int count) const {
    std::sort(samples.begin(), samples.end());
    bool same = samples.size() == static_cast<size_t>(count);
    for (size_t i = 0; same && i < samples.size(); ++i)
      same = samples[i] == first + static_cast<int>(i) && parts[i].seed == SEED &&
             parts[i].stream == stream_of(stream) && parts[i].step == step;
    samples.clear();
    parts.clear();
    return same;
  }

 private:
  Copying task_{5};
  mutable std::vector<Part> parts;
  mutable std::vector<int> samples;
};

// Loss and accuracy of the samples 0 … count−1 of an evaluation, by their definitions, from logits in one batch.
Measures by_definition(SmallTraining& training, uint32_t step, int count) {
  const Batch batch = training.task.batch(SEED, stream_of("evaluate"), step, 0, count);
  const size_t V = static_cast<size_t>(training.model->classes());
  Tokens tokens(*training.ops, {count, batch.length});
  tokens.upload(batch.tokens);
  std::vector<real> logits(batch.targets.size() * V);
  training.ops->download(logits.data(), training.model->forward({tokens.data(), count, batch.length}),
                         logits.size() * sizeof(real));
  double loss = 0, counted = 0;
  std::vector<int32_t> best;
  for (size_t row = 0; row < batch.targets.size(); ++row) {
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row * V),
               end = begin + static_cast<std::ptrdiff_t>(V);
    best.push_back(static_cast<int32_t>(std::max_element(begin, end) - begin));
    if (batch.targets[row] < 0) continue;
    double sum = 0;
    for (auto logit = begin; logit != end; ++logit) sum += std::exp(static_cast<double>(*logit));
    loss += std::log(sum) - static_cast<double>(begin[batch.targets[row]]);
    ++counted;
  }
  return {loss / counted, training.task.accuracy(batch, best), int64_t(count) * batch.length};
}

// Which samples a step learns from, and which an evaluation takes, whatever goes through the model at a time.
void what_is_asked(Test& test) {
  SmallTraining training(2, one_rank());
  const Asked asked;
  Trainer trainer(*training.model, asked, training.optimizer, *training.ops, SEED, 16, 2, 2);
  test.check("finite", trainer.is_finite_at(4));
  test.check("before it learns from them, the samples of a step", asked.were("train", 4, 0, 32));
  for (int step = 4; step < 40; ++step) training.trainer.step(step, 1e-2);
  for (const int at_once : {0, 1, 7, 45}) {
    const Measures found = trainer.evaluate(asked, 7, 45, at_once).value(), expected = by_definition(training, 7, 45);
    const std::string name = text("%d at once: ", at_once);
    test.check(name + "an evaluation's own samples, each once", asked.were("evaluate", 7, 0, 45));
    test.check(name + "their mean loss", std::abs(found.loss - expected.loss) < 1e-4 * expected.loss,
               text("%.9g, expected %.9g", found.loss, expected.loss));
    test.check(name + "their accuracy", expected.accuracy > 0 && std::abs(found.accuracy - expected.accuracy) < 1e-12,
               text("%.9g, expected %.9g", found.accuracy, expected.accuracy));
    test.equal(name + "their tokens", found.tokens, expected.tokens);
  }
}

// A task whose numbers are none of the model's: of tokens it would read, and of targets write, beyond its tables.
void numbers_beyond(Test& test) {
  struct Beyond final : Task {
    Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override {
      Batch batch = Copying(5).batch(seed, stream, step, first, count);
      batch.tokens.back() = token;
      batch.targets.back() = target;
      if (more) batch.targets.push_back(0);
      return batch;
    }
    int32_t token = 28, target = 28;
    bool more = false;
  } task;
  SmallTraining training(1, one_rank());
  Trainer trainer(*training.model, task, training.optimizer, *training.ops, SEED, 4, 1);
  const auto fails_with = [&](const std::string& words) {
    test.equal(words.empty() ? "the last of them" : words, message_of([&] { trainer.step(0, 0); }), words);
  };
  fails_with("");
  for (const int32_t token : {-1, 29}) {
    task.token = token;
    fails_with(text("token %d: expected one of the model's, 0 to 28", token));
  }
  task.token = 28;
  for (const int32_t target : {-2, 29}) {
    task.target = target;
    fails_with(text("target %d: expected one of the model's classes, 0 to 28", target));
  }
  task.target = -1;
  fails_with("");
  task.more = true;
  fails_with("the task has another number of answers than the model");
}

// Four steps by the formulas of the catalogue (Kingma and Ba 2015; Loshchilov and Hutter 2019), in double.
void adamw_by_definition(Test& test, double clip) {
  SmallTraining training(1, one_rank());
  Parameters& parameters = training.model->parameters;
  const AdamwSettings s{0.8, 0.95, 1e-3, 0.1, clip};
  Optimizer optimizer(parameters, *training.ops, s);
  const std::vector<real> start = parameters.values().download();
  std::vector<double> x(start.begin(), start.end()), m(x.size()), v(x.size()), g(x.size());
  constexpr double RATE = 0.01;
  for (int step = 0; step < 4; ++step) {
    double square = 0;
    parameters.zero_gradients();
    for (const Parameter& p : parameters.list()) {
      std::vector<real> drawn;
      for (int64_t i = 0; i < p.size(); ++i)
        drawn.push_back(normal(SEED, stream_of(p.name), static_cast<uint64_t>(step), static_cast<uint64_t>(i)));
      training.ops->upload(p.gradient, drawn.data(), drawn.size() * sizeof(real));
      std::copy(drawn.begin(), drawn.end(), g.begin() + p.begin);
      for (const real one : drawn) square += static_cast<double>(one) * static_cast<double>(one);
    }
    optimizer.step(step, RATE);
    test.check(text("the norm at step %d", step),
               std::abs(optimizer.gradient_norm() - std::sqrt(square)) < 1e-5 * std::sqrt(square));
    const double scale = clip > 0 ? std::min(1.0, clip / std::sqrt(square)) : 1;
    const double correction_1 = 1 - std::pow(s.beta1, step + 1), correction_2 = 1 - std::pow(s.beta2, step + 1);
    for (const Parameter& p : parameters.list())
      for (auto i = static_cast<size_t>(p.begin); i < static_cast<size_t>(p.begin + p.size()); ++i) {
        const double clipped = scale * g[i], decay = p.shape.size() > 1 ? s.weight_decay : 0;
        m[i] = s.beta1 * m[i] + (1 - s.beta1) * clipped;
        v[i] = s.beta2 * v[i] + (1 - s.beta2) * clipped * clipped;
        x[i] -= RATE * (m[i] / correction_1 / (std::sqrt(v[i] / correction_2) + s.epsilon) + decay * x[i]);
      }
  }
  const std::vector<real> found = parameters.values().download();
  double apart = 0, moved = 0;
  for (const Parameter& p : parameters.list())
    for (auto i = static_cast<size_t>(p.begin); i < static_cast<size_t>(p.begin + p.size()); ++i) {
      apart += std::pow(static_cast<double>(found[i]) - x[i], 2);
      moved += std::pow(x[i] - static_cast<double>(start[i]), 2);
    }
  test.check("the weights", std::sqrt(apart / moved) < 1e-5, text("%.2e of what they moved", std::sqrt(apart / moved)));
}

void differences(Test& test) {
  std::vector<std::string> said(4);
  in_ranks(4, [&](const std::shared_ptr<ThreadRank>& rank) {
    try {
      rank->check_same(7, "nothing");
      rank->check_same(rank->rank() == 2 ? 8 : 7, "its weights after step 5");
    } catch (const Error& error) {
      said[static_cast<size_t>(rank->rank())] = error.what();
    }
  });
  test.equal("weights", said, std::vector<std::string>(4, "rank 2 differs from rank 0 in its weights after step 5"));
  in_ranks(2, [&](const std::shared_ptr<ThreadRank>& rank) {
    SmallTraining training(2, rank);
    std::string& words = said[static_cast<size_t>(rank->rank())];
    words.clear();
    try {
      training.trainer.check_ranks(0);
      if (rank->rank() == 1) training.model->parameters.initialize(SEED + 1);
      training.trainer.check_ranks(0);
    } catch (const Error& error) {
      words = error.what();
    }
  });
  test.check("gradients", said[0] == said[1] && said[0].find("rank 1 differs from rank 0 in the gradient") == 0,
             said[0]);
}

// ---- The programs ---------------------------------------------------------------------------------------------------

const std::string SMALL =
    " --length 4 --width 12 --hidden 12 --layers 2 --batch 8 --eval-samples 30 --eval-every 4 --stop-at 2 ";
constexpr int SAVED_EVERY = 20;
// A run that does not end by itself.
const std::string ENDLESS =
    SMALL + text("--threads 1 --shards 4 --steps 1000000000 --eval-every 500 --save-every %d ", SAVED_EVERY);

// Shell text: so many ranks of a program; `around` starts each of them.
std::string ranks(int count, const std::string& command, const std::string& around = "") {
  return text("timeout 120 mpirun -q --oversubscribe -n %d ", count) + around + command;
}

// Without what mpirun's own event loop remarks, now and then, when a rank has ended while it was written to.
void in_one_line(Test& test, const Outcome& outcome) {
  int own = 0;
  for (const std::string& line : split(outcome.output, '\n'))
    own += !line.empty() && line.rfind("[warn] Epoll ", 0) != 0;
  test.check("in one line", own == 1, outcome.output);
}

std::string rows_of(const std::string& path) {
  const bool is_log = path.size() > 7 && path.compare(path.size() - 7, 7, "log.csv") == 0;
  return is_log ? log_rows(path) : read_bytes(path);
}

// Each training program with one process and with several, and started by two and resumed by four: the same files.
void programs(Test& test) {
  struct Row {
    const char* program;
    std::string arguments;
    const char *part, *whole;  // of it
    std::vector<std::string> files;
    bool resumes = true;  // else the same command continues several runs
  };
  const std::string copy = SMALL + "--shards 4 --evaluate-lengths 3,6 ";
  const Row rows[] = {
      {"train_copy", copy, "--steps 5 ", "--steps 12 ", {"log.csv", "lengths.csv"}},
      {"train_copy",
       copy + "--compare transformer,rnn:hidden=8 ",
       "--steps 5 ",
       "--steps 12 ",
       {"compare.csv", "lengths.csv", "transformer/log.csv", "rnn-hidden-8/log.csv"},
       false},
      {"train_text",
       "--width 16 --layers 1 --context 16 --batch 4 --shards 4 --eval-every 3 --eval-samples 9 --sample-length 8 "
       "--accumulate 2 --schedule constant --evaluate-lengths 8,24 --length-windows 30 ",
       "--steps 2 ",
       "--steps 6 ",
       {"log.csv", "lengths.csv"}},
      {"train_regular",
       "--width 16 --heads 2 --batch 8 --shards 4 --eval-samples 12 --test-every 200 --test-strings 8 --eval-every 3 ",
       "--steps 2 ",
       "--steps 6 ",
       {"results.csv", "parity_check-seed-1/log.csv", "parity_check-seed-1/test.csv"},
       false},
      {"train_regular",
       "--protocol next --task D_2 --model rnn --width 8 --batch 8 --shards 4 --eval-samples 12 --test-strings 20 "
       "--eval-every 3 ",
       "--steps 2 ",
       "--steps 6 ",
       {"results.csv", "D_2-seed-1/log.csv", "D_2-seed-1/test.csv"},
       false},
      {"train_image",
       "--width 16 --heads 2 --layers 1 --batch 4 --shards 4 --eval-samples 9 --eval-every 2 --maps 0 ",
       "--steps 1 ",
       "--steps 3 ",
       {"log.csv", "confusion.csv"}},
      {"scaling",
       "--models mlp_lm --budgets 1e7 --eval-samples 16 --batch 16 --shards 4 --threads 1 ",
       "--widths 16,24,32 ",
       "--widths 16,24,32,20 ",
       {"points.csv"},
       false},
  };
  for (const Row& row : rows) {
    const Shell shell(test, row.program);
    const std::string command = std::string(row.program) + " " + row.arguments, whole = command + row.whole + "--name ";
    const Outcome alone = shell.expect_script(whole + "alone", 0, "");
    const auto compare = [&](const std::string& name, const std::string& script) {
      const Outcome outcome = shell.expect_script(script, 0, "");
      if (alone.prints("weights ")) test.equal(name + ": weights", outcome.weights(), alone.weights());
      for (const std::string& file : row.files)
        test.equal(name + ": " + file, rows_of(shell.file("runs/" + name + "/" + file)),
                   rows_of(shell.file("runs/alone/" + file)));
    };
    for (const int count : {1, 2, 4})
      if (count == 2 || &row == &rows[0]) compare(text("by-%d", count), ranks(count, whole + text("by-%d", count)));
    shell.script(ranks(2, command + row.part + "--name parts"));
    compare("parts",
            ranks(4, row.resumes ? std::string(row.program) + " --resume --name parts " + row.whole : whole + "parts"));
  }
}

void resumed(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string all = SMALL + "--shards 4 --name ", from = SMALL + "--shards 2 --steps 5 --init runs/whole --name ";
  const Outcome whole = shell.run(all + "whole --steps 8");
  shell.script(ranks(2, "train_copy " + all + "parts --steps 4"));
  test.equal("by 2 and 1", shell.run("--name parts --resume --steps 8").weights(), whole.weights());
  in_one_line(test, shell.expect_script(ranks(2, "train_copy --name parts --resume --steps 16 --shards 8"), 1,
                                        "train_copy: --shards 8: this run was started with"));
  test.equal("--init", shell.script(ranks(2, "train_copy " + from + "two")).weights(),
             shell.run(from + "one").weights());
  // Only the first rank looks for the run on its disk.
  shell.script("mkdir -p one/runs two/runs/copy; cp -r runs/parts one/runs/copy");
  shell.expect_script(
      "mpirun -q --oversubscribe -n 1 --wdir one train_copy --resume --steps 13 : -n 1 --wdir two train_copy --resume "
      "--steps 13",
      0, "weights ");
}

// Builds for other instruction sets beside this one, where test-all has made them.
void mixed(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string arguments = SMALL + "--steps 12 --shards 4 --name ";
  const std::string expected = shell.run(arguments + "alone").weights();
  for (const std::string other : {"v3", "generic", "clang", "noopenmp"}) {
    const std::string build = shell.programs() + "/" + other + "/train_copy";
    if (!std::filesystem::exists(build) ||
        shell.script("'" + build + "' --version").output != shell.run("--version").output) {
      test.skip(other, "not built, or from other sources");
      continue;
    }
    const Outcome outcome = shell.script("mpirun -q --oversubscribe -n 1 train_copy " + arguments + other +
                                         " : -n 1 '" + build + "' " + arguments + other);
    test.equal("beside " + other, outcome.weights(), expected);
  }
}

void bad_input(Test& test) {
  const Shell shell(test, "train_copy");
  shell.write("good.txt", "not a checkpoint");
  struct Row {
    int count;
    std::string arguments;
    int status;
    const char* words;
  };
  for (const Row& row :
       std::initializer_list<Row>{{3, SMALL + "--shards 4", 2, "3 processes: expected a power of two"},
                                  {2, SMALL, 2, "--shards 1: 2 processes need --shards 2, or a larger power of two"},
                                  {1, SMALL + "--shards 3", 2, "--shards 3: expected a power of two"},
                                  {1, SMALL + "--shards 16", 2, "--shards 16 does not divide --batch 8"},
                                  {2, "--name nowhere --resume --shards 2", 1, "runs/nowhere: there is no such run"},
                                  {2, SMALL + "--shards 2 --init good.txt", 1, "good.txt: "}})
    in_one_line(test, shell.expect_script(ranks(row.count, "train_copy " + row.arguments), row.status,
                                          {"train_copy: ", row.words}));
  const auto beside = [&](const std::string& one, const std::string& other, const std::string& words) {
    const std::string command = "timeout 60 mpirun -q --oversubscribe -n 1 " + one + " : -n 1 " + other;
    const Outcome outcome = shell.script(command);
    test.check(command, outcome.status != 0 && outcome.prints(words), text("%d ", outcome.status) + outcome.output);
    in_one_line(test, outcome);
  };
  const std::string copy = "train_copy " + SMALL + "--shards 2 --steps 4 --name a ";
  const std::string text =
      "train_text --data one.txt --width 16 --layers 1 --context 16 --batch 4 --shards 2 --steps 2 --quiet --name t ";
  for (const char* other : {"--seed 2", "--lenght 1", "--help", "--resume", "--compare rnn,transformer"})
    beside(copy, copy + other, "rank 1 differs from rank 0 in its command line");
  beside(copy, text, "rank 1 differs from rank 0 in its command line");

  // The same command line in another folder.
  const std::string elsewhere = "--wdir \"$PWD/other\" ";
  shell.script("mkdir other");
  shell.write("one.txt", std::string(3000, 'a') + std::string(3000, 'b'));
  beside(text, elsewhere + text, "train_text: rank 1: one.txt");
  const std::string tokenizer = R"({"format":"petroglyph tokenizer","version":1,"kind":)";
  shell.write("kind.json", tokenizer + R"("ascii","replace":false})");
  shell.write("other/kind.json", tokenizer + R"("bytes"})");
  shell.write("other/one.txt", shell.read("one.txt"));
  beside(text + "--tokenizer kind.json ", elsewhere + text + "--tokenizer kind.json ",
         "rank 1 differs from rank 0 in its options, its model or its version");
  // Only the first rank's folder has the run.
  const std::string compared = text + "--compare rnn,transformer:heads=2 --name c ";
  shell.expect_script("timeout 60 mpirun -q --oversubscribe -n 1 " + compared + " : -n 1 " + elsewhere + compared, 0,
                      "saved runs/c");
  test.check("is in one of them", !shell.exists("other/runs"));
  shell.write("other/one.txt", std::string(3000, 'b') + std::string(3000, 'a'));
  beside(text, elsewhere + text, "rank 1 differs from rank 0 in its samples");
}

// A loss that is NaN, and a disk that is full for the rank that writes: all end, in one line, and the last checkpoint
// stays.
void failing(Test& test) {
  const Shell shell(test, "train_copy");
  const std::string diverging = SMALL +
                                "--shards 4 --steps 200 --save-every 1 --lr 1000 --weight-decay 10 --warmup 0 "
                                "--schedule constant --quiet --name ";
  shell.expect(diverging + "alone", 1, "the loss is nan at step");
  for (const int count : {2, 4}) {
    const std::string by = text("by-%d", count);
    in_one_line(test, shell.expect_script(ranks(count, "train_copy " + diverging + by), 1, "the loss is nan at step"));
    shell.same_files("runs/" + by, "runs/alone", {"/model.safetensors", "/previous.safetensors"});
  }

  shell.script(ranks(2, "train_copy " + SMALL + "--shards 4 --steps 4 --name full"));
  const std::string path = shell.file("runs/full/model.safetensors"), good = read_bytes(path);
  // The signal is ignored, so that a write fails as on a full disk.
  const std::string limited =
      "sh -c 'trap \"\" XFSZ; [ ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} != 0 ] || ulimit -f 20; exec \"$@\"' sh ";
  in_one_line(test, shell.expect_script(ranks(2, "train_copy --name full --resume --steps 8 --quiet", limited), 1,
                                        "runs/full/model.safetensors: cannot write: File too large"));
  test.check("the checkpoint is as it was", read_bytes(path) == good);
}

// Shell text: a job in the background whose ranks leave their process ids in rank-0, rank-1 …, and reaches(), which
// waits until the log has a step's row; false where the job ended before.
std::string job(int count, const std::string& arguments) {
  return text("MPIEXEC_TIMEOUT=120 mpirun -q --oversubscribe -n %d sh -c ", count) +
         "'echo $$ > rank-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; exec \"$@\"' sh train_copy " + arguments +
         " > said 2>&1 & job=$!; reaches() { until [ \"$(tail -n 1 runs/parts/log.csv 2> /dev/null | " +
         "cut -d, -f1)\" -ge $1 ] 2> /dev/null; do kill -0 $job 2> /dev/null || return 1; sleep 0.01; done; }; ";
}
// Waits for the job; returns its status and how long it took.
const std::string END =
    "now=$(date +%s); wait $job; status=$?; echo \"took $(($(date +%s) - now)) s\"; tail -c 500 said; exit $status";

// The last step in the log.
int logged(const Shell& shell) {
  if (!shell.exists("runs/parts/log.csv")) return 0;
  const CsvTable log = read_csv(shell.file("runs/parts/log.csv"));
  return log.rows() > 0 ? static_cast<int>(log.column("step").back()) : 0;
}

// The interrupted run, with a few more steps, has the weights and the log of an undisturbed one.
void goes_on(Test& test, const Shell& shell, const std::string& name) {
  const std::string steps = text(" --quiet --steps %d ", logged(shell) + SAVED_EVERY);
  const std::string expected = shell.run(ENDLESS + "--name whole" + steps).weights();
  test.equal(name + ": resumed", shell.script(ranks(2, "train_copy --resume --name parts" + steps)).weights(),
             expected);
  test.equal(name + ": its log", shell.log("parts"), shell.log("whole"));
}

// Ctrl-C in a terminal, or a SIGTERM, of the launcher or of one rank: all finish the step, and the first one saves.
void stopped(Test& test) {
  const Shell shell(test, "train_copy");
  for (const std::string deed : {"kill -INT $job", "kill -TERM $job", "kill -TERM $(cat rank-3)"}) {
    const Outcome outcome =
        shell.script("rm -rf runs; export OMPI_MCA_odls_base_sigkill_timeout=5; " +  // a busy machine needs it
                     job(4, ENDLESS + "--name parts") + "reaches 20 && " + deed + "; " + END);
    test.check(deed + ": names the command that continues",
               outcome.prints("Interrupted after step") && outcome.prints("resume --name parts"), outcome.output);
    goes_on(test, shell, deed);
  }
}

// kill -9 of a random rank at a random moment: the job ends by itself within seconds. The run resumes from its last
// checkpoint with another number of ranks, and its result is that of an undisturbed run.
void killed(Test& test) {
  const char *const wanted = std::getenv("PETROGLYPH_KILLS"), *const seed = std::getenv("PETROGLYPH_SEED");
  const int kills = wanted ? std::atoi(wanted) : 4;
  const Shell shell(test, "train_copy");
  const auto drawn = static_cast<unsigned>(seed ? std::atoll(seed) : std::time(nullptr));
  std::printf("PETROGLYPH_SEED=%u says which ranks are killed when\n", drawn);
  std::mt19937 random(drawn);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const std::string checkpoint = "runs/parts/model.safetensors";
  int early = 0, slowest = 0;
  for (int i = 1; i <= kills; ++i) {
    const bool begun = shell.exists(checkpoint), last = i == kills;
    if (!begun) std::filesystem::remove_all(shell.file("runs"));
    const int count = 2 << below(2), victim = below(count);
    const int step = logged(shell) + 1 + below(3 * SAVED_EVERY) + (last ? 2 * SAVED_EVERY : 0), later = below(30);
    const std::string name = text("death %d, of rank %d of %d, %d ms after step %d", i, victim, count, later, step);
    const Outcome outcome =
        shell.script(job(count, begun ? "--resume --name parts" : ENDLESS + "--name parts") +
                     text("reaches %d && sleep 0.%03d && kill -9 $(cat rank-%d); ", step, later, victim) + END);
    const int seconds = std::atoi(outcome.output.c_str() + std::strlen("took "));
    if (!test.check(name, outcome.status == 128 + SIGKILL && seconds < 30,
                    text("status %d: ", outcome.status) + outcome.output))
      return;
    const bool saved = shell.exists(checkpoint);
    if (!test.check(name + ": the checkpoint", saved || logged(shell) < 2 * SAVED_EVERY)) return;
    early += !saved;
    slowest = std::max(slowest, seconds);
  }
  std::printf("     %d deaths of ranks, %d before the first checkpoint; the jobs ended within %d s\n", kills, early,
              slowest);
  goes_on(test, shell, "after all of them");
}

// Why not, where MPI cannot be tried.
std::string missing_mpi(Test& test) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  const Shell shell(test);
  if (shell.script("command -v mpirun").status != 0) return "no mpirun here";
  return shell.script(ranks(2, "train_copy --help")).prints("has no MPI") ? "this build has no MPI" : "";
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("tree", tree);
  test.run("steps", steps);
  test.run("parts alone", parts_alone);
  test.run("what is asked", what_is_asked);
  test.run("numbers beyond", numbers_beyond);
  for (const double clip : {0.0, 0.5, 1e6})
    test.run(text("AdamW, clip %g", clip), [=](Test& t) { adamw_by_definition(t, clip); });
  test.run("differences", differences);
  const std::string missing = missing_mpi(test);
  const auto run = [&](const char* group, auto function) {
    test.run(group, [&] { missing.empty() ? function(test) : test.skip("mpirun", missing); });
  };
  run("programs", programs);
  run("resumed", resumed);
  run("mixed instruction sets", mixed);
  run("bad input", bad_input);
  run("failing", failing);
  run("stopped", stopped);
  run("killed", killed);
  return test.finish();
}
