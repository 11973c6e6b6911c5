#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/check/declared_accesses.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/core/operations/launcher.h"
#include "runtime/work/fingerprints.h"

namespace hpe::core {

/// The memory that one launch declares as only read, compared before and after the launch by fingerprints.
class read_only_memory final : public launch_frame {
 public:
  /// A range has at most this many parts, each of at least part_bytes bytes; a change is known by its part.
  static constexpr std::uint64_t most_parts = 16, part_bytes = 4096;

  /// Waits for earlier work that uses the memory, because launches with wrong declarations may change it too.
  read_only_memory(device::device_set& devices, work::fingerprints& prints, const allocator& memory,
                   std::span<const check::declared_range> declared);

  void begin(coherence::point_set& first) override;
  void end(timepoint launch) noexcept override;

  /// Waits until the launch has ended. Returns, for each range, the bytes from the first to the last changed part.
  [[nodiscard]] std::vector<check::access_range> changed() const;

 private:
  using print = std::optional<coherence::piece_fingerprint>;
  struct part {
    unsigned home = 0;
    coherence::byte_range bytes;
    print before{}, after{};
  };
  struct range {
    coherence::region* region = nullptr;
    coherence::byte_range bytes;
    std::vector<part> parts{};
  };

  static void divide(range& whole);

  device::device_set& devices_;
  work::fingerprints& prints_;
  std::vector<range> ranges_;
};

}  // namespace hpe::core
