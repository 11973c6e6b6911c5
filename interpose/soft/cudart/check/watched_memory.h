#pragma once

/// Sees CPU code that touches memory of the host which queued work may use: pinned memory, registered memory and
/// managed memory. From the call that queues the work until CPU code has waited for it, the pages of the memory are
/// protected: of memory that the work only reads, against writes; otherwise against all accesses. A touch is recorded,
/// the thread makes the access, and the page is protected again. The checker finds out which touches conflict with
/// which work.

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "interpose/soft/cudart/memory/memory_table.h"
#include "interpose/soft/cudart/stream/checked_work.h"

namespace hpe::cudart {

/// Starts to watch pages. Call this once, before watch().
void start_watching();

/// Watches the memory of the host that the work uses. Kernels use the memory to which their arguments point.
void watch(const task_memory_uses& uses, const check::past_ptr& work);

/// Watches a buffer of a call of MPI, in ordinary memory only the pages that the buffer covers. The calling thread must
/// be in a function of MPI. Ceases to watch the buffer for device work with which the call conflicts: the checker
/// compares the work with the call.
void watch_message(const void* begin, std::size_t bytes, bool is_written, const check::past_ptr& work);
/// Returns the first and the last address of the pages that a range covers completely; twice `end` if there are none.
[[nodiscard]] std::pair<const std::byte*, const std::byte*> pages_within(const std::byte* begin, const std::byte* end);
/// While a thread is in a function of MPI, which may access the buffers of all calls, the buffers are not watched.
void enter_messages() noexcept;
void leave_messages() noexcept;

/// Ceases to watch memory for whose work CPU code has waited. also_unfinished: all memory, because the program ends.
void end_watches(bool also_unfinished);

/// Returns what CPU code has touched since the last call.
[[nodiscard]] std::vector<check::host_touch> take_touches();

/// To be called when memory is freed.
void forget_pages(const cudart_allocation& gone);

/// Returns the registered memory behind which hpe's memory at this address lies, if it does.
[[nodiscard]] std::optional<cudart_allocation> registered_behind(std::uint64_t address);

}  // namespace hpe::cudart
