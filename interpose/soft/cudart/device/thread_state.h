#pragma once

/// The state that the CUDA runtime and the driver keep for each thread of the program.

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <vector>

namespace hpe::cudart {

/// The launch configuration <<<...>>>. __cudaPushCallConfiguration stores it, and the kernel's stub fetches it.
struct call_configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

struct thread_state {
  cudaError_t last_error = cudaSuccess;
  const char* call = nullptr;  // the CUDA function of the program's call in progress, or null
  int device = 0;
  bool uses_device = false;  // runtime calls have used `device` since a driver function last read this flag
  bool default_stream_is_own =
      false;  // true in a function whose name ends with _ptsz or _ptds: stream 0 is the thread's default stream
  std::vector<call_configuration> configurations;
};

/// Returns the calling thread's state.
[[nodiscard]] thread_state& this_thread() noexcept;

/// While the object exists, thread_state::call is `name`, unless the thread was already in another function.
class call_scope {
 public:
  explicit call_scope(const char* name) noexcept : is_outermost_(this_thread().call == nullptr) {
    if (is_outermost_) this_thread().call = name;
  }
  ~call_scope() {
    if (is_outermost_) this_thread().call = nullptr;
  }
  call_scope(const call_scope&) = delete;
  call_scope& operator=(const call_scope&) = delete;

 private:
  bool is_outermost_;
};

/// While the object exists, stream 0 means the calling thread's own default stream, as in programs compiled with
/// --default-stream per-thread.
class own_default_stream {
 public:
  own_default_stream() noexcept : before_(this_thread().default_stream_is_own) {
    this_thread().default_stream_is_own = true;
  }
  ~own_default_stream() { this_thread().default_stream_is_own = before_; }
  own_default_stream(const own_default_stream&) = delete;
  own_default_stream& operator=(const own_default_stream&) = delete;

 private:
  bool before_;
};

}  // namespace hpe::cudart
