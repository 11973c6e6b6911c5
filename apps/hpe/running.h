#pragma once

/// The processes that use hpe now, from their status pages (runtime/trace/status_page.h), and the rates of their
/// counters.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hpe::cli {

/// The state of a process at one time. Sums count from its start, or from its last hpeResetStatistics.
struct running_process {
  struct device {
    std::string name;
    std::uint64_t memory = 0;  ///< bytes
    std::uint64_t used = 0;    ///< bytes that back its allocations
  };

  pid_t number = 0;
  std::uint64_t started = 0;  ///< distinguishes two processes that had the same number
  std::string command;        ///< its command line
  std::string rank;           ///< rank in its MPI job; empty: the process is no rank
  std::vector<device> devices;
  std::uint64_t to_device = 0;  ///< bytes
  std::uint64_t to_host = 0;
  std::uint64_t between_devices = 0;
  std::uint64_t faults = 0;
  std::uint64_t launches = 0;
  std::uint64_t given_back = 0;  ///< bytes of device memory, for other processes (HPE_SHARE)
};

/// Increase of a process's sums in one second; 0 if there is no earlier state of the process.
struct process_rates {
  double to_device = 0;  ///< bytes/s
  double to_host = 0;
  double between_devices = 0;
  double faults = 0;  ///< 1/s
  double launches = 0;
  double given_back = 0;  ///< bytes/s
};

/// The processes of the calling user that use hpe, by process number.
[[nodiscard]] std::vector<running_process> running_processes();

[[nodiscard]] process_rates rates_between(const running_process& before, const running_process& now, double seconds);

struct process_and_rates {
  running_process process;
  process_rates rates;
};
/// Each process of `now` with its rates since `before`.
[[nodiscard]] std::vector<process_and_rates> with_rates(const std::vector<running_process>& before,
                                                        const std::vector<running_process>& now, double seconds);

/// The output of `hpe top`: a table for a terminal of `columns` columns, and a JSON object.
[[nodiscard]] std::string table_of(const std::vector<process_and_rates>& processes, unsigned columns);
[[nodiscard]] std::string json_of(const std::vector<process_and_rates>& processes);

}  // namespace hpe::cli
