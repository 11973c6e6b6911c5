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
/// attached_ranges.h describes such memory in dynamic windows.

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "interpose/buffer_access.h"
#include "interpose/mpi/real.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// The memory of one call of MPI_Win_create or MPI_Win_attach, if it is device memory. publish() copies the owner's
/// changes to the public copy; take_in() copies the changes of other processes to the memory. Both throw hpe::error.
/// Thread safe; only one thread at a time can synchronise a window.
class window {
 public:
  window(void* base, std::size_t bytes);

  /// Returns the address that is passed to MPI: that of the public copy, or of the memory itself if it comes from
  /// hpeMallocHost.
  [[nodiscard]] void* exposed() const noexcept { return exposed_; }
  /// Returns the address that the program has passed to MPI_Win_create or MPI_Win_attach.
  [[nodiscard]] void* base() const noexcept { return base_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

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

/// The device memory of the process's windows. A dynamic window can have several elements. Thread safe.
class window_table {
 public:
  using elements = std::vector<std::shared_ptr<window>>;
  static window_table& all();

  void add(MPI_Win win, std::shared_ptr<window> made);
  /// Returns an empty list if the window has no device memory.
  [[nodiscard]] elements find(MPI_Win win);
  /// Removes all elements of a window from the table and returns them.
  [[nodiscard]] elements take(MPI_Win win);
  /// Removes the element with this address from the table and returns it; nullptr if the window has no such element.
  [[nodiscard]] std::shared_ptr<window> take(MPI_Win win, const void* base);

 private:
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

  mutex mutex_;
  std::map<MPI_Win, elements> windows_ HPE_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};  // of windows_
};

}  // namespace hpe::interpose::mpi
