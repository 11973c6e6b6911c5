#pragma once

#include <cstddef>

#include "runtime/fault/request_board.h"

namespace hpe::fault {

class service;

/// Makes this service resolve faults inside the UVAS (nullptr: none does); all other faults go to the program's own
/// action. Installs the signal handler on first use.
void handle_faults_with(service* to);

/// Offers faults outside the UVAS to this function, in the faulting thread's signal handler, before they go to the
/// program's own action. For memory that hpe did not allocate (interpose/cuda).
using other_faults = verdict (*)(std::byte* address, bool write) noexcept;
void handle_other_faults_with(other_faults resolve);

}  // namespace hpe::fault
