#pragma once

/// Messages between the owner (the process that runs the program) and a device process. The owner sends a request and
/// waits for the reply. Both use a pair of SOCK_SEQPACKET sockets. Requests can carry file descriptors.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/device/device_ptx_module.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

/// The descriptor number of two sockets: in a keeper, the keeper's socket to the owner; in a device process, the
/// device's control socket, also to the owner.
inline constexpr int control_descriptor = 3;

/// A message from a device's keeper to the owner. The first message contains the number of the device's process and
/// carries a pidfd. The second message contains the si_code and si_status with which that process ended.
struct keeper_report {
  std::int32_t pid = 0;
  std::int32_t code = 0;    // si_code
  std::int32_t status = 0;  // si_status
};

struct control_request {
  // The comment beside each kind lists the members that requests of this kind use, and the descriptors that they carry.
  enum class kind : std::uint32_t {
    join,             // id: fabric::stamp; descriptors: the fabric, the file for the output of kernels, the memory
                      // files of all devices and, if accesses are recorded, the file for them
    map,              // device, address, bytes, zero_copy
    move,             // device, address, bytes, zero_copy
    unmap,            // address, bytes
    register_host,    // address, bytes, offset; descriptor: the file
    unregister_host,  // address, bytes
    import_memory,    // address, bytes, offset; descriptor: the file
    drop_import,      // address, bytes
    load_module,      // id, text: path
    load_ptx,         // id, ptx_parts, ptx_reads, bytes: size of the texts; descriptor: the texts
    unload_ptx,       // id
    find_kernel,      // id, module, text: name
    start_stream,     // id
    quit
  };

  kind what = kind::join;
  std::uint32_t number = 0;  // the reply contains the same number
  std::uint32_t device = 0;
  std::uint32_t id = 0;
  std::uint32_t module = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::int64_t offset = 0;
  bool zero_copy = false;  // device::backing_kind::zero_copy
  ptx_addresses ptx_parts{};
  ptx_recording ptx_reads{};
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

/// Each function returns false if the process at the other end has closed its socket or has ended.
bool send_request(int socket, const control_request& what, std::span<const int> descriptors);
bool receive_request(int socket, control_request& what, std::vector<os::file_descriptor>& descriptors);
bool send_reply(int socket, const reply& what);
bool receive_reply(int socket, reply& what);

}  // namespace hpe::device::soft
