// The device and stream tables are constructed when hpe starts, after the program's registrations, which run before
// main. A child process made by fork cannot use these tables, because the threads of the streams exist only in the
// parent process.

#include "interpose/soft/cudart/device/context.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>

#include "hpe/announce.h"
#include "interpose/soft/cudart/check/checking.h"
#include "interpose/soft/cudart/device/announced_uses.h"
#include "interpose/soft/cudart/device/device_table.h"
#include "interpose/soft/cudart/device/thread_state.h"
#include "interpose/soft/cudart/graph/graph.h"
#include "interpose/soft/cudart/graph/graph_condition.h"
#include "interpose/soft/cudart/graph/graph_exec.h"
#include "interpose/soft/cudart/graph/graph_memory_table.h"
#include "interpose/soft/cudart/graph/user_object.h"
#include "interpose/soft/cudart/memory/array.h"
#include "interpose/soft/cudart/memory/ipc.h"
#include "interpose/soft/cudart/memory/pool_table.h"
#include "interpose/soft/cudart/memory/texture_table.h"
#include "interpose/soft/cudart/module/module_table.h"
#include "interpose/soft/cudart/stream/capture.h"
#include "interpose/soft/cudart/stream/event.h"
#include "interpose/soft/cudart/stream/stream_table.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"

namespace hpe::cudart {

namespace {

std::atomic<bool> is_child{false};  // whether this process is a child, made by fork, of a process that had started hpe

bool scope_is_arguments() { return options::from_environment().scope == kernel_scope::args; }

// To be called before hpe starts. Switches oversubscription off, because CUDA programs expect cudaMalloc to fail when a
// device is full. Has no effect if the user has set the option (hpe run --oversubscribe). Returns false if the
// environment cannot be changed.
bool let_full_devices_refuse() {
  if (options::from_environment().oversubscribe != oversubscription::automatic) return true;
  return ::setenv("HPE_OVERSUBSCRIBE", "off", 1) == 0;  // NOLINT(concurrency-mt-unsafe): hpe reads it next
}

}  // namespace

struct context::started {
  explicit started(memory_table& memory)
      : streams(devices.count(),
                [this, &memory](const task_memory_uses& uses) { return announce_to_hpe(devices, memory, uses); }),
        conditions(memory),
        pools(memory, devices.count()),
        graph_memory(memory),
        arrays(memory),
        mipmaps(arrays),
        textures(memory),
        surfaces(memory),
        ipc(memory) {}

