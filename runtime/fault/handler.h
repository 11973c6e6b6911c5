#pragma once

#include <cstddef>

#include "runtime/fault/request_board.h"

namespace hpe::fault {

class service;

/// Where a page fault goes: from now on, faults inside the UVAS are resolved by this service (nullptr: by nobody), all
/// others go to the program's own action. Installs the signal handler on first use.
void handle_faults_with(service* to);

/// Faults outside the UVAS are offered to this function, in the faulting thread's signal handler, before they go to the
/// program's own action. For memory that the program got elsewhere (interpose/cuda).
using other_faults = verdict (*)(std::byte* address, bool write) noexcept;
void handle_other_faults_with(other_faults resolve);

}  // namespace hpe::fault
