#pragma once

/// The exporting side of a process: its memories that others may use, and the thread that tells others of them.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/node/directory.h"
#include "runtime/node/export_table.h"
#include "runtime/node/handle.h"
#include "runtime/node/messages.h"

namespace hpe::node {

/// Any thread. Nothing is started, and no other process sees anything, before the first export.
class exporter {
 public:
  explicit exporter(directory& processes);
  exporter(const exporter&) = delete;
  exporter& operator=(const exporter&) = delete;
  ~exporter();

  /// A number for a memory, which is not exported yet. The files of its parts stay open until it is retired and nobody
  /// has it open. Throws what directory::join throws, HPE_ERROR_NOT_SUPPORTED for too many parts, HPE_ERROR_SYSTEM.
  std::uint64_t add(memory_description memory);

  /// Exports a part of a memory.
  handle publish(const exported& what);
  /// What the handle named; empty if it is not one of this process that still holds.
  std::optional<exported> end(const handle& h);
  [[nodiscard]] std::optional<exported> find(const handle& h) const;

  /// Whether a process has the memory open. 0 is no memory.
  [[nodiscard]] bool is_open(std::uint64_t memory) const;

  /// The memory is going away; nothing of it is exported. Runs `last`, which gives it back: now, or, if other processes
  /// have it open, in another thread after the last one let go of it.
  void retire(std::uint64_t memory, std::function<void()> last);

  /// Others do not find this process any more, and it exports nothing more. For the end of the process.
  void leave() noexcept;

 private:
  struct memory;
  struct connection;

  void start();
  void serve();
  void accept_one();
  bool answer_one(connection& to);
  bool open_or_describe(connection& to, const question& asked);
  void close_one(std::uint64_t number);

  directory& processes_;
  const int owner_;
  mutable std::mutex mutex_;
  bool left_ = false;
  process_key key_;
  std::uint32_t place_ = 0;
  std::uint64_t next_ = 1;
  std::unique_ptr<export_table> table_;
  std::map<std::uint64_t, memory> memories_;

  os::file_descriptor listener_;
  os::file_descriptor stop_;
  std::vector<std::unique_ptr<connection>> connections_;  // of the thread
  std::unique_ptr<std::thread> thread_;
};

}  // namespace hpe::node
