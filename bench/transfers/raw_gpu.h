#pragma once

/// The GPU without hpe, as a program without it would use it: the driver's own copies, managed memory, and the kernels
/// of the tests.

#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

namespace hpe::bench {

inline constexpr std::size_t mebi = std::size_t{1} << 20;
inline constexpr std::size_t stream_bytes = 1024 * mebi;
inline constexpr std::size_t page = 4096;

/// An entry of the driver by its versioned name.
[[nodiscard]] void* driver_entry(const char* name);
/// Ends the program with a sentence unless the call succeeded.
void check(CUresult result, const char* what);

#define HPE_NAME_OF_EXPANDED(name) #name
#define HPE_NAME_OF(name) HPE_NAME_OF_EXPANDED(name)
/// Calls the driver.
#define CALL(name, ...)                                                                                            \
  do {                                                                                                             \
    static const auto function = reinterpret_cast<decltype(&::name)>(hpe::bench::driver_entry(HPE_NAME_OF(name))); \
    hpe::bench::check(function(__VA_ARGS__), #name);                                                               \
  } while (false)

[[nodiscard]] std::uint32_t fresh_seed();
[[nodiscard]] inline CUdeviceptr as_device(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

/// Pinned host memory, touched.
class pinned_buffer {
 public:
  explicit pinned_buffer(std::size_t bytes);
  ~pinned_buffer();
  pinned_buffer(const pinned_buffer&) = delete;
  pinned_buffer& operator=(const pinned_buffer&) = delete;
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

/// One GPU with a stream, and stream_bytes of its memory.
class raw_gpu {
 public:
  explicit raw_gpu(int number);

  /// Makes its context the calling thread's.
  void use() const;
  void finish() const;
  void up(CUdeviceptr to, const void* from, std::size_t bytes) const;
  void down(void* to, CUdeviceptr from, std::size_t bytes) const;
  /// Queues kernels: one that writes every element, one that does nothing.
  void fill(void* data, std::size_t bytes) const;
  void nothing() const;

  /// What a program writes by hand for pageable memory: two pinned buffers, one of them copied by the thread while the
  /// other is on the link. Waits.
  void up_by_hand(CUdeviceptr to, const std::byte* from, std::size_t bytes, const pinned_buffer& two_buffers) const;
  void down_by_hand(std::byte* to, CUdeviceptr from, std::size_t bytes, const pinned_buffer& two_buffers) const;
  static constexpr std::size_t by_hand_buffer = 4 * mebi;

  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  CUdevice device = 0;

 private:
  CUcontext context_ = nullptr;
  CUfunction fill_ = nullptr;
  CUfunction nothing_ = nullptr;
  CUevent copied_[2] = {};
};

}  // namespace hpe::bench
