// The table of hooks: the shim calls these functions in place of the driver's entries.
#include <string>

#include "interpose/gpu/calls/host_calls.h"
#include "interpose/gpu/check/checked_program.h"
#include "interpose/gpu/hooks/context_hooks.h"
#include "interpose/gpu/hooks/copy_hooks.h"
#include "interpose/gpu/hooks/graph_hooks.h"
#include "interpose/gpu/hooks/guarded.h"
#include "interpose/gpu/hooks/launch_hooks.h"
#include "interpose/gpu/hooks/shared_memory_hooks.h"
#include "interpose/gpu/hooks/wait_hooks.h"
#include "interpose/gpu/hooks/work_hooks.h"
#include "interpose/gpu/interposition.h"
#include "interpose/gpu/work/queuing_threads.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/trace/stalls.h"

namespace hpe::cuda_hooks {

constinit real_entries real;

namespace {

bool host_access = false;
std::uint64_t stall_after = 0;

int started() {
  try {
    trace::tell_of_stalls(stall_after);
    if (!host_access) return CUDA_SUCCESS;
    if (interposer* const hpe = interposer::instance()) hpe->serve_touches();
    return CUDA_SUCCESS;
  } catch (...) {
    return result_of_current_exception();
  }
}

const hpe_cuda_hook table[] = {
#define HPE_HOOK(symbol, declaration, function)                                                        \
  {#symbol, reinterpret_cast<void*>(&guarded<static_cast<decltype(&::declaration)>(&function)>::call), \
   reinterpret_cast<void**>(&real.symbol)},
#include "interpose/gpu/hooks/hooks.def"
#undef HPE_HOOK
};

}  // namespace

}  // namespace hpe::cuda_hooks

const hpe_cuda_interposition* hpe_cuda_interpose() {
  using namespace hpe;
  // Never destroyed, because a program may load the driver while it exits.
  static const auto& driver = *new const std::string([] {
    try {
      set_log_level(options::valid_in_environment().log);
      const options chosen = options::from_environment();
      cuda_hooks::host_access = chosen.cuda_host_access;
      cuda_hooks::register_memory_kinds();
      if (chosen.check) cuda_hooks::check_program(chosen);
      cuda_hooks::host_calls::messages_wait = chosen.mpi_waits;
      cuda_hooks::stall_after = chosen.stall_after;
      // Registers the process for membarrier before the driver is loaded, because most programs have a single thread at
      // this time: the operating system then registers the process at once, whereas with several threads this takes
      // milliseconds. The result is ignored, because serve_touches reports a failure.
      if (cuda_hooks::host_access) (void)cuda_hooks::queuing_threads::prepare();
      return chosen.cuda_driver;
    } catch (const error& e) {
      log(log_level::error, "{}", e.what());
      return options::valid_in_environment().cuda_driver;
    }
  }());
  static const hpe_cuda_interposition result{cuda_hooks::table,
                                             std::size(cuda_hooks::table),
                                             driver.c_str(),
                                             cuda_hooks::started,
                                             [](const char* sentence) { log(log_level::warn, "{}", sentence); },
                                             [](const char* sentence) { log(log_level::info, "{}", sentence); }};
  return &result;
}
