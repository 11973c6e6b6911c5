#pragma once

/// The exporting side of a process: the memories that other processes may use, and the thread that answers importing
/// processes.

#include <atomic>
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

/// Thread-safe. The first export starts the thread and makes this process visible to other processes.
class exporter {
 public:
  exporter();
  exporter(const exporter&) = delete;
  exporter& operator=(const exporter&) = delete;
  ~exporter();

  /// Registers a memory that is not exported yet, and returns its number. The files of its parts must stay open until
  /// the memory is retired and no other process has it open. Throws HPE_ERROR_NOT_SUPPORTED if there are too many
  /// parts, and HPE_ERROR_SYSTEM.
  std::uint64_t add(memory_description memory);

  /// Exports a part of a memory.
  handle publish(const exported& what);
  /// End or find an export, and return its bytes; nullopt if the handle is not a valid handle of this process.
  std::optional<exported> end(const handle& h) noexcept;
  [[nodiscard]] std::optional<exported> find(const handle& h) const;

  /// Whether another process has a part of the memory open.
  [[nodiscard]] bool is_open(std::uint64_t memory) const;
  /// Returns true when this process has read all messages that others sent before the call (at most 1000 from each
  /// process): memory that other processes have closed then counts as closed. Returns false at once if no other process
  /// can have sent a message.
  bool settle();
  /// Call the functions of class openings for these bytes. untake calls openings::untake, which affects all bytes of a
  /// memory.
  [[nodiscard]] bool written(const exported& bytes) const;
  [[nodiscard]] bool take_written(const exported& bytes);
  void untake(std::uint64_t memory) noexcept;

  /// Retires a memory that is about to be freed and has no exported part. Calls `last`, which frees the memory. If
  /// other processes have the memory open, another thread calls `last` after the last of these processes has closed the
  /// memory; otherwise retire calls `last` at once.
  void retire(std::uint64_t memory, std::function<void()> last);
  /// Calls `last` when no other process has these bytes open: at once, or later in another thread. The memory is not
  /// retired. If when_closed throws, `last` has not been called.
  void when_closed(const exported& bytes, std::function<void()> last);

 private:
  struct waiting;
  struct memory;
  struct connection;

  void start() HPE_REQUIRES(mutex_);
  void serve();
  void accept_one();
  bool answer_one(connection& to);
  bool open_or_describe(connection& to, const question& asked);
  void close_one(const exported& what) noexcept;

  const int owner_;
  mutable mutex mutex_;
  process_key key_ HPE_GUARDED_BY(mutex_);
  std::uint64_t next_ HPE_GUARDED_BY(mutex_) = 1;
  std::unique_ptr<export_table> table_;  // made before the thread starts, so the thread reads it without a lock
  std::map<std::uint64_t, memory> memories_ HPE_GUARDED_BY(mutex_);

  os::file_descriptor self_;  // a pidfd of this process, for importers
  os::file_descriptor listener_;
  os::file_descriptor wake_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> settle_wanted_{0};
  std::atomic<std::uint64_t> settle_done_{0};
  std::vector<std::unique_ptr<connection>> connections_;  // used by the thread only
  std::unique_ptr<std::thread> thread_;
};

}  // namespace hpe::node
