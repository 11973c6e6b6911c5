#pragma once

/// Messages between the owner and a device. They are rare and synchronous (one request, then one reply) and use a
/// SOCK_SEQPACKET pair. Requests can carry file descriptors.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/device/ptx_module.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

/// The descriptor number of a keeper's socket to the owner, and of a device's end of the socket pair.
inline constexpr int control_descriptor = 3;

/// A message from a device's keeper to the owner. The first message names the device's process and carries a pidfd; the
/// second message says how that process ended.
struct keeper_report {
  std::int32_t pid = 0;
  std::int32_t code = 0;    // si_code
  std::int32_t status = 0;  // si_status
};

struct request {
  // The comment beside each kind names the members that its request uses, and the descriptors that it carries.
  enum class kind : std::uint32_t {
    join,             // id: fabric::stamp; descriptors: the fabric, the file for the output of kernels, the memory
                      // files of all devices
    map,              // device, address, bytes
    unmap,            // address, bytes
    register_host,    // address, bytes, offset; descriptor: the file
    unregister_host,  // address, bytes
    import_memory,    // address, bytes, offset; descriptor: the file
    drop_import,      // address, bytes
    load_module,      // id, text: path
    load_ptx,         // id, ptx_parts, bytes: size of the texts; descriptor: the texts
    unload_ptx,       // id
    find_kernel,      // id, module, text: name
    start_stream,     // id
    quit
  };

  kind what = kind::join;
  std::uint32_t number = 0;  // repeated in the reply
  std::uint32_t device = 0;
  std::uint32_t id = 0;
  std::uint32_t module = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::int64_t offset = 0;
  ptx_addresses ptx_parts{};
  char text[4096] = "";

  /// Throws HPE_ERROR_INVALID_ARGUMENT if the text is too long.
  void set_text(const std::string& value);
};

struct reply {
  std::uint32_t number = 0;
  hpeStatus status = HPE_SUCCESS;
  char text[1020] = "";  // the error message

  void fail(hpeStatus with, const char* why) noexcept;
};

/// Each function returns false if the other end no longer exists.
bool send_request(int socket, const request& what, std::span<const int> descriptors);
bool receive_request(int socket, request& what, std::vector<os::file_descriptor>& descriptors);
bool send_reply(int socket, const reply& what);
bool receive_reply(int socket, reply& what);

}  // namespace hpe::device::soft
