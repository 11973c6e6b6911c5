#pragma once

/// The questions that importing processes ask an exporting one, each process over its own connection and one at a time.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/node/export_table.h"
#include "runtime/node/handle.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::node {

/// The bytes of a file that back a part of a memory. The file is borrowed.
struct memory_part {
  int file = -1;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// An allocation as other processes see it.
struct memory_description {
  bool host = false;  ///< host memory, which every process can map
  std::vector<memory_part> parts;
};

/// The most parts that an answer can describe; for more, exporting gives HPE_ERROR_NOT_SUPPORTED.
inline constexpr std::size_t most_parts = 4096;

struct question {
  enum class kind : std::uint32_t {
    table,     // the answer has the export table and a pidfd of the exporter
    describe,  // of the export `which`; the answer has its memory
    open,      // like describe, and the memory stays until `close`, or the end of the connection
    close      // of `memory`; no answer
  };
  kind what = kind::table;
  std::uint32_t zero = 0;
  export_table::key which;
  std::uint64_t memory = 0;
};

/// A received answer, which owns its files.
struct answer {
  bool found = false;
  exported what;
  memory_description memory;
  std::vector<os::file_descriptor> files;
};

/// The abstract socket address of the process with this key. It is in no file system, so nothing of it is left over.
[[nodiscard]] std::string address_of(const process_key& key);

/// Whether the process at the other end belongs to the user of this one.
[[nodiscard]] bool same_user(int socket);

/// A pidfd of the process at the other end; empty if it has ended, or is in a container whose processes this one cannot
/// name. An open socket does not prove that the process lives, because children made by fork keep it open.
[[nodiscard]] os::file_descriptor process_at(int socket);
/// Whether the process of this pidfd has ended.
[[nodiscard]] bool has_ended(const os::file_descriptor& process);

/// Return false if the other end is gone.
bool send_question(int socket, const question& what);
bool receive_question(int socket, question& what);

/// Answers to `table`, with the table and a pidfd of the sender, and to other questions, with the files of the parts.
bool send_table(int socket, int table, int process);
bool send_memory(int socket, const exported& what, const memory_description& memory);
bool send_nothing(int socket);
bool receive_answer(int socket, answer& result);

}  // namespace hpe::node
