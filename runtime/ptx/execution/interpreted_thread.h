#pragma once

/// A thread in the interpreter. Only the interpreter includes this file.

#include "runtime/ptx/execution/interpreter.h"
#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/races/race_finder.h"

namespace hpe::ptx {

/// One call of a function.
struct interpreter::frame {
  const function* what = nullptr;
  const std::uint32_t* numbers = nullptr;
  std::uint32_t position = 0;
  std::vector<std::uint64_t> registers;
  std::vector<std::uint8_t> formals, scratch;
  std::uint64_t local = 0;               // offset of the call's local memory in the thread's local memory
  const instruction* pending = nullptr;  // the call that this frame is executing
};

struct interpreter::thread {
  std::vector<std::unique_ptr<frame>> stack;
};

class interpreted_thread {
 public:
  interpreted_thread(interpreter& i, block_context& block, std::uint32_t number, interpreter::thread& state)
      : interpreter_(i), block_(block), number_(number), stack_(state.stack) {}
  void run(bool from_entry);

 private:
  [[noreturn]] void fail(trap::reason why, std::uint64_t address);
  [[nodiscard]] std::uint64_t value(const operand& o) const;
  [[nodiscard]] std::uint64_t address(const operand& o) const;
  void set(const operand& o, std::uint64_t value);
  void enter(const function& f);
  void leave();
  void execute(const instruction& i);
  void compute(const instruction& i);
  void call(const instruction& i);
  void take_results(const instruction& i, const function& callee, const std::vector<std::uint8_t>& formals);

  // Memory:
  std::uint8_t* checked(const instruction& i, const operand& where, std::uint64_t bytes, std::uint64_t alignment);
  std::uint8_t* checked(address_window window, std::uint64_t address, std::uint64_t bytes, std::uint64_t alignment);
  void load(const instruction& i);
  [[nodiscard]] std::uint8_t* record_of(const instruction& i) const;
  void store(const instruction& i);
  void update(const instruction& i);
  void copy(const instruction& i);
  void touch(const instruction& i, const std::uint8_t* at, std::uint64_t bytes, memory_use how,
             const void* value = nullptr);
  void touch_fragment(const instruction& i, const std::uint8_t* matrix, std::uint64_t stride, memory_use how);
  void order_copies(const instruction& i);

  interpreter& interpreter_;
  block_context& block_;
  std::uint32_t number_;
  std::vector<std::unique_ptr<interpreter::frame>>& stack_;
  interpreter::frame* top_ = nullptr;
};

}  // namespace hpe::ptx
