#pragma once

/// Descriptions of the program's calls, which the hooks pass to the kinds of memory that observe the program.

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace hpe::cuda_hooks {

/// A call that orders work, or that has waited for work. Streams are named as in device_call; a context that is null is
/// the current one.
struct order_step {
  enum class kind : std::uint8_t {
    recorded,            ///< `event` was recorded on `stream`
    event_ends,          ///< the program is about to destroy `event`
    event_is_shared,     ///< other processes may record `event`
    stream_waits,        ///< `stream` waits for `event`, or, if this is null, for something that hpe does not know
    waited_for_event,    ///< CPU code has waited for `event`
    waited_for_stream,   ///< CPU code has waited for `stream`
    waited_for_context,  ///< CPU code has waited for `context`
  };
  kind what{};
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUcontext context = nullptr;
};

/// Memory that the driver has allocated or registered for the program.
struct program_memory {
  enum class kind : std::uint8_t { device, managed, pinned, registered };
  kind what{};
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  CUstream stream = nullptr;  ///< allocated in the order of this stream; null: at once
};

/// A step in the life of a graph's instance.
struct instance_step {
  enum class kind : std::uint8_t {
    made,     ///< from `graph`, or changed to be like `graph`
    changed,  ///< a node got other parameters
    ends,     ///< the program is about to destroy it
  };
  kind what{};
  CUgraphExec instance = nullptr;
  CUgraph graph = nullptr;
};

/// Observes a function of the program that a thread of the driver runs in the order of a stream.
class host_function_watch {
 public:
  host_function_watch() = default;
  host_function_watch(const host_function_watch&) = delete;
  host_function_watch& operator=(const host_function_watch&) = delete;
  virtual ~host_function_watch() = default;
  virtual void begins() noexcept = 0;
  virtual void ends() noexcept = 0;
};

}  // namespace hpe::cuda_hooks
