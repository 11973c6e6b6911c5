#pragma once

/// The rules that produce the advice in a report. Their results depend only on the records of the processes.

#include <cstdint>
#include <string>
#include <vector>

namespace hpe::cli {

/// All copies, or all touches, of one kind (trace::way in runtime/trace/profile.h) at one place of the program.
struct recorded_place {
  std::string way;    ///< the name of the kind in profiles
  std::string where;  ///< "file:line", or a function
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::uint64_t lowest = 0;  ///< for touches: the lowest and the highest address; 0: not known
  std::uint64_t highest = 0;
};

/// An allocation of device memory whose data moved, or that kernels used.
struct recorded_allocation {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::string made_at;        ///< "file:line"; empty: not known
  std::uint64_t to_host = 0;  ///< bytes moved to the host
  std::uint64_t to_device = 0;
  std::uint64_t moves_to_host = 0;
  std::uint64_t moves_to_device = 0;
  std::uint64_t used_begin = 0;  ///< launches and CPU code used only bytes in this range; both 0: not known
  std::uint64_t used_end = 0;
};

/// Calls of one function of MPI or of libc.
struct recorded_calls {
  std::string function;
  std::uint64_t calls = 0;
  double seconds = 0;
};

struct recorded_process {
  std::string name;    ///< "rank 3", or "process 4711"
  double seconds = 0;  ///< from the start of hpe's records to the last file of the process
  std::vector<recorded_place> places;
  std::vector<recorded_allocation> allocations;
  std::vector<recorded_calls> mpi;
  std::uint64_t faults_read = 0;
  std::uint64_t faults_write = 0;
  std::uint64_t blocks_prefetched = 0;
  std::uint64_t degraded = 0;
};

struct advice {
  std::string rule;    ///< the name of the rule, for tests and scripts
  std::string where;   ///< the place or the allocation; empty: the whole process
  std::string text;    ///< a paragraph
  double seconds = 0;  ///< time that the process spent on the calls or touches that the advice concerns
};

/// Returns the advice for one process, the longest time first. Empty if no rule applies.
[[nodiscard]] std::vector<advice> advise(const recorded_process& process);

/// Returns the allocation that contains the addresses touched at a place; nullptr if none is known.
[[nodiscard]] const recorded_allocation* allocation_of(const recorded_place& place, const recorded_process& process);

/// Returns an estimate of the bytes that the touches of a place moved to the host: the bytes that the allocation moved
/// to the host, times the fraction of the allocation's touches that happened at this place. Returns 0 if the place is
/// not one of touches, or its allocation is not known.
[[nodiscard]] std::uint64_t bytes_of_touches(const recorded_place& place, const recorded_process& process);

}  // namespace hpe::cli
