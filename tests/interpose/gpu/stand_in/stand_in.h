#pragma once

/// The stand-in for the CUDA driver: a shared object with the driver's ABI, for programs that call the driver directly.
/// It has two devices; their memory is host memory, which CPU code cannot read at the device addresses. Each stream has
/// a thread, which runs copies, fills and kernels some time after the call, only in the order that CUDA guarantees.
/// When a context is reset or released for the last time, its memory, streams and events end, and calls with their
/// handles fail. Kernels are functions of the test, or kernels of modules, whose PTX the stand-in interprets. The
/// stand-in counts the calls.
///
/// The stand-in does not work with the CUDA runtime, which checks that the driver is NVIDIA's.

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace stand_in {

/// A kernel: a function that gets the launch's parameters, each of 8 bytes. Addresses among the parameters are device
/// addresses. A CUfunction is a pointer to an object of this type.
struct kernel {
  void (*body)(const std::uint64_t* parameters);
  unsigned parameters;
};

/// The types of the stand-in's functions for tests. A test finds these functions by name in the shared object. An entry
/// is a function of the driver. stand_in_count: returns the number of calls of an entry so far; for the names "launches
/// on 0" and "launches on 1", the number of kernels that were launched on device 0 or 1; for the name "contexts of 1",
/// how often the primary context of device 1 was made.
using count_function = unsigned(const char* symbol);
using memory_function = void*(CUdeviceptr address);  ///< stand_in_memory: returns where the stand-in has a byte
using pause_function = void(int paused);             ///< stand_in_pause: sets whether queued work has to wait
/// stand_in_meanwhile: makes the next call of an entry begin with run(argument), in the thread that calls the entry.
using meanwhile_function = void(const char* symbol, void (*run)(void*), void* argument);
using refuse_function = void(int refused);  ///< stand_in_refuse_peers: whether IPC handles are refused
/// stand_in_fail: makes one call of an entry return `result` without doing anything, after `passed` more calls that
/// succeed. Only for entries that use REFUSE().
using fail_function = void(const char* symbol, unsigned passed, CUresult result);
/// stand_in_fail_always: makes all later calls of an entry return `result`; CUDA_SUCCESS makes the entry work again.
using fail_always_function = void(const char* symbol, CUresult result);
/// stand_in_limit_parameters: makes launches of kernels with more bytes of parameters fail for lack of resources; 0: no
/// limit.
using limit_function = void(unsigned bytes);
/// stand_in_held: returns how many objects and bytes the program and hpe have now.
struct held {
  std::size_t allocations = 0, pinned = 0, mapped_bytes = 0, streams = 0, events = 0;
};
using held_function = void(held& all);
/// stand_in_take: sets the time between any two events. It is 0 at first: the stand-in does not measure its work, which
/// runs at the speed of the host.
using take_function = void(float milliseconds);

}  // namespace stand_in
