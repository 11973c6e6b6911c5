#pragma once

/// Sees CPU code that touches memory of the host which queued work may use: pinned memory, registered memory and
/// managed memory. From the call that queues the work until CPU code has waited for it, the pages of the memory are
/// protected: of memory that the work only reads, against writes; otherwise against all accesses. A touch is recorded,
/// the thread makes the access, and the page is protected again. The checker finds out which touches conflict with
/// which work.

#include <cstddef>
#include <optional>
#include <vector>

#include "interpose/soft/cudart/memory/memory_table.h"
#include "interpose/soft/cudart/stream/checked_work.h"

namespace hpe::cudart {

/// Starts to watch pages. Call this once, before watch().
void start_watching();

/// Watches the memory of the host that the work uses. Kernels use the memory to which their arguments point.
void watch(const task_memory_uses& uses, const check::past_ptr& work);

/// Ceases to watch memory for whose work CPU code has waited. also_unfinished: all memory, because the program ends.
void end_watches(bool also_unfinished);

/// Returns what CPU code has touched since the last call.
[[nodiscard]] std::vector<check::host_touch> take_touches();

/// To be called when memory is freed.
void forget_pages(const cudart_allocation& gone);

/// Returns the registered memory behind which hpe's memory at this address lies, if it does.
[[nodiscard]] std::optional<cudart_allocation> registered_behind(std::uint64_t address);

}  // namespace hpe::cudart
