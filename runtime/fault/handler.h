#pragma once

namespace hpe::fault {

class service;

/// Where a page fault goes: from now on, faults inside the UVAS are resolved by this service (nullptr: by nobody), all
/// others go to the program's own action. Installs the signal handler on first use.
void handle_faults_with(service* to);

}  // namespace hpe::fault
