#pragma once

/// The facts about a kernel that the decision needs, collected once for each kernel.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ptx/analysis/analysis.h"

namespace hpe::spread {

class kernel_model {
 public:
  /// Keeps the program. `name` is a kernel of it, as the PTX has it.
  kernel_model(std::shared_ptr<const ptx::program> program, const std::string& name);

  /// An array that the kernel reaches through a pointer among its parameters.
  struct pointer {
    std::uint32_t offset = 0;    // of the pointer in the parameters
    bool is_read = false;        // by loads or atomic operations
    bool is_written = false;     // by stores or atomic operations
    bool may_be_copied = false;  // a launch with the address of a copy of the array computes the same: the kernel uses
                                 // the address for loads only, and neither stores nor compares it
  };
  [[nodiscard]] const std::vector<pointer>& pointers() const { return pointers_; }
  /// The number of the pointer that is the base of an address; empty for variables and bases that are not known.
  [[nodiscard]] std::optional<std::uint32_t> pointer_of(const ptx::analysis::address_form& form) const;

  /// Bytes of parameters, pointers apart, that addresses, conditions or numbers of iterations depend on. Launches that
  /// differ in other bytes access the same memory.
  struct bytes {
    std::uint32_t offset = 0, size = 0;
  };
  [[nodiscard]] const std::vector<bytes>& decisive_parameters() const { return decisive_; }

  /// Whether a store or atomic operation may write to any memory, because its base is not known.
  [[nodiscard]] bool writes_anywhere() const { return writes_anywhere_; }
  /// The number of the parameter that has this offset, from 1 on.
  [[nodiscard]] std::size_t parameter_at(std::uint32_t offset) const;
  /// Why the kernel has to run on one device; empty if it may be spread.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  [[nodiscard]] const ptx::analysis::kernel_analysis& analysis() const { return analysis_; }

 private:
  void find_pointers();
  void find_copyable_pointers();
  void find_decisive_parameters();

  std::shared_ptr<const ptx::program> program_;
  ptx::analysis::kernel_analysis analysis_;
  std::vector<pointer> pointers_;
  std::vector<bytes> decisive_;
  bool writes_anywhere_ = false;
  std::string obstacle_;
};

}  // namespace hpe::spread
