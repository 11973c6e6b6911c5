#include "runtime/coherence/shared_parts.h"

#include <algorithm>

namespace hpe::coherence {

namespace {

bool meet(byte_range a, byte_range b) noexcept { return a.begin < b.end && b.begin < a.end; }

}  // namespace

shared_parts::exported_part& shared_parts::of(std::uint64_t memory) noexcept {
  return *std::ranges::find(parts_, memory, &exported_part::memory);
}

void shared_parts::remove(std::uint64_t memory) {
  std::erase_if(parts_, [&](const exported_part& p) { return p.memory == memory; });
}

const shared_parts::exported_part* shared_parts::around(byte_range range) const noexcept {
  const auto found = std::ranges::find_if(
      parts_, [&](const exported_part& p) { return p.range.begin <= range.begin && range.end <= p.range.end; });
  return found == parts_.end() ? nullptr : &*found;
}

void shared_parts::end_export(std::uint64_t memory, byte_range allocation) noexcept {
  std::vector<byte_range>& exports = of(memory).exported;
  exports.erase(std::ranges::find(exports, allocation));
}

bool shared_parts::exported(byte_range range) const noexcept {
  return std::ranges::any_of(parts_, [&](const exported_part& p) {
    return std::ranges::any_of(p.exported, [&](byte_range each) { return meet(each, range); });
  });
}

}  // namespace hpe::coherence
