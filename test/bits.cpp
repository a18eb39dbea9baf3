// The same bits: on the CPU as on the reference, with any number of threads, in any build, alone or in a batch, resumed
// or not, token by token or at once.
//
//   build/test/bits                   against test/golden.txt, which every build of every compiler must reproduce
//   build/test/bits --write FILE      writes the fingerprints of this build: a change of the contract, and its commit
//                                     says why

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <thread>

#include "base/text.h"
#include "cases.h"
#include "check.h"
#include "cpu/cpu.h"
#include "cpu/loops.h"
#include "cpu/make_cpu.h"
#include "fingerprints.h"
#include "gpu_checks.h"
#include "math/random.h"
#include "reference/reference.h"
#include "train/checkpoint.h"

namespace petroglyph {
namespace {

constexpr uint64_t SEED = FINGERPRINT_SEED;

MakeOps cpu_of(int threads) {
  return [threads] {
    auto ops = make_cpu(threads);
    static_cast<Cpu&>(*ops).share_all();
    return ops;
  };
}

// Of equal ones the first; −0 and 0 are equal.
void lowest_of_the_largest(Test& test) {
  for (const int threads : {1, 3}) {
    const auto ops = make_cpu(threads);
    Tensor logits(*ops, {4, 4});
    logits.upload({1, 3, 3, 2, real(-0.0), 0, 0, -1, 5, 5, 5, 5, -2, -3, -1, -1});
    Tokens best(*ops, {4});
    best.upload({-7, -7, -7, -7});
    ops->argmax(best.data(), logits.data(), 4, 4);
    test.equal(text("threads %d", threads), best.download(), std::vector<int32_t>{1, 0, 0, 2});
  }
}

// ---- Products -------------------------------------------------------------------------------------------------------

std::vector<real> draw(const char* name, int64_t rows, int64_t columns) {
  std::vector<real> numbers;
  for (int64_t i = 0; i < rows * columns; ++i)
    numbers.push_back(normal(SEED, stream_of(name), 0, static_cast<uint64_t>(i)));
  return numbers;
}

// y = x Wᵀ of the weight as it is, by operations that have never seen it before
std::vector<real> product_of(const std::vector<real>& x, const std::vector<real>& weight, int in, int out) {
  const auto ops = make_cpu(1);
  const auto N = static_cast<int64_t>(x.size()) / in;
  Tensor X(*ops, {N, in}), W(*ops, {out, in}), Y(*ops, {N, out});
  X.upload(x), W.upload(weight);
  ops->linear(Y.data(), X.data(), W.data(), nullptr, N, in, out, Into::WRITE);
  return Y.download();
}

// A held weight stays packed from one product to the next; what is written to it meanwhile counts, and all of it later.
void held_weights(Test& test, int N, int threads) {
  constexpr int IN = 1100, OUT = 100;  // the chain is cut
  const auto ops = make_cpu(threads);
  const std::vector<real> x = draw("x", N, IN);
  Tensor X(*ops, {N, IN}), W(*ops, {OUT, IN}), Y(*ops, {N, OUT}), moment(*ops, {OUT, IN}), square_sum(*ops, {1});
  X.upload(x);
  W.upload(draw("weight", OUT, IN));
  const auto as_it_is = [&](const char* when) {
    for (int i = 0; i < 2; ++i) {
      ops->linear(Y.data(), X.data(), W.data(), nullptr, N, IN, OUT, Into::WRITE);
      test.equal(text("%s, product %d", when, i + 1), Y.download(), product_of(x, W.download(), IN, OUT));
    }
  };
  std::shared_ptr<const real> held = ops->hold(W.data(), W.size()), again = ops->hold(W.data(), W.size());
  as_it_is("held");
  const std::vector<real> row = draw("row", 1, IN);
  ops->upload(W.data() + (OUT - 1) * IN, row.data(), IN * sizeof(real));
  as_it_is("its last row uploaded");
  for (Tensor* zeros : {&moment, &square_sum}) zeros->zero();
  AdamwStep step{};
  step.learning_rate = step.weight_decay = real(0.5), step.correction1 = step.correction2 = step.epsilon = 1;
  ops->adamw(W.data(), moment.data(), moment.data(), moment.data(), square_sum.data(), step, W.size());
  as_it_is("decayed");
  held.reset();
  as_it_is("held once");
  again.reset();
  ops->zero(W.data(), W.bytes());
  as_it_is("held no more");
}

void resumed(Test& test) {
  SmallRun whole(make_cpu(2));
  whole.steps(0, 12);
  const TemporaryFolder folder;
  const std::string path = folder.file("model.safetensors");
  {
    SmallRun first(make_cpu(1));
    first.steps(0, 5);
    save_checkpoint(path, {"train_copy", "causal_rn", Json::object(), Json::object(), 5, "", Json()}, *first.model,
                    &first.optimizer);
  }
  SmallRun second(make_cpu(2));
  second.model->parameters.initialize(99);
  const SafetensorsFile file(path);
  load_checkpoint(file, *second.model, second.optimizer, *second.ops);
  second.steps(read_run_state(file, "train_copy").step, 12);
  test.equal("5 steps, a file, 7 steps", second.fingerprint(), whole.fingerprint());
}

// Sample b of a batch, alone, has the logits it has among its neighbours.
void alone(Test& test, const ModelCase& row) {
  const auto ops = make_cpu(2);
  const auto model = make_model(row.model, Json::parse(row.config, row.name), *ops);
  model->parameters.initialize(SEED);
  const ModelBatch batch(*ops, row, model->classes(), SEED);
  const std::vector<real> together = logits_of(*ops, *model, batch.input());
  const auto size = static_cast<int64_t>(together.size()) / row.batch;
  for (int b = 0; b < row.batch; ++b)
    test.equal(text("sample %d alone", b), logits_of(*ops, *model, batch.sample(*ops, b).input()),
               std::vector<real>(together.begin() + b * size, together.begin() + (b + 1) * size));
}

// The decoder's logits, in pieces of `piece` tokens, against one forward pass; of a model that answers at the end,
// against a pass that ends there, over its window where it has one. in_turns: every other piece is prefilled, without
// logits.
void decoded(Test& test, const ModelCase& row, int piece, bool in_turns = false) {
  const auto ops = make_cpu(2);
  const auto model = make_model(row.model, Json::parse(row.config, row.name), *ops);
  model->parameters.initialize(SEED);
  const int B = row.batch, V = model->classes(), window = model->window();
  if (!row.decodes) {
    test.throws("no decoder", row.model + ": ", [&] { model->decoder(B, row.length); });
    return;
  }
  const ModelBatch batch(*ops, row, V, SEED);
  const std::vector<int32_t> tokens = batch.to_decode(*model);
  const int T = static_cast<int>(tokens.size()) / B;
  const bool last = model->logit_rows(batch.input()) == B;
  const std::unique_ptr<Decoder> decoder = model->decoder(B, T);
  for (int t = 0; t < T; t += piece) {
    const int n = std::min(piece, T - t), end = t + n;
    const Tokens newest = some_of(*ops, tokens, B, t, end);
    if (in_turns && t / piece % 2 == 0 && end < T) {
      decoder->prefill(newest.data(), n);
      continue;
    }
    if (end < window) {
      std::vector<real> none(static_cast<size_t>(B) * n * V);
      ops->download(none.data(), decoder->decode(newest.data(), n), none.size() * sizeof(real));
      test.check("no answer yet", std::all_of(none.begin(), none.end(), [](real x) { return std::isnan(x); }));
      continue;
    }
    const int from = window > 0 ? end - window : 0, length = (last ? end : T) - from;
    const Tokens so_far = some_of(*ops, tokens, B, from, from + length);
    const std::vector<real> whole = logits_of(*ops, *model, {so_far.data(), B, length});
    std::vector<real> all(static_cast<size_t>(B) * n * V), found, expected;
    ops->download(all.data(), decoder->decode(newest.data(), n), all.size() * sizeof(real));
    for (int b = 0; b < B; ++b) {
      const auto begin = all.begin() + (b * n + (last ? n - 1 : 0)) * V, finish = all.begin() + (b + 1) * n * V;
      const auto at = whole.begin() + (last ? b : b * T + t) * V;
      found.insert(found.end(), begin, finish);
      expected.insert(expected.end(), at, at + (finish - begin));
    }
    test.equal(text("tokens %d to %d in pieces of %d", t, end - 1, piece), found, expected);
  }
  const Tokens more = some_of(*ops, tokens, B, 0, 1);
  const std::string full = text("%d tokens are more than the decoder's capacity of %d", T + 1, T);
  test.throws("has no room for another", full, [&] { decoder->decode(more.data(), 1); });
  test.throws("nor for one without logits", full, [&] { decoder->prefill(more.data(), 1); });
  test.throws("takes no piece without tokens", "0 tokens to decode, expected at least 1",
              [&] { decoder->decode(more.data(), 0); });
}

// Each of these sizes is allowed; their product exceeds an int.
void large_products(Test& test) {
  const auto ops = make_cpu(1);
  const auto refused = [&](const std::string& of, const std::map<std::string, int>& sizes, const std::string& words) {
    int asked = 0;
    for (const ModelCase& row : model_cases()) {
      if (row.model != of) continue;
      ++asked;
      Json config = Json::parse(row.config, row.name);
      for (const auto& [key, size] : sizes) config.set(key, size);
      test.throws(row.name, words, [&] { make_model(row.model, config, *ops); });
    }
    test.check("there are some of " + of, asked > 0);
  };
  refused("regular_gpt", {{"width", 1 << 16}, {"heads", 1 << 16}, {"chunk", 1 << 16}}, "heads 65536 times chunk 65536");
  refused("mamba", {{"width", 1 << 16}, {"expand", 64}, {"conv", 1 << 10}}, "4194304 channels, times conv 1024");
}

// A model reads tokens or the patches of images; and where it has no place for a token it would read beyond its tables.
void refused_inputs(Test& test, const ModelCase& row) {
  const auto ops = make_cpu(1);
  const auto model = make_model(row.model, Json::parse(row.config, row.name), *ops);
  model->parameters.initialize(SEED);
  test.throws("the other input",
              row.model + (row.patch_size > 0 ? ": reads the patches of images, not tokens"
                                              : ": reads tokens, not patches of images"),
              [&] {
                model->forward({nullptr, 1, row.length});
              });
  const int most = model->longest();
  if (row.patch_size > 0 || most > 1 << 12) return;  // it reads as many tokens as one likes
  Tokens ids(*ops, {1, most + 1});
  ids.upload(std::vector<int32_t>(static_cast<size_t>(most) + 1));
  test.throws("too long",
              row.model + text(": a sequence of %d tokens is longer than the context of %d", most + 1, most), [&] {
                model->forward({ids.data(), 1, most + 1});
              });
  if (row.decodes) test.throws("too long for a decoder", row.model + ": ", [&] { model->decoder(1, most + 1); });
}

// Jobs of all numbers of pieces, long enough to be shared, one right after the other or when the workers sleep: every
// piece is done once, before parallel() returns, and no thread does two at a time.
void pieces_once(Test& test, int count) {
  const Threads threads(count);
  std::vector<int> done;
  std::vector<std::atomic<int>> busy(static_cast<size_t>(count));
  int64_t wrong = 0, all = 0;
  std::atomic<int64_t> of_others{0};
  for (uint64_t job = 0; job < 3000; ++job) {
    if (job % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
    const auto random = philox(1, 0, 0, job);
    const int64_t pieces = 1 + random.word[0] % 70;
    // Short and done alone, or long and shared.
    const auto time = std::chrono::microseconds(random.word[1] % 4 == 0 ? 500 : 10);
    done.assign(static_cast<size_t>(pieces), 0);
    parallel(threads, 3 * pieces - 1, 3, job % 2 == 0 ? threads.alone : 0, [&](int64_t begin, int64_t end, int thread) {
      if (busy[static_cast<size_t>(thread)]++ != 0) done[0] += 100;
      of_others += thread != 0;
      const auto until = std::chrono::steady_clock::now() + time / pieces;
      while (std::chrono::steady_clock::now() < until) {
      }
      done[static_cast<size_t>(begin / 3)] += end == std::min(begin + 3, 3 * pieces - 1) ? 1 : 100;
      --busy[static_cast<size_t>(thread)];
    });
    wrong += std::count_if(done.begin(), done.end(), [](int times) { return times != 1; });
    all += pieces;
  }
  test.equal(text("wrong ones of %lld pieces", static_cast<long long>(all)), wrong, int64_t{0});
  test.check("some of them by the other threads", threads.count == 1 || of_others > 0);
}

// Each of `count` tasks waits until two threads are at work: the time runs out where there is one alone.
int threads_at_work(const Threads& threads) {
  std::atomic<int> at_work{0};
  parallel(threads, threads.count, 1, threads.alone, [&](int64_t, int64_t, int thread) {
    at_work |= 1 << thread;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (at_work == 1 << thread && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  return static_cast<int>(std::bitset<32>(static_cast<unsigned>(at_work)).count());
}

// What a child of fork() returns: whether several threads are at work, where there are several.
bool works_in_child(const Threads& threads) {
#ifdef __SANITIZE_ADDRESS__
  return true;  // the sanitizer's allocator may be locked at the fork, by a thread that the child does not have
#endif
  const pid_t child = fork();
  if (child == 0) _exit(threads_at_work(threads) > 1 ? 0 : 1);
  int status = 1;
  for (int waited = 0; waitpid(child, &status, WNOHANG) == 0; ++waited) {
    if (waited == 2000) kill(child, SIGKILL);  // 20 s: it waits for its parent's threads
    usleep(10000);
  }
  return status == 0;
}

void threads_of_regions(Test& test) {
  const Threads threads(2), others(3);
  test.check("outside of a region", threads_at_work(threads) == 2);
  test.check("in a child of a process whose threads wait", works_in_child(threads));
  threads.run([&] {
    test.check("inside one", threads_at_work(threads) == 2);
    test.check("another device inside", threads_at_work(others) > 1);
    test.check("in a child of a region", works_in_child(threads));
    test.check("in a child, another device", works_in_child(others));
    test.check("inside, after them", threads_at_work(threads) == 2);
  });
  test.throws("an exception leaves a region", "of the body", [&] {
    threads.run([&] {
      threads_at_work(threads);
      throw Error("of the body");
    });
  });
  test.check("after it", threads_at_work(threads) == 2);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  test.check("this thread gets its signals", sigismember(&mask, SIGINT) == 0);
  std::atomic<int> unmasked{0};
  parallel(threads, 2, 1, threads.alone, [&](int64_t, int64_t, int thread) {
    sigset_t own;
    pthread_sigmask(SIG_SETMASK, nullptr, &own);
    unmasked += thread != 0 && sigismember(&own, SIGINT) == 0;
  });
  test.check("the others get none", unmasked == 0);
}

int write_golden(const std::string& path) {
  std::ofstream out(path);
  for (const auto& [name, fingerprint] : all_fingerprints(cpu_of(2))) out << fingerprint << "  " << name << "\n";
  return out.flush() ? 0 : 1;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  if (argc == 3 && std::string(argv[1]) == "--write") return write_golden(argv[2]);
  Test test(argc, argv);
  for (const int threads : {1, 2, 5})
    test.run(text("golden, threads %d", threads), [&](Test& t) { against_golden(t, cpu_of(threads)); });
  test.run("golden, reference", [](Test& t) {
    against_golden(
        t, [] { return std::make_unique<Reference>(); }, NanSpread::LEFT_OUT);
  });
  for (const char* group : {"table", "special", "models", "streams", "strips"})
    for (const int threads : {1, 2, 5})
      test.run(text("%s, threads %d", group, threads), [&](Test& t) { compare(t, group, *cpu_of(threads)()); });
  if (Threads(2).count > 1) test.run("threads", threads_of_regions);
  for (const int threads : {2, 5})
    test.run(text("pieces, threads %d", threads), [&](Test& t) { pieces_once(t, threads); });
  for (const int N : {1, 4, 9})
    for (const int threads : {1, 2})
      test.run(text("held weights, %d rows, threads %d", N, threads), [&](Test& t) { held_weights(t, N, threads); });
  test.run("argmax", lowest_of_the_largest);
  test.run("large products", large_products);
  test.run("resumed", resumed);
  for (const ModelCase& row : model_cases()) {
    test.run("alone " + row.name, [&](Test& t) { alone(t, row); });
    test.run("decode " + row.name, [&](Test& t) {
      for (const int piece : {1, 3}) decoded(t, row, piece);
      if (row.decodes) decoded(t, row, 2, true);
    });
    test.run("refused " + row.name, [&](Test& t) { refused_inputs(t, row); });
  }
  return test.finish();
}
