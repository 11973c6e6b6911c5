#pragma once

/// The processes that use hpe now, from their status pages (runtime/trace/status_page.h), and the rates of their
/// counters.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hpe::cli {

/// The state of a process at one time. Sums count from the start of the process, or from its last call of
/// hpeResetStatistics.
struct running_process {
  struct device {
    std::string name;
    std::uint64_t memory = 0;  ///< bytes
    std::uint64_t used = 0;    ///< bytes of the device that back the process's allocations
  };

  pid_t number = 0;
  std::uint64_t started = 0;  ///< distinguishes two processes that had the same number
  std::string command;        ///< the process's command line
  std::string rank;           ///< rank in its MPI job; empty: the process is not a rank
  std::vector<device> devices;
  std::uint64_t to_device = 0;  ///< bytes
  std::uint64_t to_host = 0;
  std::uint64_t between_devices = 0;
  std::uint64_t faults = 0;
  std::uint64_t launches = 0;
  std::uint64_t given_back = 0;  ///< bytes of device memory released for other processes (HPE_SHARE)
};

/// The increase of a process's sums in one second; 0 if its earlier state is not known.
struct process_rates {
  double to_device = 0;  ///< bytes/s
  double to_host = 0;
  double between_devices = 0;
  double faults = 0;  ///< 1/s
  double launches = 0;
  double given_back = 0;  ///< bytes/s
};

/// Returns the processes of the calling user that use hpe, by process number.
[[nodiscard]] std::vector<running_process> running_processes();

/// The peak of hpe's device memory that a process and its descendants use. The status pages of processes that have
/// ended stay readable, so their last values count.
class device_memory_watch {
 public:
  explicit device_memory_watch(pid_t ancestor);
  ~device_memory_watch();
  device_memory_watch(const device_memory_watch&) = delete;
  device_memory_watch& operator=(const device_memory_watch&) = delete;

  /// Adds the processes that have begun to use hpe since the last call.
  void look_for_processes();
  /// Reads the memory in use. Takes less than a microsecond for each process.
  void sample();

  struct peak {
    running_process process;         ///< the process's state when it was found
    running_process::device device;  ///< `used` is the largest value of all samples
  };
  [[nodiscard]] std::vector<peak> peaks() const;

 private:
  struct watched;
  const pid_t ancestor_;
  std::vector<std::unique_ptr<watched>> processes_;
};

[[nodiscard]] process_rates rates_between(const running_process& before, const running_process& now, double seconds);

struct process_and_rates {
  running_process process;
  process_rates rates;
};
/// Returns each process of `now` with its rates since `before`. seconds: the time between the two lists.
[[nodiscard]] std::vector<process_and_rates> with_rates(const std::vector<running_process>& before,
                                                        const std::vector<running_process>& now, double seconds);

/// Returns the output of `hpe top`: a table for a terminal of `columns` columns, and a JSON object.
[[nodiscard]] std::string table_of(const std::vector<process_and_rates>& processes, unsigned columns);
[[nodiscard]] std::string json_of(const std::vector<process_and_rates>& processes);

}  // namespace hpe::cli
