#pragma once

namespace hpe::fft {

/// What copies between and within GPUs reach, in bytes per second (see machine in choice.h).
struct copy_rates {
  double link = 0;
  double memory = 0;
};

/// Measured by the first call in a process, in some milliseconds and 128 MiB of memory on each of the first two
/// devices, or less where they have less room; 0 (not known) where they have not even 2 MiB. Thread-safe. Throws what
/// allocations and copies throw, except for lack of memory.
[[nodiscard]] copy_rates measured_rates();

}  // namespace hpe::fft
