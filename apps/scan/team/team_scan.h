#pragma once

#include <string>

#include "apps/scan/team/scan_kernels.h"

namespace hpe::scan {

/// The arrays of a team's batch. Input and output may be the same.
struct arrays {
  const std::byte* input;
  std::byte* output;
};

/// The bytes of a batch, or a part of them, as accesses of a launch.
class ranges {
 public:
  ranges(const arrays& where, std::size_t offset, std::size_t bytes)
      : input_(const_cast<std::byte*>(where.input) + offset, bytes), output_(where.output + offset, bytes) {}

  [[nodiscard]] bool in_place() const { return input_.data() == output_.data(); }
  /// Returns the bytes that are only read; an empty range if the scan is in place.
  [[nodiscard]] hpeAccess read() const { return in(in_place() ? input_.first(0) : input_); }
  [[nodiscard]] hpeAccess written() const { return in_place() ? inout(output_) : out(output_); }
  [[nodiscard]] hpeAccess only_read() const { return in(input_); }

 private:
  std::span<std::byte> input_, output_;
};

/// Scans the problems of one team. Only one thread at a time may use an object.
class team_scan {
 public:
  virtual ~team_scan() = default;
  /// Queues the scan and returns.
  virtual void queue(const arrays& where) = 0;
  /// Describes the choices in sentences.
  [[nodiscard]] virtual std::string explain() const = 0;
};

/// Bytes. Soft devices write larger results past the CPU's caches, with streaming stores.
inline constexpr std::size_t too_much_for_caches = std::size_t{8} << 20;

}  // namespace hpe::scan
