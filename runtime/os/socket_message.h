#pragma once

/// Messages between processes over a SOCK_SEQPACKET socket. A message can carry open file descriptors.

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/os/file_descriptor.h"

namespace hpe::os {

/// The largest number of file descriptors in one message; Linux allows 253.
inline constexpr std::size_t most_descriptors = 250;

/// Sends one message. Returns false if the other end no longer exists, if the socket's send timeout has passed, or if a
/// non-blocking socket's buffer is full. Throws HPE_ERROR_SYSTEM for other errors.
bool send_message(int socket, std::span<const std::byte> data, std::span<const int> descriptors = {});

/// Waits for a message and returns its size, which is at most data.size(). Returns 0 if the other end no longer exists,
/// if the socket's receive timeout has passed, if the message is too large, or if the system has had no memory for the
/// message for a second. `descriptors` receives the files that were sent with the message. Throws std::bad_alloc before
/// it removes the message from the socket.
std::size_t receive_message(int socket, std::span<std::byte> data, std::vector<file_descriptor>& descriptors);
/// Receives a message and closes the files that were sent with the message. Allocates no memory.
std::size_t receive_message(int socket, std::span<std::byte> data);

}  // namespace hpe::os
