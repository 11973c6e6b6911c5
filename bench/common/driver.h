#pragma once

/// Calls of the CUDA driver, as a program without hpe makes them.

#include <cuda.h>

#include <cstddef>

namespace hpe::bench {

/// Returns the driver's function of this versioned name.
[[nodiscard]] void* driver_entry(const char* name);
/// Ends the program with an error message unless the call succeeded.
void check(CUresult result, const char* what);

#define HPE_NAME_OF_EXPANDED(name) #name
#define HPE_NAME_OF(name) HPE_NAME_OF_EXPANDED(name)
/// Calls a function of the driver and checks its result.
#define CALL(name, ...)                                                                                            \
  do {                                                                                                             \
    static const auto function = reinterpret_cast<decltype(&::name)>(hpe::bench::driver_entry(HPE_NAME_OF(name))); \
    hpe::bench::check(function(__VA_ARGS__), #name);                                                               \
  } while (false)

/// Pinned host memory whose pages have been written once. The constructor needs a current context of the driver.
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
