#include "runtime/device/soft/shared/control.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/os/socket_message.h"

namespace hpe::device::soft {

namespace {

template <class T>
std::span<const std::byte> bytes_of(const T& message) {
  return std::as_bytes(std::span(&message, 1));
}

template <class T>
std::span<std::byte> bytes_of(T& message) {
  return std::as_writable_bytes(std::span(&message, 1));
}

}  // namespace

void control_request::set_text(const std::string& value) {
  HPE_REQUIRE(value.size() < sizeof text, HPE_ERROR_INVALID_ARGUMENT,
              "a name of {} characters is too long; at most {} are possible", value.size(), sizeof text - 1);
  std::memcpy(text, value.c_str(), value.size() + 1);
}

void reply::fail(hpeStatus with, const char* why) noexcept {
  status = with;
  const std::size_t length = std::min(std::strlen(why), sizeof text - 1);
  std::memcpy(text, why, length);
  text[length] = '\0';
}

bool send_request(int socket, const control_request& what, std::span<const int> descriptors) {
  return os::send_message(socket, bytes_of(what), descriptors);
}

bool receive_request(int socket, control_request& what, std::vector<os::file_descriptor>& descriptors) {
  return os::receive_message(socket, bytes_of(what), descriptors) == sizeof what;
}

bool send_reply(int socket, const reply& what) { return os::send_message(socket, bytes_of(what)); }

bool receive_reply(int socket, reply& what) { return os::receive_message(socket, bytes_of(what)) == sizeof what; }

}  // namespace hpe::device::soft
