#pragma once

/// Direct calls of the CUDA driver, as in a program without hpe.

#include <cuda.h>

#include <cstddef>

namespace hpe::bench {

/// Returns the address of a function of the CUDA driver. name: the function's name with its version suffix, for example
/// cuMemAlloc_v2.
[[nodiscard]] void* driver_entry(const char* name);
/// If the call `what` failed, prints its name and the error code, and ends the program with status 1.
void check(CUresult result, const char* what);

#define HPE_NAME_OF_EXPANDED(name) #name
#define HPE_NAME_OF(name) HPE_NAME_OF_EXPANDED(name)
/// Calls a function of the CUDA driver; ends the program if the function returns an error.
#define CALL(name, ...)                                                                                            \
  do {                                                                                                             \
    static const auto function = reinterpret_cast<decltype(&::name)>(hpe::bench::driver_entry(HPE_NAME_OF(name))); \
    hpe::bench::check(function(__VA_ARGS__), #name);                                                               \
  } while (false)

/// Pinned host memory, all pages of which have been written once. The calling thread needs a current CUDA context.
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
