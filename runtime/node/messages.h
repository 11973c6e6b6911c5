#pragma once

/// What importing processes ask an exporting one. Each asks over a connection of its own, one question at a time.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/node/export_table.h"
#include "runtime/node/handle.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::node {

/// What backs a memory, part by part. Files are borrowed.
struct memory_part {
  int file = -1;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// An allocation as other processes see it.
struct memory_description {
  bool host = false;  ///< memory of the host, which every process can map
  std::vector<memory_part> parts;
};

/// Parts that can be told; more are HPE_ERROR_NOT_SUPPORTED.
inline constexpr std::size_t most_parts = 4096;

struct question {
  enum class kind : std::uint32_t {
    table,     // the answer carries the export table and the process
    describe,  // which; the answer carries the memory
    open,      // the same, and the memory stays until `close`, or the end of the connection
    close      // memory; no answer
  };
  kind what = kind::table;
  std::uint32_t zero = 0;
  export_table::key which;
  std::uint64_t memory = 0;
};

/// An answer as it was received: it owns the files.
struct answer {
  bool found = false;
  exported what;
  memory_description memory;
  std::vector<os::file_descriptor> files;
};

/// The address that the process with this key listens at. It is in no file system, so nothing of it is left.
[[nodiscard]] std::string address_of(const process_key& key);

/// The process at the other end belongs to the user of this one.
[[nodiscard]] bool same_user(int socket);

/// The process at the other end, as pidfd_open gives it; empty if it has ended, or is in a container whose processes
/// this one cannot name. Its socket proves nothing: children made by fork keep that open.
[[nodiscard]] os::file_descriptor process_at(int socket);
/// process: as pidfd_open gives it.
[[nodiscard]] bool has_ended(const os::file_descriptor& process);

/// False when the other end is gone.
bool send_question(int socket, const question& what);
bool receive_question(int socket, question& what);

/// For `table`: the answer's files are the table and the sender's pidfd. For a memory: the parts' files travel with it.
bool send_table(int socket, int table, int process);
bool send_memory(int socket, const exported& what, const memory_description& memory);
bool send_nothing(int socket);
bool receive_answer(int socket, answer& result);

}  // namespace hpe::node
