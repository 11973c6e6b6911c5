#pragma once

namespace hpe::fault {

/// Whether `new` finds no memory in the calling thread.
extern thread_local bool memory_is_refused;

}  // namespace hpe::fault
