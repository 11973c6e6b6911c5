#pragma once

/// The interface between libhpe.so and the shim (lib/hpe/cuda/libcuda.so.1). A driver entry is a function that the CUDA
/// driver exports. The shim is a library of its own because the dynamic linker must find it by the name libcuda.so.1.

#include <cstddef>

extern "C" {

/// A hook: a function that programs call in place of a driver entry. Before the program can call the hook, the shim
/// stores the address of the driver's own function in *real, or nullptr if this driver does not have the entry.
struct hpe_cuda_hook {
  const char* symbol;  ///< the name under which the driver exports the entry
  void* function;
  void** real;
};

struct hpe_cuda_interposition {
  const hpe_cuda_hook* hooks;
  std::size_t count;
  /// The value of HPE_CUDA_DRIVER; if empty, the shim searches for the driver as the dynamic linker does.
  const char* driver;
  /// The shim calls this function each time the program has called cuInit with success, and returns its result from
  /// that call of cuInit.
  int (*started)();
  /// `warn` writes a line to hpe's log at level warn, `inform` at level info. Thread safe.
  void (*warn)(const char* sentence);
  void (*inform)(const char* sentence);
};

/// Returns a structure that does not change until the process ends. May be called before any constructor has run.
__attribute__((visibility("default"))) const hpe_cuda_interposition* hpe_cuda_interpose();

/// Defined in the shim. Returns the path of the driver that a program started in this environment would use; nullptr if
/// no driver is found. Does not load the driver. Thread safe; the first call searches for the file.
__attribute__((visibility("default"))) const char* hpe_cuda_driver_file();

/// Defined in the shim, for hpe's own calls of the driver. Returns the driver's own function with this name, not hpe's
/// hook; nullptr if the driver does not have the entry or no driver is found.
__attribute__((visibility("default"))) void* hpe_cuda_driver_entry(const char* name);
}
