#pragma once

#include "interpose/adopted_pointers.h"
#include "interpose/cuda/adopted_memory.h"

namespace hpe::cuda_hooks {

/// Lets interposed calls of libc and MPI use device memory of the program.
class host_calls final : public interpose::adopted_pointers {
 public:
  explicit host_calls(adopted_memory& memory) : memory_(memory) { start(); }

  [[nodiscard]] std::size_t bytes_from(std::uintptr_t address) noexcept override { return memory_.bytes_from(address); }
  void read(void* to, std::uintptr_t from, std::size_t bytes) override { memory_.read(to, from, bytes); }
  void write(std::uintptr_t to, const void* from, std::size_t bytes) override { memory_.write(to, from, bytes); }

 protected:
  [[nodiscard]] bool may_know(std::uintptr_t address) const noexcept override { return memory_.marks().has(address); }

 private:
  adopted_memory& memory_;
};

}  // namespace hpe::cuda_hooks
