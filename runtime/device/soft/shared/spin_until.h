#pragma once

#include <chrono>
#include <thread>

#include "runtime/os/futex.h"
#include "runtime/os/thread.h"

namespace hpe::device::soft {

/// Spins for at most 20 us, about as long as a short command takes on a device whose threads do not sleep. Returns true
/// as soon as holds() is true, and false after this time. On a single core, calls holds() only once.
template <class Condition>
bool spin_until(Condition holds) {
  constexpr std::chrono::microseconds patience{20};
  constexpr int checks_per_look_at_the_clock = 16;
  static const bool alone = os::usable_cores() == 1;
  if (holds()) return true;
  if (alone) return false;
  const auto end = std::chrono::steady_clock::now() + patience;
  do {
    for (int i = 0; i < checks_per_look_at_the_clock; ++i) {
      os::hardware::relax();
      if (holds()) return true;
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace hpe::device::soft
