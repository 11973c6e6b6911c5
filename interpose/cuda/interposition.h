#pragma once

/// The interface between libhpe.so and the shim (lib/hpe/cuda/libcuda.so.1): the driver entries that hpe hooks. The
/// shim is a separate library because its name must be libcuda.so.1; it contains no other part of hpe.

#include <cstddef>

extern "C" {

/// A function called in place of a driver entry. `real` is where the shim stores the driver's own function before any
/// program can call the hook; nullptr if this driver has no such entry.
struct hpe_cuda_hook {
  const char* symbol;  ///< the name that the driver exports
  void* function;
  void** real;
};

struct hpe_cuda_interposition {
  const hpe_cuda_hook* hooks;
  std::size_t count;
  const char* driver;  ///< the option HPE_CUDA_DRIVER; empty: search as the loader does
  /// The program has initialised the driver, perhaps not for the first time.
  void (*started)();
  /// Log a line at level warn or info. Thread safe.
  void (*warn)(const char* sentence);
  void (*inform)(const char* sentence);
};

/// Constant for the life of the process. May be called before any constructor.
__attribute__((visibility("default"))) const hpe_cuda_interposition* hpe_cuda_interpose();

/// In the shim: the driver file that a program started here would use; nullptr if there is none. Loads nothing. Not
/// thread safe.
__attribute__((visibility("default"))) const char* hpe_cuda_driver_file();

/// In the shim: the driver's own entry of this name, without any hook, for hpe's own calls; nullptr if there is none,
/// or no driver.
__attribute__((visibility("default"))) void* hpe_cuda_driver_entry(const char* name);
}
