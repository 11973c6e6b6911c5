#pragma once

#include <functional>
#include <thread>

namespace hpe::os {

/// Starts a thread. All threads of the runtime are started here. The thread takes none of the program's signals, but
/// its faults are handled. Debuggers and top show the name, of at most 15 characters. Throws HPE_ERROR_SYSTEM, with the
/// limits that matter, if the system has no room for another thread.
[[nodiscard]] std::thread start_thread(const char* name, std::function<void()> run);

}  // namespace hpe::os
