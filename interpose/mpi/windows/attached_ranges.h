#pragma once

/// Device memory that the processes of a dynamic window have attached. In a dynamic window, a process names memory of
/// the target by the memory's address at the target. MPI uses the public copy of device memory (window.h), which has
/// another address. So each process of a dynamic window has a directory: a list of the ranges of device memory that the
/// process has attached, with the addresses of their public copies. The directories are in an MPI window of hpe's own.
/// Before a one-sided call, the wrapper reads the target's directory, and passes the address of the public copy to MPI.

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "interpose/mpi/real.h"
#include "interpose/mpi/windows/window.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// The directories of one dynamic window. Thread safe.
class attached_ranges {
 public:
  /// The largest number of ranges of device memory that a process can attach to one window at the same time.
  static constexpr std::size_t most = 128;

  /// Creates the directories of a dynamic window. Collective over the ranks of `comm`, the window's communicator.
  /// Without an effect if not all ranks take part in hpe's protocol for messages, or if MPI cannot create the window of
  /// the directories; find() then returns nullptr in all ranks.
  static void open(MPI_Comm comm, MPI_Win win);
  [[nodiscard]] static std::shared_ptr<attached_ranges> find(MPI_Win win);
  /// Removes the directories of a window from the table of the process. Their destructor is collective over the ranks
  /// of the window.
  [[nodiscard]] static std::shared_ptr<attached_ranges> take(MPI_Win win);
  /// Stores the directories of a window in the table of the process. Without an effect for nullptr.
  static void store(MPI_Win win, std::shared_ptr<attached_ranges> directories);

  /// Returns the displacement that a one-sided call must pass to MPI in place of the program's displacement.
  [[nodiscard]] static MPI_Aint place_of(MPI_Win win, int target, MPI_Aint displacement) {
    if (open_count.load(std::memory_order_relaxed) == 0) [[likely]]
      return displacement;
    return find_place(win, target, displacement);
  }

  attached_ranges(const attached_ranges&) = delete;
  attached_ranges& operator=(const attached_ranges&) = delete;
  ~attached_ranges();

  /// Adds memory of this process to the process's directory. Throws HPE_ERROR_NOT_SUPPORTED if the directory is full.
  void add(const window& memory);
  void remove(const window& memory);

 private:
  struct range {
    MPI_Aint begin = 0;
    MPI_Aint bytes = 0;  // 0: this element of the directory is free
    MPI_Aint copy = 0;
    bool operator==(const range&) const = default;
  };
  using directory = std::array<range, most>;

  attached_ranges(MPI_Comm comm, MPI_Win directories, directory* own, int rank, int ranks)
      : comm_(comm), directories_(directories), own_(own), rank_(rank), ranks_(ranks) {}

  [[nodiscard]] static MPI_Aint find_place(MPI_Win win, int target, MPI_Aint displacement);
  [[nodiscard]] MPI_Aint place(int target, MPI_Aint address);
  // Stores `now` in the first element of the process's own directory that equals `before`. Returns false if there is
  // none.
  bool replace(const range& before, const range& now);

  static std::atomic<std::size_t> open_count;  // of the process's dynamic windows with directories

  mutex mutex_;    // a process may lock a window of MPI only once at a time
  MPI_Comm comm_;  // of directories_; Intel MPI 2021.19 crashes in MPI_Win_lock if the window's communicator was freed
  MPI_Win directories_ HPE_GUARDED_BY(mutex_);
  directory* const own_;  // memory of directories_
  const int rank_;
  const int ranks_;
};

}  // namespace hpe::interpose::mpi
