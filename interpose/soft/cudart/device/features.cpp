#include "interpose/soft/cudart/device/features.h"

#include <array>

namespace hpe::cudart {

namespace {

struct feature {
  std::string_view names;  // the prefix of the names of the feature's functions, after "cu" or "cuda"
  const char* sentence;
};

constexpr const char* green_contexts = "soft devices have no green contexts, which divide a GPU's multiprocessors";
constexpr const char* external = "soft devices have no external memory or external semaphores";
constexpr const char* graphics = "soft devices have no graphics (OpenGL, Direct3D, EGL, VDPAU)";
constexpr const char* sparse = "soft devices have no sparse arrays";

constexpr std::array features{
    feature{"GreenCtx", green_contexts},
    feature{"CtxFromGreenCtx", green_contexts},
    feature{"CtxGetDevResource", green_contexts},
    feature{"DevResource", green_contexts},
    feature{"DevSm", green_contexts},
    feature{"DeviceGetDevResource", green_contexts},
    feature{"StreamGetGreenCtx", green_contexts},
    feature{"StreamGetDevResource", green_contexts},
    feature{"TensorMap",
            "soft devices have no tensor maps, by which GPUs of compute capability 9.0 and later copy tiles"},
    feature{"Multicast", "soft devices have no multicast memory, which is a part of NVLink switches"},
    feature{"MemGetHandleForAddressRange",
            "soft devices have no dma-buf handles, by which other drivers use a GPU's memory"},
    feature{"ImportExternal", external},
    feature{"ExternalMemory", external},
    feature{"DestroyExternal", external},
    feature{"SignalExternal", external},
    feature{"WaitExternal", external},
    feature{"Graphics", graphics},
    feature{"GL", graphics},
    feature{"EGL", graphics},
    feature{"VDPAU", graphics},
    feature{"ArrayGetSparseProperties", sparse},
    feature{"MipmappedArrayGetSparseProperties", sparse},
    feature{"MemMapArrayAsync", sparse},
    feature{"Coredump", "soft devices have no core dumps"},
    feature{"Checkpoint", "soft devices cannot checkpoint processes"},
    feature{"Logs", "soft devices have no driver logs; HPE_LOG=info logs each failed call"},
};

}  // namespace

std::string missing_feature(std::string_view function) {
  const std::size_t prefix = function.starts_with("cuda") ? 4 : 2;
  if (function.size() < prefix) return {};
  for (const feature& each : features)
    if (function.substr(prefix).starts_with(each.names)) return each.sentence;
  return {};
}

}  // namespace hpe::cudart
