#pragma once

/// Messages between processes over a SOCK_SEQPACKET socket, with which open files travel.

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/os/file_descriptor.h"

namespace hpe::os {

/// Files that one message can carry; Linux allows 253.
inline constexpr std::size_t most_descriptors = 250;

/// Sends one message. False when the other end is gone, or, where the socket has a limit of time, does not take it.
/// Throws HPE_ERROR_SYSTEM.
bool send_message(int socket, std::span<const std::byte> data, std::span<const int> descriptors = {});

/// Waits for a message and gives its size, at most that of `data`; 0 when the other end is gone or the message does not
/// fit. descriptors is what came with it. If memory is too short for them, the message stays where it is.
std::size_t receive_message(int socket, std::span<std::byte> data, std::vector<file_descriptor>& descriptors);
/// The same for messages without files; takes no memory.
std::size_t receive_message(int socket, std::span<std::byte> data);

}  // namespace hpe::os
