#pragma once

#include <cstddef>

#include "runtime/fault/request_board.h"

namespace hpe {
struct touch_watcher;
}

namespace hpe::fault {

class service;

/// Makes this service resolve faults inside the UVAS; nullptr: no service resolves them. All other faults are passed to
/// the program's own signal action. Installs the signal handler on first use.
void handle_faults_with(service* to);

/// Makes the signal handler call `resolve` in the faulting thread for faults outside the UVAS, before it passes them to
/// the program's own signal action. For memory that hpe did not allocate (interpose/gpu).
using other_faults = fault_verdict (*)(std::byte* address, bool write) noexcept;
void handle_other_faults_with(other_faults resolve);

/// Makes the signal handler show every fault to the watcher before it looks for a cause (HPE_CHECK). Call it once.
/// Returns whether the watcher may answer touch_answer::step.
bool show_touches_to(const touch_watcher* by);

}  // namespace hpe::fault
