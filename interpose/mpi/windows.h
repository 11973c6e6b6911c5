#pragma once

/// Windows over hpe memory. Other processes read and write a window while its owner does other work. Therefore MPI uses
/// a copy of the memory: the public copy in MPI's separate memory model (MPI_WIN_MODEL is MPI_WIN_SEPARATE). The memory
/// and its public copy are reconciled when the owner synchronises the window:
///
///  - before MPI_Win_fence, post, complete, wait, test, lock, unlock, flush, sync and free (including their _all and
///  _local forms), hpe copies the changes that the owner's host code and kernels have made since the last
///  synchronisation to the public copy;
///  - after the call, hpe copies the changes that other processes have made to the memory.
///
/// To find changes, hpe compares each byte with its value at the last synchronisation. So the owner and other processes
/// may change different parts of a window. While a synchronising call runs, the owner must not change the window. MPI
/// demands the same: in its separate model, a store must not overlap in time with an update of the same window. Each
/// synchronisation reads and compares the whole window, so that several small windows are faster than one large window.
///
/// hpe refuses dynamic windows (MPI_Win_attach) over hpe memory, because other processes would use the address itself.

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "interpose/buffer_access.h"
#include "interpose/mpi/real.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// Thread safe; only one thread at a time can synchronise a window. The functions throw hpe::error.
class window {
 public:
  window(void* base, std::size_t bytes);

  /// The memory that is passed to MPI for the window.
  [[nodiscard]] void* exposed() const noexcept { return exposed_; }
  /// The address that the program passed to MPI_Win_create.
  [[nodiscard]] void* base() const noexcept { return base_; }

  void publish();
  void take_in();

 private:
  mutex mutex_;
  void* const base_;
  const std::size_t bytes_;
  buffer_access last_ HPE_GUARDED_BY(mutex_);  // the bytes of the memory and the public copy when both were last equal
  std::vector<std::byte> public_;
  std::byte* exposed_;
};

/// The windows of the process over hpe memory. Thread safe.
class window_table {
 public:
  static window_table& all();

  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
  void add(MPI_Win win, std::shared_ptr<window> made);
  [[nodiscard]] std::shared_ptr<window> find(MPI_Win win);
  /// Removes a window from the table and returns it; nullptr if the table does not contain it.
  [[nodiscard]] std::shared_ptr<window> take(MPI_Win win);

 private:
  mutex mutex_;
  std::map<MPI_Win, std::shared_ptr<window>> windows_ HPE_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};
};

}  // namespace hpe::interpose::mpi
