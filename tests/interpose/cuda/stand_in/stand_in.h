#pragma once

/// The stand-in for the CUDA driver: a shared object with the driver's ABI, for programs that call it themselves. It
/// has two devices, whose memory is host memory that cannot be read at the devices' addresses. Copies, fills and
/// kernels run in a thread of their stream, a little after the call, in the order that CUDA guarantees and no other. A
/// context that is reset or released for the last time takes its memory, streams and events along: calls that name them
/// fail from then on. Kernels are functions of the test, or PTX of a module, which is interpreted. The stand-in counts
/// the calls.
///
/// It does not serve the CUDA runtime, which checks that the driver is NVIDIA's.

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace stand_in {

/// A kernel: a function that gets the launch's parameters, each of 8 bytes, and addresses of device memory as they are
/// in kernels. A CUfunction is a pointer to one of these.
struct kernel {
  void (*body)(const std::uint64_t* parameters);
  unsigned parameters;
};

/// Functions of the stand-in for tests, found by name in its shared object.
/// stand_in_count: calls of an entry so far; of "launches on 0" and "launches on 1", those of kernels on a device
using count_function = unsigned(const char* symbol);
using memory_function = void*(CUdeviceptr address);  ///< stand_in_memory: where a byte of device memory is
using pause_function = void(int paused);             ///< stand_in_pause: whether queued work waits
/// stand_in_meanwhile: runs run(argument) at the beginning of the next call of an entry, in the calling thread.
using meanwhile_function = void(const char* symbol, void (*run)(void*), void* argument);
using refuse_function = void(int refused);  ///< stand_in_refuse_peers: whether memory of others is opened
/// stand_in_fail: the call of an entry that comes after `passed` further ones returns `result` and does nothing. For
/// entries that use REFUSE() only.
using fail_function = void(const char* symbol, unsigned passed, CUresult result);
/// stand_in_limit_parameters: launches of kernels with more bytes of parameters fail for lack of resources; 0: none do
using limit_function = void(unsigned bytes);
/// stand_in_held: what the program and hpe hold now
struct held {
  std::size_t allocations = 0, pinned = 0, mapped_bytes = 0, streams = 0, events = 0;
};
using held_function = void(held& all);
/// stand_in_take: the time between any two events, which is none at first, because the work takes the time of the host
using take_function = void(float milliseconds);

}  // namespace stand_in
