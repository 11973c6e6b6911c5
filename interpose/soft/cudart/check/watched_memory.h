#pragma once

/// Tells the watch of CPU code (runtime/check/host_watch.h) which memory of the host work uses: pinned memory,
/// registered memory and managed memory.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "interpose/soft/cudart/memory/memory_table.h"
#include "interpose/soft/cudart/stream/checked_work.h"

namespace hpe::cudart {

/// Starts to watch pages. Call this once, before watch().
void start_watching();

/// Watches the memory of the host that the work uses. Kernels use the memory to which their arguments point.
void watch(const task_memory_uses& uses, const check::past_ptr& work);

/// Whether pages of this memory of CUDA can be watched, and the coherence protocol does not protect them.
[[nodiscard]] bool has_pages_of_host(const void* address);

/// To be called when memory is freed.
void forget_pages(const cudart_allocation& gone);

/// Returns the registered memory behind which hpe's memory at this address lies, if it does.
[[nodiscard]] std::optional<cudart_allocation> registered_behind(std::uint64_t address);

}  // namespace hpe::cudart
