#pragma once

/// Windows over memory of hpe. Other processes read and write a window while its owner does something else, so MPI gets
/// a copy of the memory, the public one of MPI's separate memory model (MPI_WIN_MODEL says MPI_WIN_SEPARATE), and the
/// two are reconciled when the owner synchronises the window:
///
///  - before MPI_Win_fence, post, complete, wait, test, lock, unlock, flush, sync and free (with their _all and _local
///    forms) do their work, what the owner's host code and kernels have changed since the last time is published;
///  - after it, what others have changed is put in place in the memory.
///
/// Changes are found by comparison with the state at the last time, byte by byte, so the two sides may change
/// different parts of a window. This reads and compares the whole window at each synchronisation: right, not fast.
/// Small windows are better than one over everything.
///
/// Dynamic windows (MPI_Win_attach) over memory of hpe are refused: there, others use the address itself.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "interpose/buffer_access.h"
#include "interpose/mpi/real.h"

namespace hpe::interpose::mpi {

/// One thread at a time synchronises a window. Throws hpe::error.
class window {
 public:
  window(void* base, std::size_t bytes);

  /// What MPI makes the window of.
  [[nodiscard]] void* exposed() const noexcept { return exposed_; }
  /// What the program gave.
  [[nodiscard]] void* base() const noexcept { return base_; }

  void publish();
  void take_in();

 private:
  std::mutex mutex_;
  void* const base_;
  const std::size_t bytes_;
  buffer_access last_;  // both copies as they were when they were the same
  std::vector<std::byte> public_;
  std::byte* exposed_;
};

/// The windows over memory of hpe. Any thread.
class window_table {
 public:
  static window_table& all();

  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
  void add(MPI_Win win, std::shared_ptr<window> made);
  [[nodiscard]] std::shared_ptr<window> find(MPI_Win win);
  void remove(MPI_Win win);

 private:
  std::mutex mutex_;
  std::map<MPI_Win, std::shared_ptr<window>> windows_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace hpe::interpose::mpi
