#pragma once

/// A program with memory for its variables.

#include <functional>
#include <memory>

#include "runtime/ptx/program.h"

namespace hpe::ptx {

class image {
 public:
  /// Gives memory for a variable, zeroed or not; the caller keeps it as long as the image. Throws where there is none.
  using allocator = std::function<void*(std::size_t bytes, std::size_t alignment)>;

  /// Allocates and initialises the variables in global and constant memory.
  image(std::shared_ptr<const ptx::program> program, const allocator& allocate);

  /// With the variables at given addresses, one for each symbol (0 where it is shared or empty), which may be those of
  /// another process. The memory is not touched: contents_of says what belongs there.
  image(std::shared_ptr<const ptx::program> program, std::vector<std::uint64_t> addresses);

  [[nodiscard]] const ptx::program& program() const { return *program_; }
  /// Of a variable in global or constant memory.
  [[nodiscard]] std::uint64_t address_of(std::uint32_t symbol) const { return addresses_[symbol]; }
  /// What kernels take for a function's address: the same in all processes that have parsed the same texts.
  [[nodiscard]] static std::uint64_t address_of_function(std::uint32_t function) {
    return first_function + std::uint64_t{function} * function_step;
  }
  /// Null where the value is no function's address.
  [[nodiscard]] const function* function_at(std::uint64_t address) const;

  /// The initial bytes of a variable, with the addresses of others filled in. What follows them is zero.
  [[nodiscard]] std::vector<std::uint8_t> contents_of(std::uint32_t symbol) const;

 private:
  // Low addresses, where nothing is mapped (vm.mmap_min_addr).
  static constexpr std::uint64_t first_function = 0x1000;
  static constexpr std::uint64_t function_step = 16;

  std::shared_ptr<const ptx::program> program_;
  std::vector<std::uint64_t> addresses_;
};

}  // namespace hpe::ptx
