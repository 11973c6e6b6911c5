#pragma once

/// Other processes of the same user that export memory, as seen from one that uses it.

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

/// One of them. Any thread.
class peer {
 public:
  /// Connects to the process that the handle names. Throws HPE_ERROR_NOT_FOUND if there is none or it is not the
  /// user's, HPE_ERROR_SYSTEM if it does not answer.
  explicit peer(const handle& h);

  /// What the handle names; empty if it ended. No message: a look into shared memory.
  [[nodiscard]] std::optional<exported> find(const handle& h) const;

  /// Asks for the memory behind a handle. Throws HPE_ERROR_NOT_FOUND if the handle ended meanwhile, or its process.
  [[nodiscard]] answer describe(const handle& h) { return ask(question::kind::describe, h); }
  /// The same; the memory then lives until it is closed as often as it was opened.
  [[nodiscard]] answer open(const handle& h) { return ask(question::kind::open, h); }
  void close(std::uint64_t memory) noexcept;

  /// What it gave back since the last call.
  [[nodiscard]] export_view::retirement retired() { return table_->retired(); }

  /// Its process runs. One system call.
  [[nodiscard]] bool alive() const noexcept { return !has_ended(process_); }
  /// It did not answer, and is asked no more.
  [[nodiscard]] bool broken() const noexcept { return broken_; }

  /// Words about a handle that does not hold any more.
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

/// All that this process uses memory of. Any thread.
class neighbours {
 public:
  /// The process that the handle names, connected to; nullptr if it is not alive, not the user's or not on this
  /// machine. One system call once it is connected.
  [[nodiscard]] std::shared_ptr<peer> find(const handle& h);

  /// Forgets those that died, and says which.
  [[nodiscard]] std::vector<process_key> forget_dead();

  /// Those that are connected.
  [[nodiscard]] std::vector<std::pair<process_key, std::shared_ptr<peer>>> all() const;

 private:
  mutable mutex mutex_;
  std::map<process_key, std::shared_ptr<peer>> known_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::node
