// Functions of the driver that hpe does not implement.

#include <cuda.h>

#include <array>
#include <string>
#include <string_view>

#include "interpose/libcuda/call.h"
#include "interpose/libcuda/virtual_memory.h"

namespace hpe::libcuda {

namespace {

struct feature {
  std::string_view names;  // what the names of its functions begin with
  const char* sentence;
};

constexpr const char* green_contexts = "soft devices have no green contexts, which divide a GPU's multiprocessors";
constexpr const char* external = "soft devices have no external memory and semaphores";
constexpr const char* graphics = "soft devices have no graphics";

constexpr std::array features{
    feature{"cuGreenCtx", green_contexts},
    feature{"cuCtxFromGreenCtx", green_contexts},
    feature{"cuCtxGetDevResource", green_contexts},
    feature{"cuDevResource", green_contexts},
    feature{"cuDevSm", green_contexts},
    feature{"cuDeviceGetDevResource", green_contexts},
    feature{"cuStreamGetGreenCtx", green_contexts},
    feature{"cuStreamGetDevResource", green_contexts},
    feature{"cuTensorMap",
            "soft devices have no tensor maps, by which GPUs of compute capability 9.0 and later copy tiles"},
    feature{"cuMulticast", "soft devices have no multicast memory, which is a part of NVLink switches"},
    feature{"cuMemExportToShareableHandle", virtual_memory::not_shared},
    feature{"cuMemImportFromShareableHandle", virtual_memory::not_shared},
    feature{"cuMemGetHandleForAddressRange", virtual_memory::not_shared},
    feature{"cuImportExternal", external},
    feature{"cuExternalMemory", external},
    feature{"cuDestroyExternal", external},
    feature{"cuSignalExternal", external},
    feature{"cuWaitExternal", external},
    feature{"cuGraphics", graphics},
    feature{"cuGL", graphics},
    feature{"cuEGL", graphics},
    feature{"cuVDPAU", graphics},
    feature{"cuCoredump", "soft devices have no core dumps"},
    feature{"cuCheckpoint", "soft devices have no checkpoints of processes"},
    feature{"cuLogs", "soft devices have no logs of the driver; HPE_LOG=info tells of calls that fail"},
};

std::string reason(std::string_view function) {
  for (const feature& each : features)
    if (function.starts_with(each.names)) return each.sentence;
  return {};
}

}  // namespace

}  // namespace hpe::libcuda

/// Called by the weak definitions that generate.py makes, with the name of the function.
extern "C" CUresult hpe_libcuda_absent(const char* function) noexcept {
  return hpe::libcuda::call_always(
      function, [&] { throw hpe::cudart::failure(cudaErrorNotSupported, hpe::libcuda::reason(function)); });
}
