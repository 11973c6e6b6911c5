#pragma once

/// The reference engine: executes a program instruction by instruction and checks every access.

#include <memory>
#include <unordered_map>

#include "runtime/ptx/block.h"

namespace hpe::ptx {

class interpreter final : public engine {
 public:
  /// For blocks of one size of one image. The program must outlive the interpreter. For one thread at a time.
  explicit interpreter(const program& p);
  ~interpreter() override;

  [[nodiscard]] std::uint32_t frame_slots() const override { return 0; }
  [[nodiscard]] const instruction& at(std::uint32_t point) const override { return *points_[point]; }
  void begin(block_context& block) override;
  std::uint32_t run(block_context& block, std::uint32_t point, std::uint32_t first, std::uint32_t last) override;
  [[nodiscard]] std::shared_ptr<engine> another() const override { return std::make_shared<interpreter>(program_); }

 private:
  friend class interpreted_thread;
  struct frame;
  struct thread;

  const program& program_;
  std::vector<const instruction*> points_;                                   // all meeting points of the program
  std::unordered_map<const function*, std::vector<std::uint32_t>> numbers_;  // of each instruction; 0: no meeting
  std::vector<std::unique_ptr<thread>> threads_;
};

}  // namespace hpe::ptx
