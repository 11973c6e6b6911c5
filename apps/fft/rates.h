#pragma once

namespace hpe::fft {

/// The rates of copies between GPUs (link) and within a GPU (memory), in bytes per second (see machine in choice.h).
struct copy_rates {
  double link = 0;
  double memory = 0;
};

/// Returns the rates that the first call in a process measures. The measurement takes some milliseconds and uses 128
/// MiB of memory on each of the first two devices, or less if less is free. If less than 2 MiB are free, the rates are
/// 0 (not known). Thread-safe. Throws the errors of allocations and copies, except for lack of memory.
[[nodiscard]] copy_rates measured_rates();

}  // namespace hpe::fft
