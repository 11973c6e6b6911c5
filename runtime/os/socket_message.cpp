#include "runtime/os/socket_message.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "runtime/base/error.h"

namespace hpe::os {

namespace {

constexpr std::size_t ancillary_size = CMSG_SPACE(most_descriptors * sizeof(int));

template <class Call>
ssize_t again_if_interrupted(Call call) {
  ssize_t result = 0;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

// If the system has no memory to deliver a message, the message stays in the socket, so the call can be repeated.
template <class Call>
ssize_t again_while_memory_is_short(Call call) {
  constexpr int tries = 1000;
  constexpr std::chrono::milliseconds between_tries{1};
  for (int n = 1;; ++n) {
    const ssize_t result = again_if_interrupted(call);
    if (result >= 0 || n == tries || (errno != ENOMEM && errno != ENOBUFS)) return result;
    std::this_thread::sleep_for(between_tries);
  }
}

template <class Take>
std::size_t receive(int socket, std::span<std::byte> data, const Take& take) {
  iovec part{data.data(), data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char ancillary[ancillary_size];
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  const ssize_t got = again_while_memory_is_short([&] { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC); });
  if (got <= 0) return 0;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    int files[most_descriptors];
    const std::size_t size = head->cmsg_len - CMSG_LEN(0);
    std::memcpy(files, CMSG_DATA(head), size);
    for (std::size_t i = 0; i < size / sizeof(int); ++i) take(file_descriptor(files[i]));
  }
  const bool cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  return cut ? 0 : static_cast<std::size_t>(got);
}

}  // namespace

bool send_message(int socket, std::span<const std::byte> data, std::span<const int> descriptors) {
  HPE_INVARIANT(descriptors.size() <= most_descriptors);
  iovec part{const_cast<std::byte*>(data.data()), data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char ancillary[ancillary_size] = {};
  if (!descriptors.empty()) {
    message.msg_control = ancillary;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
  }
  const ssize_t sent = again_if_interrupted([&] { return ::sendmsg(socket, &message, MSG_NOSIGNAL); });
  if (sent == static_cast<ssize_t>(data.size())) return true;
  if (errno == EPIPE || errno == ECONNRESET || errno == EAGAIN) return false;
  throw_system_error("sendmsg to another process");
}

std::size_t receive_message(int socket, std::span<std::byte> data, std::vector<file_descriptor>& descriptors) {
  descriptors.clear();
  descriptors.reserve(most_descriptors);
  const std::size_t got =
      receive(socket, data, [&](file_descriptor&& file) { descriptors.push_back(std::move(file)); });
  if (got == 0) descriptors.clear();
  return got;
}

std::size_t receive_message(int socket, std::span<std::byte> data) {
  return receive(socket, data, [](file_descriptor&& /*closed*/) {});
}

}  // namespace hpe::os
