#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "runtime/base/interval_map.h"
#include "runtime/base/thread_safety.h"

namespace hpe::core {

/// The arrays that threads move to other homes. A call that concerns one of these arrays waits until its move has
/// ended; calls about other arrays go on. All functions are called with the owner's mutex locked.
class moving_arrays {
 public:
  void add(std::uint64_t address, std::uint64_t bytes) { all_[address] = bytes; }
  void remove(std::uint64_t address) noexcept {
    all_.erase(address);
    removed_.notify_all();
  }
  /// Waits until no array that contains one of the addresses is moving. Unlocks the mutex during the wait.
  void await(unique_lock& lock, std::span<const void* const> addresses) {
    removed_.wait(lock, [&] {
      return all_.empty() || std::ranges::none_of(addresses, [&](const void* p) {
               return find_containing(all_, reinterpret_cast<std::uint64_t>(p), std::identity{}) != all_.end();
             });
    });
  }

 private:
  std::map<std::uint64_t, std::uint64_t> all_;  // the sizes of the arrays, by address
  condition_variable removed_;
};

}  // namespace hpe::core
