#pragma once

/// The parts of a region that hpe has made known to other processes, and the exports of bytes in these parts.
/// node::exporter has one memory for each part: the device memory that the part had when hpe made the part known. Pure
/// bookkeeping; owned by the region and guarded by its mutex.

#include <cstdint>
#include <vector>

#include "runtime/coherence/access_order.h"

namespace hpe::coherence {

class shared_parts {
 public:
  struct exported_part {
    std::uint64_t memory = 0;          ///< the number under which processes know the part
    byte_range range;                  ///< parts may overlap
    std::vector<byte_range> exported;  ///< the allocations with exported bytes, one entry for each export
  };

  void clear() noexcept { parts_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }
  [[nodiscard]] const std::vector<exported_part>& all() const noexcept { return parts_; }

  void add(std::uint64_t memory, byte_range range) { parts_.push_back({memory, range, {}}); }
  void remove(std::uint64_t memory);
  /// A part that contains the range; nullptr if no part does.
  [[nodiscard]] const exported_part* around(byte_range range) const noexcept;

  void begin_export(std::uint64_t memory, byte_range allocation) { of(memory).exported.push_back(allocation); }
  void end_export(std::uint64_t memory, byte_range allocation) noexcept;
  /// Whether bytes of an allocation that overlaps the range are exported.
  [[nodiscard]] bool exported(byte_range range) const noexcept;

 private:
  [[nodiscard]] exported_part& of(std::uint64_t memory) noexcept;

  std::vector<exported_part> parts_;
};

}  // namespace hpe::coherence
