#pragma once

/// The CUDA driver as a program without hpe calls it.

#include <cuda.h>

#include <cstddef>

namespace hpe::bench {

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

/// Pinned host memory, touched. Made with a context of the driver current.
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

}  // namespace hpe::bench
