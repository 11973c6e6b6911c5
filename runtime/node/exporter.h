#pragma once

/// The exporting side of a process: its memories that others may use, and the thread that tells others of them.

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

/// Any thread. Nothing is started, and no other process sees anything, before the first export.
class exporter {
 public:
  exporter();
  exporter(const exporter&) = delete;
  exporter& operator=(const exporter&) = delete;
  ~exporter();

  /// A number for a memory, which is not exported yet. The files of its parts stay open until it is retired and nobody
  /// has it open. Throws HPE_ERROR_NOT_SUPPORTED for too many parts, HPE_ERROR_SYSTEM.
  std::uint64_t add(memory_description memory);

  /// Exports a part of a memory.
  handle publish(const exported& what);
  /// What the handle named; empty if it is not one of this process that still holds.
  std::optional<exported> end(const handle& h) noexcept;
  [[nodiscard]] std::optional<exported> find(const handle& h) const;

  /// Whether a process has the memory open. 0 is no memory.
  [[nodiscard]] bool is_open(std::uint64_t memory) const;

  /// The memory is going away; nothing of it is exported. Runs `last`, which gives it back: now, or, if other processes
  /// have it open, in another thread after the last one let go of it.
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

  os::file_descriptor self_;  // a pidfd, for importers
  os::file_descriptor listener_;
  os::file_descriptor stop_;
  std::vector<std::unique_ptr<connection>> connections_;  // of the thread
  std::unique_ptr<std::thread> thread_;
};

}  // namespace hpe::node
