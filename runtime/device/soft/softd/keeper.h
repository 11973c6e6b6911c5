#pragma once

/// The parent of a device's process.

namespace hpe::device::soft {

/// Divides the process in two and returns in the one that is to be the device, with its end of the conversation at
/// control_descriptor. The other one, the keeper, reports the device to the owner, kills it when the owner has ended or
/// closed the keeper's socket, reports how the device ended, and ends. A device whose keeper is killed is killed too.
/// The keeper overwrites `number`, the argument that tells the device's number in lists of processes.
void start_below_keeper(char* number);

}  // namespace hpe::device::soft
