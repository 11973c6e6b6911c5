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

/// Watches a buffer of a call of MPI, in ordinary memory only the pages that the buffer covers. The calling thread must
/// be in a function of MPI.
void watch_message(const void* begin, std::size_t bytes, bool is_written, const check::past_ptr& work);

/// To be called when memory is freed.
void forget_pages(const cudart_allocation& gone);

/// Returns the registered memory behind which hpe's memory at this address lies, if it does.
[[nodiscard]] std::optional<cudart_allocation> registered_behind(std::uint64_t address);

}  // namespace hpe::cudart
