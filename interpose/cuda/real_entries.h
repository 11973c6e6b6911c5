#pragma once

#include <cuda.h>

namespace hpe::cuda_hooks {

/// The driver's own functions behind the hooks. The shim writes them before it gives any hook out.
struct real_entries {
#define HPE_HOOK(symbol, declaration, function) decltype(&::declaration) symbol = nullptr;
#include "interpose/cuda/hooks.def"
#undef HPE_HOOK
};

extern constinit real_entries real;

}  // namespace hpe::cuda_hooks
