// A running block of threads: the state that the operations of its warps share.
#pragma once

#include <vector>

#include "ptx/machine.h"
#include "ptx/memory.h"

namespace ptx {

class Block {
 public:
  Block(Program& program, const Launch& launch);
  void run(Shape index);

  const Launch& launch() const { return launch_; }
  Clock clock;
  SharedMemory shared;
  GlobalMemory global;
  std::vector<AsyncCopies> copies;  // one per warp

 private:
  void prepare_warp(Warp& warp, Shape index);
  void run_warp(Warp& warp);
  int pick_group(const Warp& warp);
  void run_group(Warp& warp, Group group);
  void check_written(Warp& warp, const Instruction& i, Lanes lanes) const;
  void execute(Warp& warp, const Instruction& i, Lanes lanes) const;
  bool run_exchange(Warp& warp, const Instruction& i, Lanes lanes);
  void arrive(Warp& warp, int at, Lanes lanes);
  void pass_barrier();
  unsigned below(unsigned n);  // a random number less than n
  [[noreturn]] void fail(const Instruction& i, Lanes lanes, const std::string& why) const;

  Program& program_;
  const Launch& launch_;
  Shape index_ = {};
  std::vector<Warp> warps_;
  std::vector<unsigned char> registers_;
  uint32_t random_;
  uint64_t branches_ = 0;
};

}  // namespace ptx
