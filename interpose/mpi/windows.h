#pragma once

/// Windows over memory of hpe. Other processes read and write a window while its owner does something else, so MPI gets
/// a copy of the memory: the public copy of MPI's separate memory model (MPI_WIN_MODEL is MPI_WIN_SEPARATE). Memory and
/// copy are reconciled when the owner synchronises the window:
///
///  - before MPI_Win_fence, post, complete, wait, test, lock, unlock, flush, sync and free (with their _all and _local
///    forms), the changes of the owner's host code and kernels since the last synchronisation go to the public copy;
///  - after the call, the changes of other processes go to the memory.
///
/// Changes are found by comparison with the state at the last synchronisation, byte by byte, so the owner and other
/// processes may change different parts of a window. While a synchronising call runs, the owner must not change the
/// window: in MPI's separate model a store and an update of the same window must not overlap in time. Each
/// synchronisation reads and compares the whole window, so several small windows are faster than one large one.
///
/// Dynamic windows (MPI_Win_attach) over memory of hpe are refused: other processes would use the address itself.

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "interpose/buffer_access.h"
#include "interpose/mpi/real.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// Thread safe: one thread at a time synchronises a window. Functions throw hpe::error.
class window {
 public:
  window(void* base, std::size_t bytes);

  /// The memory of which MPI makes the window.
  [[nodiscard]] void* exposed() const noexcept { return exposed_; }
  /// The address that the program passed to MPI_Win_create.
  [[nodiscard]] void* base() const noexcept { return base_; }

  void publish();
  void take_in();

 private:
  mutex mutex_;
  void* const base_;
  const std::size_t bytes_;
  buffer_access last_ HPE_GUARDED_BY(mutex_);  // the content of memory and public copy when they were last equal
  std::vector<std::byte> public_;
  std::byte* exposed_;
};

/// The windows over memory of hpe. Thread safe.
class window_table {
 public:
  static window_table& all();

  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
  void add(MPI_Win win, std::shared_ptr<window> made);
  [[nodiscard]] std::shared_ptr<window> find(MPI_Win win);
  /// Removes a window from the table; nullptr if the table has it not.
  [[nodiscard]] std::shared_ptr<window> take(MPI_Win win);

 private:
  mutex mutex_;
  std::map<MPI_Win, std::shared_ptr<window>> windows_ HPE_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};
};

}  // namespace hpe::interpose::mpi
