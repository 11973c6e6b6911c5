#pragma once

#include <functional>
#include <thread>

namespace hpe::os {

/// Starts a thread of the runtime: all of them start here. It takes none of the program's signals, which are for the
/// program's threads; faults are not held up. The name, of at most 15 characters, is the one that debuggers and top
/// show. Throws HPE_ERROR_SYSTEM with the limits that matter if the system has no room for another thread.
[[nodiscard]] std::thread start_thread(const char* name, std::function<void()> run);

}  // namespace hpe::os
