#pragma once

/// A program together with memory for its variables.

#include <functional>
#include <memory>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

class image {
 public:
  /// Returns memory for a variable, or throws if there is not enough memory. The memory must stay allocated as long as
  /// the image exists, and need not be zeroed.
  using allocator = std::function<void*(std::size_t bytes, std::size_t alignment)>;

  /// Allocates and initialises the variables in global and constant memory.
  image(std::shared_ptr<const ptx::program> program, const allocator& allocate);

  /// Uses existing memory for the variables: `addresses` has one address for each symbol (0 for a shared or empty
  /// variable). The addresses may be valid only in another process. The constructor does not write to the memory; the
  /// caller writes the bytes that contents_of returns.
  image(std::shared_ptr<const ptx::program> program, std::vector<std::uint64_t> addresses);

  [[nodiscard]] const ptx::program& program() const { return *program_; }
  /// Returns the address of a variable in global or constant memory.
  [[nodiscard]] std::uint64_t address_of(std::uint32_t symbol) const { return addresses_[symbol]; }
  /// Returns the address that kernels use for a function. A function has the same address in all processes that have
  /// parsed the same texts.
  [[nodiscard]] static std::uint64_t address_of_function(std::uint32_t function) {
    return first_function + std::uint64_t{function} * function_step;
  }
  /// Returns the function at an address; null if the value is not the address of a function.
  [[nodiscard]] const function* function_at(std::uint64_t address) const;

  /// Returns the initial bytes of a variable, with the addresses of other symbols filled in. If the result is shorter
  /// than the variable, the other bytes of the variable are zero.
  [[nodiscard]] std::vector<std::uint8_t> contents_of(std::uint32_t symbol) const;

 private:
  // The addresses of functions are low, because Linux maps no memory below vm.mmap_min_addr.
  static constexpr std::uint64_t first_function = 0x1000;
  static constexpr std::uint64_t function_step = 16;

  std::shared_ptr<const ptx::program> program_;
  std::vector<std::uint64_t> addresses_;
};

}  // namespace hpe::ptx
