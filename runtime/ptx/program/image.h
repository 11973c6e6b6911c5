#pragma once

/// A program together with memory for its variables.

#include <functional>
#include <memory>

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

class image {
 public:
  /// Allocates memory for a variable. The memory must live as long as the image and need not be zeroed. Throws if there
  /// is not enough memory.
  using allocator = std::function<void*(std::size_t bytes, std::size_t alignment)>;

  /// Allocates and initialises the variables in global and constant memory.
  image(std::shared_ptr<const ptx::program> program, const allocator& allocate);

  /// Places the variables at the given addresses, one for each symbol (0 for a shared or empty variable). The addresses
  /// may belong to another process. The constructor does not write to the memory; contents_of returns the initial
  /// content.
  image(std::shared_ptr<const ptx::program> program, std::vector<std::uint64_t> addresses);

  [[nodiscard]] const ptx::program& program() const { return *program_; }
  /// Returns the address of a variable in global or constant memory.
  [[nodiscard]] std::uint64_t address_of(std::uint32_t symbol) const { return addresses_[symbol]; }
  /// Returns the address that kernels use for a function. It is the same in all processes that have parsed the same
  /// texts.
  [[nodiscard]] static std::uint64_t address_of_function(std::uint32_t function) {
    return first_function + std::uint64_t{function} * function_step;
  }
  /// Returns the function at an address; null if the value is not the address of a function.
  [[nodiscard]] const function* function_at(std::uint64_t address) const;

  /// Returns the initial bytes of a variable, including the addresses of other symbols. The rest of the variable is
  /// zero.
  [[nodiscard]] std::vector<std::uint8_t> contents_of(std::uint32_t symbol) const;

 private:
  // Addresses of functions are low, so that no memory is mapped at them (vm.mmap_min_addr).
  static constexpr std::uint64_t first_function = 0x1000;
  static constexpr std::uint64_t function_step = 16;

  std::shared_ptr<const ptx::program> program_;
  std::vector<std::uint64_t> addresses_;
};

}  // namespace hpe::ptx
