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
  /// Connects to the process that the handle names. Throws HPE_ERROR_NOT_FOUND if there is none, it is another user's
  /// or it does not answer; HPE_ERROR_SYSTEM if a system call fails or it uses another build of hpe.
  explicit peer(const handle& h);

  /// The bytes that the handle names; empty if the export ended. Sends no message: reads shared memory.
  [[nodiscard]] std::optional<exported> find(const handle& h) const;

  /// Asks for the memory behind a handle. Throws HPE_ERROR_NOT_FOUND if the export or its process has ended.
  [[nodiscard]] answer describe(const handle& h) { return ask(question::kind::describe, h); }
  /// Like describe; the memory then lives until it is closed as often as it was opened.
  [[nodiscard]] answer open(const handle& h) { return ask(question::kind::open, h); }
  void close(std::uint64_t memory) noexcept;

  /// The memories that the process gave back since the last call.
  [[nodiscard]] export_view::retirement retired() { return table_->retired(); }

  /// Whether the process runs. One system call.
  [[nodiscard]] bool alive() const noexcept { return !has_ended(process_); }
  /// Whether the process failed to answer. It is not asked any more then.
  [[nodiscard]] bool broken() const noexcept { return broken_; }

  /// Throws the error for a handle that is not valid any more.
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
  /// The connected process that the handle names; nullptr if it is not alive, not the user's or not on this machine.
  /// Takes one system call if it is connected already.
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
