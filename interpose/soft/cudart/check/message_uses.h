#pragma once

namespace hpe::cudart {

/// Lets the wrappers of MPI's functions tell the checker which buffers MPI uses. A call of MPI is an access by CPU
/// code; it lasts until CPU code has completed its request. Call this once.
void start_checking_messages();

}  // namespace hpe::cudart
