#pragma once

/// The processes that use hpe now, as they publish themselves (runtime/trace/status_page.h), and how fast they count.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hpe::cli {

/// A process at one time. Sums are since its start, or since it reset them.
struct running_process {
  struct device {
    std::string name;
    std::uint64_t memory = 0;  ///< bytes
    std::uint64_t used = 0;    ///< bytes that back its allocations
  };

  pid_t number = 0;
  std::uint64_t started = 0;  ///< tells two processes of the same number apart
  std::string command;        ///< its command line
  std::string rank;           ///< of its MPI job; empty: none
  std::vector<device> devices;
  std::uint64_t to_device = 0;  ///< bytes
  std::uint64_t to_host = 0;
  std::uint64_t between_devices = 0;
  std::uint64_t faults = 0;
  std::uint64_t launches = 0;
};

/// A second of a process: what was added to its sums. Of the first look at a process: 0.
struct process_rates {
  double to_device = 0;  ///< bytes/s
  double to_host = 0;
  double between_devices = 0;
  double faults = 0;  ///< 1/s
  double launches = 0;
};

/// Those of the calling user, by number.
[[nodiscard]] std::vector<running_process> running_processes();

[[nodiscard]] process_rates rates_between(const running_process& before, const running_process& now, double seconds);

struct process_and_rates {
  running_process process;
  process_rates rates;
};
/// Each process of `now` with its rates since `before`.
[[nodiscard]] std::vector<process_and_rates> with_rates(const std::vector<running_process>& before,
                                                        const std::vector<running_process>& now, double seconds);

/// What `hpe top` prints: a table for a terminal of this many columns, and a JSON object.
[[nodiscard]] std::string table_of(const std::vector<process_and_rates>& processes, unsigned columns);
[[nodiscard]] std::string json_of(const std::vector<process_and_rates>& processes);

}  // namespace hpe::cli
