// Devices and streams come with the start of hpe; what programs register before main needs neither.

#include "interpose/cudart/context.h"

#include "interpose/cudart/capture.h"
#include "interpose/cudart/device_table.h"
#include "interpose/cudart/event.h"
#include "interpose/cudart/graph.h"
#include "interpose/cudart/graph_exec.h"
#include "interpose/cudart/module_table.h"
#include "interpose/cudart/stream_table.h"
#include "interpose/cudart/thread_state.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"

namespace hpe::cudart {

struct context::started {
  device_table devices;
  stream_table streams{devices.count()};
  event_table events;
  capture_table captures;
  graph_table graphs;
  exec_table execs;
};

context::context() : modules_(std::make_unique<module_table>()) {}
context::~context() = default;

context::started& context::start() {
  std::call_once(start_, [this] {
    set_log_level(parse_log_level(options::from_environment().log));
    started_ = std::make_unique<started>();
  });
  return *started_;
}

device_table& context::devices() { return start().devices; }
stream_table& context::streams() { return start().streams; }
event_table& context::events() { return start().events; }
capture_table& context::captures() { return start().captures; }
graph_table& context::graphs() { return start().graphs; }
exec_table& context::execs() { return start().execs; }

std::shared_ptr<stream> context::find_stream(cudaStream_t handle) {
  const thread_state& thread = this_thread();
  const auto zero = thread.default_stream_is_own ? default_stream::per_thread : default_stream::legacy;
  auto found = streams().find(handle, thread.device, zero);
  require(found != nullptr, cudaErrorInvalidResourceHandle);
  return found;
}

int context::current_device() {
  start();
  return this_thread().device;
}

context& process() {
  static auto* const only = new context;  // never destroyed
  return *only;
}

}  // namespace hpe::cudart
