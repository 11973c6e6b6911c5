#include "runtime/device/soft/control.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/device/soft/specification.h"

namespace hpe::device::soft {

namespace {

constexpr std::size_t most_descriptors = max_devices + 3;
constexpr std::size_t ancillary_size = CMSG_SPACE(most_descriptors * sizeof(int));

template <class Call>
ssize_t again_if_interrupted(Call call) {
  ssize_t result = 0;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

bool send_bytes(int socket, const void* data, std::size_t size) {
  return again_if_interrupted([&] { return ::send(socket, data, size, MSG_NOSIGNAL); }) == static_cast<ssize_t>(size);
}

}  // namespace

void request::set_text(const std::string& value) {
  HPE_REQUIRE(value.size() < sizeof text, HPE_ERROR_INVALID_ARGUMENT,
              "a name of {} characters is too long; {} are possible", value.size(), sizeof text - 1);
  std::memcpy(text, value.c_str(), value.size() + 1);
}

void reply::fail(hpeStatus with, const char* why) noexcept {
  status = with;
  const std::size_t length = std::min(std::strlen(why), sizeof text - 1);
  std::memcpy(text, why, length);
  text[length] = '\0';
}

bool send_request(int socket, const request& what, std::span<const int> descriptors) {
  HPE_INVARIANT(descriptors.size() <= most_descriptors);
  iovec data{const_cast<request*>(&what), sizeof what};
  msghdr message{};
  message.msg_iov = &data;
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
  if (sent == static_cast<ssize_t>(sizeof what)) return true;
  if (errno == EPIPE || errno == ECONNRESET) return false;
  throw_system_error("sending a request to a soft device");
}

bool receive_request(int socket, request& what, std::vector<os::file_descriptor>& descriptors) {
  iovec data{&what, sizeof what};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char ancillary[ancillary_size];
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  const ssize_t got = again_if_interrupted([&] { return ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC); });
  if (got != static_cast<ssize_t>(sizeof what)) return false;
  descriptors.clear();
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    int fds[most_descriptors];
    const std::size_t size = head->cmsg_len - CMSG_LEN(0);
    std::memcpy(fds, CMSG_DATA(head), size);
    for (std::size_t i = 0; i < size / sizeof(int); ++i) descriptors.emplace_back(fds[i]);
  }
  return true;
}

bool send_reply(int socket, const reply& what) { return send_bytes(socket, &what, sizeof what); }

bool receive_reply(int socket, reply& what) {
  return again_if_interrupted([&] { return ::recv(socket, &what, sizeof what, 0); }) ==
         static_cast<ssize_t>(sizeof what);
}

}  // namespace hpe::device::soft
