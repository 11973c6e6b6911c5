#pragma once

/// The questions that an importing process asks an exporting process. Each importing process has its own connection and
/// asks one question at a time.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/node/export_table.h"
#include "runtime/node/handle.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::node {

/// The bytes of a file that back a part of a memory. Does not own the file.
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

/// The largest number of parts that an answer can describe; an export with more parts fails with
/// HPE_ERROR_NOT_SUPPORTED.
inline constexpr std::size_t most_parts = 4096;

struct question {
  enum class kind : std::uint32_t {
    table,     // the answer contains the export table and a pidfd of the exporter
    describe,  // asks about the export `which`; the answer describes its memory
    open,      // like describe; the exporter also keeps the memory until `close`, or until the connection ends
    close      // closes the bytes `opened`; there is no answer
  };
  kind what = kind::table;
  std::uint32_t zero = 0;
  export_table::key which;
  exported opened;  // the opened bytes, as in the answer to `open`
};

/// A received answer, which owns its files.
struct answer {
  bool found = false;
  exported what;
  memory_description memory;
  std::vector<os::file_descriptor> files;
};

/// Returns the abstract socket address of the process with this key. The address is not in a file system, so no file
/// remains.
[[nodiscard]] std::string address_of(const process_key& key);

/// Whether the process at the other end belongs to the same user as this process.
[[nodiscard]] bool same_user(int socket);

/// Returns a pidfd of the process at the other end; empty if the process has ended, or has no process ID in this
/// container. An open socket does not prove that the process is alive, because children made by fork keep it open.
[[nodiscard]] os::file_descriptor process_at(int socket);
/// Whether the process of this pidfd has ended.
[[nodiscard]] bool has_ended(const os::file_descriptor& process);

/// Send or receive a question. Both functions return false if the other process has closed the connection or the
/// socket's timeout has passed. receive_question also returns false for a message that is no question.
bool send_question(int socket, const question& what);
bool receive_question(int socket, question& what);

/// send_table answers the question `table` with the table and a pidfd of the sender. send_memory answers the questions
/// `describe` and `open` with the files of the parts. send_nothing answers that the export was not found.
/// receive_answer receives each of these answers. The functions return false in the same cases as for questions.
bool send_table(int socket, int table, int process);
bool send_memory(int socket, const exported& what, const memory_description& memory);
bool send_nothing(int socket);
bool receive_answer(int socket, answer& result);

}  // namespace hpe::node
