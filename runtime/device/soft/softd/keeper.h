#pragma once

/// The parent of a device's process.

namespace hpe::device::soft {

/// Forks and returns in the child, which becomes the device, with its control socket at control_descriptor. The parent
/// becomes the keeper: it reports the device to the owner, kills it when the owner has ended or closed the keeper's
/// socket, reports how the device ended, and ends. A device whose keeper is killed is killed, too. The keeper
/// overwrites `number`, the argument that shows the device's number in lists of processes.
void start_below_keeper(char* number);

}  // namespace hpe::device::soft