  bool is_prepared = let_full_devices_refuse();
  bool arguments_tell = scope_is_arguments();
  device_table devices;
  stream_table streams;
  event_table events;
  capture_table captures;
  condition_table conditions;  // constructed before `graphs`, which refer to conditions
  graph_table graphs;
  exec_table execs;
  pool_table pools;
  graph_memory_table graph_memory;
  array_table arrays;
  mipmap_table mipmaps;
  texture_table textures;
  texture_table surfaces;
  user_object_table user_objects;
  ipc_table ipc;
};

namespace {

/// Frees memory that was removed from the table, except variables of modules, mapped memory and registered memory.
/// Ignores errors, because the program no longer uses the memory.
void release(const cudart_allocation& gone) {
  const bool is_variable = gone.kind == allocation_kind::variable || gone.kind == allocation_kind::managed_variable;
  if (!is_variable && gone.kind != allocation_kind::mapped && gone.kind != allocation_kind::registered)
    ::hpeFreeFinished(gone.base);
}

}  // namespace

context::context() : modules_(std::make_unique<module_table>()) {}
context::~context() = default;

context::started& context::start() {
  std::call_once(start_, [this] {
    try {
      const options chosen = options::valid_in_environment();
      set_log_level(chosen.log);
      if (chosen.check) start_checking(chosen);
      started_ = std::make_unique<started>(memory_);
      ::pthread_atfork(nullptr, nullptr, [] { is_child = true; });
      is_started_ = true;
    } catch (const std::exception& caught) {
      if (!has_failed_.exchange(true)) log(log_level::error, "CUDA on soft devices cannot start: {}", caught.what());
      throw;
    }
  });
  require(!is_child, cudaErrorInitializationError);
  return *started_;
}

device_table& context::devices() { return start().devices; }
stream_table& context::streams() { return start().streams; }
event_table& context::events() { return start().events; }
capture_table& context::captures() { return start().captures; }
graph_table& context::graphs() { return start().graphs; }
exec_table& context::execs() { return start().execs; }
condition_table& context::conditions() { return start().conditions; }
pool_table& context::pools() { return start().pools; }
graph_memory_table& context::graph_memory() { return start().graph_memory; }
array_table& context::arrays() { return start().arrays; }
mipmap_table& context::mipmaps() { return start().mipmaps; }
texture_table& context::textures() { return start().textures; }
texture_table& context::surfaces() { return start().surfaces; }
user_object_table& context::user_objects() { return start().user_objects; }
ipc_table& context::ipc() { return start().ipc; }

std::shared_ptr<cudart_stream> context::find_stream(cudaStream_t handle) {
  thread_state& thread = this_thread();
  thread.uses_device = true;
  const auto zero = thread.default_stream_is_own ? default_stream::per_thread : default_stream::legacy;
  auto found = streams().find(handle, thread.device, zero);
  require(found != nullptr, cudaErrorInvalidResourceHandle);
  return found;
}

int context::current_device() {
  start();
  this_thread().uses_device = true;
  return this_thread().device;
}

std::vector<hpeAccess> context::accesses(int device) {
  const device_table& table = devices();
  return memory_.accesses([&](const cudart_allocation& each) {
    if (each.kind == allocation_kind::registered) return false;
    if (each.kind == allocation_kind::mapped) return (each.flags >> device & 1U) != 0;
    if (each.kind == allocation_kind::pool) return each.device == device || (each.flags >> device & 1U) != 0;
    return !each.is_on_device() || each.is_managed() || each.device == device ||
           table.peer_enabled(device, each.device);
  });
}

task_memory_uses context::kernel_uses(int device, std::span<const std::byte> arguments) {
  const bool arguments_tell = start().arguments_tell;
  task_memory_uses uses;
  if (arguments_tell)
    uses.ranges = memory_.accesses(
        [&](const cudart_allocation& each) { return each.kind == allocation_kind::variable && each.device == device; });
  else
    uses.kernels_on = std::uint64_t{1} << device;
  if (checker() != nullptr)
    for (const hpeAccess& each :
         memory_.accesses([](const cudart_allocation& each) { return each.kind == allocation_kind::managed_variable; }))
      uses.ranges.push_back(each);
  // Steps of 4 bytes also find addresses in packed structures.
  for (std::size_t at = 0; at + sizeof(void*) <= arguments.size(); at += sizeof(std::uint32_t)) {
    void* address = nullptr;
    std::memcpy(&address, arguments.data() + at, sizeof address);
    const auto listed = memory_.find(address);
    // The checker must know which memory of the host the kernel may use.
    const bool is_checked = checker() != nullptr && listed && (listed->is_managed() || !listed->is_on_device());
    if (!arguments_tell && listed && !is_checked) continue;
    const auto found = memory_.find_also_of_hpe(address);
    if (found) uses.ranges.push_back({found->device_base, found->size, HPE_INOUT});
  }
  return uses;
}

void context::finish_work() {
  if (!is_started_ || is_child) return;
  for (int device = 0; device < devices().count(); ++device) streams().of_device(device).synchronize();
}

void context::finish_work_untold() {
  if (!is_started_ || is_child) return;
  for (int device = 0; device < devices().count(); ++device) streams().of_device(device).finish();
}

void context::reset(int device) {
  finish_work();
  streams().reset(device);
  events().reset(device);
  for (const cudart_allocation& each : memory_.remove_all(device)) {
    ipc().forget(each.base);
    release(each);
  }
  ipc().drop_closed();
  pools().reset(device);
  mipmaps().reset(device);
  arrays().reset(device);
  textures().reset(device);
  surfaces().reset(device);
  devices().reset(device);
  if (memory_.is_empty()) modules_->unload_all();
  fault_.clear();
}

context& process() {
  static auto* const only = new context;  // never destroyed
  return *only;
}

}  // namespace hpe::cudart
