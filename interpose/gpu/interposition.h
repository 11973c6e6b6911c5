#pragma once

/// The interface between libhpe.so and the shim (lib/hpe/cuda/libcuda.so.1): the list of driver entries that have
/// hooks. The shim is a separate library because its name must be libcuda.so.1; it contains nothing else of hpe.

#include <cstddef>

extern "C" {

/// A hook: a function that programs call in place of a driver entry. The shim stores the address of the driver's own
/// function in *real before any program can call the hook; it stores nullptr if this driver does not have the entry.
struct hpe_cuda_hook {
  const char* symbol;  ///< the name under which the driver exports the entry
  void* function;
  void** real;
};

struct hpe_cuda_interposition {
  const hpe_cuda_hook* hooks;
  std::size_t count;
  const char* driver;  ///< the option HPE_CUDA_DRIVER; empty: search for the driver as the dynamic linker does
  /// Called each time the program has initialised the driver. Returns the result for the program's call of cuInit.
  int (*started)();
  /// Write a line to the log at level warn (warn) or info (inform). Thread safe.
  void (*warn)(const char* sentence);
  void (*inform)(const char* sentence);
};

/// Returns a structure that stays constant until the process ends. May be called before any constructor has run.
__attribute__((visibility("default"))) const hpe_cuda_interposition* hpe_cuda_interpose();

/// Defined in the shim. Returns the file of the driver that a program would use if it was started in this environment;
/// nullptr if no driver is found. Does not load the file. Thread safe; the first call searches for the file.
__attribute__((visibility("default"))) const char* hpe_cuda_driver_file();

/// Defined in the shim, for hpe's own calls. Returns the driver's own entry with this name, not its hook; nullptr if
/// the driver does not have the entry or no driver is found.
__attribute__((visibility("default"))) void* hpe_cuda_driver_entry(const char* name);
}
