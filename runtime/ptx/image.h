#pragma once

/// A program with memory for its variables.

#include <functional>
#include <memory>
#include <unordered_set>

#include "runtime/ptx/program.h"

namespace hpe::ptx {

class image {
 public:
  /// Gives memory for a variable, zeroed or not; the caller keeps it as long as the image. Throws where there is none.
  using allocator = std::function<void*(std::size_t bytes, std::size_t alignment)>;

  /// Allocates and initialises the variables in global and constant memory.
  image(std::shared_ptr<const ptx::program> program, const allocator& allocate);

  [[nodiscard]] const ptx::program& program() const { return *program_; }
  /// Of a variable in global or constant memory.
  [[nodiscard]] std::uint64_t address_of(std::uint32_t symbol) const { return addresses_[symbol]; }
  [[nodiscard]] std::uint64_t address_of_function(std::uint32_t function) const {
    return reinterpret_cast<std::uint64_t>(program_->functions[function].get());
  }
  /// Null where the value is no function's address.
  [[nodiscard]] const function* function_at(std::uint64_t address) const;

 private:
  void initialise(std::uint32_t symbol);

  std::shared_ptr<const ptx::program> program_;
  std::vector<std::uint64_t> addresses_;
  std::unordered_set<std::uint64_t> functions_;
};

}  // namespace hpe::ptx
