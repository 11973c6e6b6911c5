#pragma once

namespace hpe::fft {

/// The rates of copies between GPUs (link) and within a GPU (memory), in bytes per second (see `machine` in
/// fft_choice.h).
struct copy_rates {
  double link = 0;
  double memory = 0;
};

/// Returns the rates that the first call in a process measures. The machine must have two devices. The measurement
/// takes some milliseconds and uses 128 MiB of memory on device 0 and 64 MiB on device 1, or less if less is free. If
/// less than 2 MiB are free, the rates are 0 (not known). Thread-safe. Throws the errors of allocations and copies,
/// except for lack of memory.
[[nodiscard]] copy_rates measured_rates();

}  // namespace hpe::fft
