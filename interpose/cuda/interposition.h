#pragma once

/// What libhpe.so tells the shim (lib/hpe/cuda/libcuda.so.1): which entries of the driver hpe takes part in. The shim
/// is a library of its own because its name must be libcuda.so.1; it has no other part of hpe in it.

#include <cstddef>

extern "C" {

/// A function that is called instead of an entry of the driver. `real` is where it finds the driver's own, written
/// before anybody can call the function; nullptr where this driver has no such entry.
struct hpe_cuda_hook {
  const char* symbol;  ///< as the driver exports it
  void* function;
  void** real;
};

struct hpe_cuda_interposition {
  const hpe_cuda_hook* hooks;
  std::size_t count;
  const char* driver;  ///< the option HPE_CUDA_DRIVER; empty: as the loader would find it
  /// The driver was started by the program, perhaps again.
  void (*started)();
  /// A line of the log. Any thread.
  void (*warn)(const char* sentence);
  void (*inform)(const char* sentence);
};

/// Constant for the life of the process. May be called before any constructor has run.
__attribute__((visibility("default"))) const hpe_cuda_interposition* hpe_cuda_interpose();

/// In the shim: the file of the driver that a program started here would get; nullptr if there is none. Loads nothing.
/// One thread.
__attribute__((visibility("default"))) const char* hpe_cuda_driver_file();

/// In the shim: the driver's own entry of this name, past all hooks; nullptr if it has none, or there is no driver.
/// hpe's own calls go there.
__attribute__((visibility("default"))) void* hpe_cuda_driver_entry(const char* name);
}
