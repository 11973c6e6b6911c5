#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/spread/model/kernel_model.h"

namespace hpe::cuda_hooks {

/// The launches of a thread that the planner has left on one GPU because they are short. As long as the planner's
/// number of changes is the same, it would decide about an equal launch in the same way, so hpe does not ask it. Each
/// thread has an object of its own.
class short_launches {
 public:
  /// Returns whether an equal launch was added after the latest of the planner's changes.
  [[nodiscard]] bool contains(const spread::kernel_model& kernel, const spread::launch& launch, std::uint64_t changes) {
    latest_.clear();
    kernel.append_key(latest_, launch);
    const known_launch& found = place_of_latest();
    return found.changes == changes && found.key == latest_;
  }
  /// Adds the launch of the latest call of contains(). Replaces another launch if there is no room.
  void add_latest(std::uint64_t changes) {
    known_launch& place = place_of_latest();
    place.key = latest_;
    place.changes = changes;
  }

 private:
  struct known_launch {
    std::string key;
    std::uint64_t changes = 0;
  };
  [[nodiscard]] known_launch& place_of_latest() {
    return known_[std::hash<std::string_view>()(latest_) % known_.size()];
  }

  std::string latest_;
  std::array<known_launch, 64> known_;
};

}  // namespace hpe::cuda_hooks
