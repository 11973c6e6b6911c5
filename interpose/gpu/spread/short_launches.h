#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/spread/model/kernel_model.h"

namespace hpe::cuda_hooks {

/// The launches of a thread that the planner has left on one GPU because they are short. As long as the planner's
/// number of changes is the same, it would decide about an equal launch in the same way, so hpe does not ask it. Each
/// thread has an object of its own.
class short_launches {
 public:
  /// Returns the object of the calling thread; null if the thread's variables have been destroyed, in exit handlers.
  /// The object is not itself a variable of the thread, because programs may load libhpe.so later, when there is little
  /// thread-local storage left for it.
  [[nodiscard]] static short_launches* of_thread() {
    static thread_local bool has_ended = false;
    struct owner {
      const std::unique_ptr<short_launches> its = std::make_unique<short_launches>();
      ~owner() { has_ended = true; }
    };
    if (has_ended) return nullptr;
    static thread_local const owner all;
    return all.its.get();
  }

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
