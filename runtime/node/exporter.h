#pragma once

/// The exporting side of a process: its memories that others may use, and the thread that answers importing processes.

#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/node/export_table.h"
#include "runtime/node/handle.h"
#include "runtime/node/messages.h"

namespace hpe::node {

/// Thread-safe. Before the first export there is no thread, and other processes see nothing.
class exporter {
 public:
  exporter();
  exporter(const exporter&) = delete;
  exporter& operator=(const exporter&) = delete;
  ~exporter();

  /// Registers a memory that is not exported yet, and returns its number. The files of its parts must stay open until
  /// it is retired and no process has it open. Throws HPE_ERROR_NOT_SUPPORTED for too many parts, HPE_ERROR_SYSTEM.
  std::uint64_t add(memory_description memory);

  /// Exports a part of a memory.
  handle publish(const exported& what);
  /// End an export, or find it. Return its bytes; empty if the handle is not a valid one of this process.
  std::optional<exported> end(const handle& h) noexcept;
  [[nodiscard]] std::optional<exported> find(const handle& h) const;

  /// Whether another process has the memory open. 0 is no memory.
  [[nodiscard]] bool is_open(std::uint64_t memory) const;

  /// Retires a memory that is about to be freed, and of which nothing is exported. Calls `last`, which frees it: at
  /// once or, if other processes have it open, in another thread after the last of them has closed it.
  void retire(std::uint64_t memory, std::function<void()> last);

 private:
  struct memory;
  struct connection;

  void start() HPE_REQUIRES(mutex_);
  void serve();
  void accept_one();
  bool answer_one(connection& to);
  bool open_or_describe(connection& to, const question& asked);
  void close_one(std::uint64_t number);

  const int owner_;
  mutable mutex mutex_;
  process_key key_ HPE_GUARDED_BY(mutex_);
  std::uint64_t next_ HPE_GUARDED_BY(mutex_) = 1;
  std::unique_ptr<export_table> table_;  // made before the thread
  std::map<std::uint64_t, memory> memories_ HPE_GUARDED_BY(mutex_);

  os::file_descriptor self_;  // a pidfd of this process, for importers
  os::file_descriptor listener_;
  os::file_descriptor stop_;
  std::vector<std::unique_ptr<connection>> connections_;  // used by the thread only
  std::unique_ptr<std::thread> thread_;
};

}  // namespace hpe::node
