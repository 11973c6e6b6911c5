#pragma once

/// Finds CPU code that touches pinned memory (cudaMallocHost) which a queued copy still uses. From the call that queues
/// the copy until CPU code has waited for it, the pages of the memory are protected: a source against writes, a
/// destination against all accesses. The first touch of a page is recorded, and the page is opened.

#include <cstddef>

#include "interpose/soft/cudart/stream/checked_work.h"

namespace hpe::cudart {

/// Starts to watch pages. Call this once, before watch().
void start_watching();

/// Watches a range until CPU code has waited for the work. `what` reads the range (a source) or writes it. Ranges that
/// do not begin in memory of cudaMallocHost are not watched.
void watch(const void* begin, std::size_t bytes, check::use how, const check::operation_run& what);

/// Reports the touches of ranges whose work CPU code has waited for, and ceases to watch these ranges. also_unfinished:
/// all ranges, because the program ends.
void end_watches(bool also_unfinished);

}  // namespace hpe::cudart
