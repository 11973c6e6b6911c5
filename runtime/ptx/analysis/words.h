#pragma once

/// Writes expressions and records of the analysis in CUDA notation: blockIdx.x*blockDim.x + threadIdx.x.

#include <string>

#include "runtime/ptx/analysis/analysis.h"

namespace hpe::ptx::analysis {

/// Only one CPU thread at a time may use an object.
class words {
 public:
  /// Both arguments must outlive the object.
  words(const program& p, const kernel_analysis& k) : program_(p), kernel_(k) {}

  [[nodiscard]] std::string of(expression_id e) const;
  [[nodiscard]] std::string of_quantity(quantity_id q) const;
  [[nodiscard]] std::string of(const comparison& c) const;
  /// Returns the text of an assumption, for example "blockIdx.x * blockDim.x + threadIdx.x fits into 32 bits, signed".
  [[nodiscard]] std::string of(const assumption& a) const;
  /// Returns the name of the array's parameter or variable.
  [[nodiscard]] std::string of_base(std::optional<quantity_id> base) const;
  /// Returns the text of an expression that is a number of bytes, as a number of elements of `element` bytes. If the
  /// division is not exact, returns the number of bytes with "bytes" appended.
  [[nodiscard]] std::string in_elements(expression_id e, std::uint32_t element) const;
  /// Returns the position of an instruction in the source code if the PTX contains it; otherwise its position in the
  /// PTX.
  [[nodiscard]] std::string place(const instruction& i) const;
  [[nodiscard]] std::string place(const loop_use& l) const;

 private:
  [[nodiscard]] std::string of_sum(const polynomial& p) const;
  [[nodiscard]] std::string of_parameter(const quantity& q) const;
  [[nodiscard]] std::string of_node(const quantity& q) const;
  [[nodiscard]] std::string of_choice(const quantity& q) const;
  [[nodiscard]] std::string place(std::uint32_t file, std::uint32_t source_line, std::uint32_t line) const;

  const program& program_;
  const kernel_analysis& kernel_;
  mutable unsigned depth_ = 0;  // nesting depth of the expression that is being written
  mutable unsigned parts_ = 0;  // number of expressions written inside the outermost one
};

[[nodiscard]] std::string_view name_of(address_class how);

}  // namespace hpe::ptx::analysis
