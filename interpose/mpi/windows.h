#pragma once

/// Windows over hpe memory and memory of the CUDA driver. Other processes may read and write a window at any time,
/// without an action of the process that owns the memory. Therefore hpe passes a copy of the memory to MPI: the public
/// copy of MPI's separate memory model (MPI_WIN_MODEL is MPI_WIN_SEPARATE). Memory from hpeMallocHost has only one
/// copy, so hpe passes this memory itself to MPI. When the owner synchronises the window, hpe copies changes between
/// the memory and the public copy:
///
///  - before MPI_Win_fence, post, complete, wait, test, lock, unlock, flush, sync and free (including their _all and
///  _local forms), hpe copies the changes that the owner's host code and kernels have made since the last
///  synchronisation to the public copy;
///  - after the call, hpe copies the changes that other processes have made to the memory.
///
/// To find changes, hpe compares each byte with its value at the last synchronisation. So the owner and other processes
/// may change different bytes of a window between two synchronisations. While a synchronising call runs, the owner must
/// not change the window; MPI's separate memory model has the same rule. Each synchronisation reads and compares the
/// whole window, so several small windows that are synchronised separately are faster than one large window.
///
/// MPI_Win_attach returns an error for such memory, because other processes would use the address of the memory
/// directly.

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "interpose/buffer_access.h"
#include "interpose/mpi/real.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// One window over device memory. publish() copies the owner's changes to the public copy; take_in() copies the changes
/// of other processes to the memory. Both throw hpe::error. Thread safe; only one thread at a time can synchronise a
/// window.
class window {
 public:
  window(void* base, std::size_t bytes);

  /// Returns the address that is passed to MPI: that of the public copy, or of the memory itself if it comes from
  /// hpeMallocHost.
  [[nodiscard]] void* exposed() const noexcept { return exposed_; }
  /// Returns the address that the program has passed to MPI_Win_create.
  [[nodiscard]] void* base() const noexcept { return base_; }

  void publish();
  void take_in();

 private:
  mutex mutex_;
  void* const base_;
  const std::size_t bytes_;
  // The bytes that both the memory and the public copy contained when they were last equal.
  buffer_access last_ HPE_GUARDED_BY(mutex_);
  std::vector<std::byte> public_;
  std::byte* exposed_;
};

/// The windows of the process over device memory. Thread safe.
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
