#pragma once

/// Finds CPU code that touches pinned memory (cudaMallocHost) which a queued copy still uses. From the call that queues
/// the copy until CPU code has waited for it, the pages of the memory are protected: a source against writes, a
/// destination against all accesses. The first touch of a page is recorded, and the page is opened.

#include <cstddef>
#include <utility>

#include "interpose/soft/cudart/stream/checked_work.h"

namespace hpe::cudart {

/// Starts to watch pages. Call this once, before watch().
void start_watching();

/// Watches a range until CPU code has waited for the work. `what` reads the range (a source) or writes it. Ranges that
/// do not begin in memory of cudaMallocHost are not watched.
void watch(const void* begin, std::size_t bytes, check::use how, const check::operation_run& what);

/// Watches a buffer of a call of MPI; in ordinary memory, only the pages that the buffer covers. MPI itself may access
/// the buffers of all calls while a thread is between open_message_pages() and close_message_pages().
void watch_message(const void* begin, std::size_t bytes, check::use how, const check::operation_run& what);
/// Returns the first and the last address of the pages that a range covers completely; twice `end` if there are none.
[[nodiscard]] std::pair<const std::byte*, const std::byte*> pages_within(const std::byte* begin, const std::byte* end);
void open_message_pages() noexcept;
void close_message_pages() noexcept;
/// Ceases to watch ranges for copies, without a report, if a call of MPI uses them in a way that is watched for: the
/// checker compares the copies with the call.
void forget_watches(const void* begin, std::size_t bytes, check::use how);

/// Reports the touches of ranges whose work CPU code has waited for, and ceases to watch these ranges. also_unfinished:
/// all ranges, because the program ends.
void end_watches(bool also_unfinished);

}  // namespace hpe::cudart
