#pragma once

/// The basic blocks of a function or kernel, and the registers that are live at the beginning of each block.

#include <vector>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

struct basic_block {
  std::uint32_t first = 0, last = 0;  // instructions n with first <= n < last; a meeting (call_graph.h) ends its block
  std::vector<std::uint32_t> successors;  // blocks
};

class register_set {
 public:
  explicit register_set(std::size_t registers = 0) : words_((registers + 63) / 64) {}
  void add(std::uint32_t r) { words_[r / 64] |= std::uint64_t{1} << (r % 64); }
  void remove(std::uint32_t r) { words_[r / 64] &= ~(std::uint64_t{1} << (r % 64)); }
  [[nodiscard]] bool has(std::uint32_t r) const { return (words_[r / 64] >> (r % 64) & 1) != 0; }
  /// Adds the registers of `other`. Returns whether the set has changed.
  bool unite(const register_set& other);
  [[nodiscard]] std::vector<std::uint32_t> members() const;

 private:
  std::vector<std::uint64_t> words_;
};

class control_flow {
 public:
  control_flow(const std::vector<instruction>& code, std::size_t registers);

  [[nodiscard]] const std::vector<basic_block>& blocks() const { return blocks_; }
  [[nodiscard]] std::uint32_t block_at(std::uint32_t instruction) const { return block_of_[instruction]; }
  [[nodiscard]] const register_set& alive_at(std::uint32_t block) const { return alive_[block]; }

 private:
  void find_blocks();
  void find_alive(std::size_t registers);

  const std::vector<instruction>& code_;
  std::vector<basic_block> blocks_;
  std::vector<std::uint32_t> block_of_;
  std::vector<register_set> alive_;
};

}  // namespace hpe::ptx
