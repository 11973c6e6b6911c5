#pragma once

/// Other processes of the same user that export memory, as seen by an importing process.

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/node/export_table.h"
#include "runtime/node/handle.h"
#include "runtime/node/messages.h"

namespace hpe::node {

/// One exporting process. Thread-safe.
class peer {
 public:
  /// Connects to the process that the handle names. Throws HPE_ERROR_NOT_FOUND if the process does not exist, belongs
  /// to another user or does not answer; HPE_ERROR_SYSTEM if a system call fails or the process uses another build of
  /// hpe.
  explicit peer(const handle& h);

  /// Returns the bytes that the handle names; nullopt if the export has ended. Reads shared memory and sends no
  /// message.
  [[nodiscard]] std::optional<exported> find(const handle& h) const;

  /// Asks the process for a description of the memory that a handle names. Throws HPE_ERROR_NOT_FOUND if the export or
  /// its process has ended.
  [[nodiscard]] answer describe(const handle& h) { return ask(question::kind::describe, h); }
  /// Like describe. The memory then exists until it has been closed as many times as it was opened.
  [[nodiscard]] answer open(const handle& h) { return ask(question::kind::open, h); }
  /// Closes bytes that open() has opened. opened: the member `what` of the answer.
  void close(const exported& opened) noexcept;

  /// Returns the memories that the process has freed since the last call.
  [[nodiscard]] export_view::retirement retired() { return table_->retired(); }

  /// Whether the process is alive. Makes one system call.
  [[nodiscard]] bool alive() const noexcept { return !has_ended(process_); }
  /// Whether the process once failed to answer. hpe then asks it no more questions.
  [[nodiscard]] bool broken() const noexcept { return broken_; }

  /// Throws the error for a handle that is no longer valid.
  [[noreturn]] static void throw_ended();

 private:
  answer ask(question::kind what, const handle& h);
  void give_up() noexcept HPE_REQUIRES(mutex_);

  mutex mutex_;
  os::file_descriptor socket_ HPE_GUARDED_BY(mutex_);
  os::file_descriptor process_;  // a pidfd
  std::optional<export_view> table_;
  std::atomic<bool> broken_{false};
};

/// The processes whose memory this process uses. Thread-safe.
class neighbours {
 public:
  /// Connects to the process that the handle names, if this process is not yet connected to it, and returns the
  /// connected process; nullptr if no connection is possible, for example because the process has ended, belongs to
  /// another user or is on another machine. Makes one system call if the process is already connected.
  [[nodiscard]] std::shared_ptr<peer> find(const handle& h);

  /// Forgets the processes that have died, and returns their keys.
  [[nodiscard]] std::vector<process_key> forget_dead();

  /// All connected processes.
  [[nodiscard]] std::vector<std::pair<process_key, std::shared_ptr<peer>>> all() const;

 private:
  mutable mutex mutex_;
  std::map<process_key, std::shared_ptr<peer>> known_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::node
