#pragma once

/// The data about a machine that the models need. `hpe bench machine` measures a profile and writes it as JSON, which
/// docs/schemas/machine.json describes; apps/predict/machines contains profiles made from published figures.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "apps/predict/formula_value.h"

namespace hpe::predict {

/// The rate of each device while `devices` devices are busy, in bytes per second.
struct shared_rate {
  int devices;
  double rate;
};

/// A table of rates, one for each of several numbers of devices, in ascending order of this number.
class rate_table {
 public:
  rate_table() = default;
  /// Rates must be positive. Throws bad_input unless the numbers of devices ascend from 1.
  explicit rate_table(std::vector<shared_rate> rows);

  /// Returns the rate of each device while `devices` devices are busy. Between two rows, the sum of the rates of all
  /// devices is interpolated. For more devices than in the last row, this sum is that of the last row. The table must
  /// not be empty.
  [[nodiscard]] double of_each(int devices) const;
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] const std::vector<shared_rate>& rows() const { return rows_; }
  void multiply(double factor);

 private:
  std::vector<shared_rate> rows_;
};

struct peer_rate {
  int from, to;
  double rate;
};

/// Copies between devices of one machine that do not pass through host memory.
struct peer_links {
  double latency;  ///< seconds
  std::vector<peer_rate> pairs;
  /// The rate of each device while all of them copy from their neighbours; if empty, the rate of a pair is used.
  rate_table together = {};
  /// The rate of each device while kernels on all of them read the memory of their neighbours; if empty, the rate of
  /// copies is used.
  rate_table by_kernels = {};
  /// Returns the rate of the slowest pair among the first `devices` devices, or of the slowest of all pairs if the
  /// profile has no pair among these devices. The result is at most the rate of each copy while all these devices copy.
  [[nodiscard]] double rate(int devices) const;
  /// Returns the corresponding rate of kernels that read the memory of other devices.
  [[nodiscard]] double rate_of_kernels(int devices) const;
};

struct network {
  double rate;     ///< rate of messages from one machine to another, bytes per second
  double latency;  ///< seconds
  /// The rate at which each machine sends, by the number of machines that send to and receive from neighbours at the
  /// same time. If empty, `rate` is used.
  rate_table together = {};
  [[nodiscard]] double rate_together(int machines) const {
    return together.empty() ? rate : std::min(rate, together.of_each(machines));
  }
};

/// Rates are bytes per second, times seconds, sizes bytes.
struct machine_profile {
  std::string name;
  std::string origin;                ///< "published" or "measured"
  std::vector<std::string> sources;  ///< the publications of published figures, or the program that measured

  int devices = 1;            ///< devices in one machine; predictions for more devices are extrapolations
  double device_memory = 0;   ///< bytes of each device's memory
  double relative_speed = 1;  ///< speed of kernels, relative to the device of the specification's reference time
  double kernel_memory = 0;   ///< rate at which a kernel reads and writes memory of its device; 0: not known
  /// The speed of kernels on each device while several devices run kernels, relative to one device alone; an empty
  /// table means 1. The first table is for kernels bound by arithmetic, the second for kernels bound by memory.
  rate_table speeds_together, memory_speeds_together;
  /// Relative speeds of kernels bound by arithmetic, kernels bound by memory, and copies from and to pageable memory,
  /// while one device of each of several machines works. The values are below 1 for "machines" that share processors,
  /// as network namespaces do.
  rate_table speeds_on_machines, memory_speeds_on_machines, copy_speeds_on_machines;
  double launch = 0;        ///< time from a launch to the start of its kernel
  double kernel_floor = 0;  ///< time of an empty kernel
  double wave = 0;          ///< blocks of threads that a device runs at once; 0: not known

  rate_table pinned_to_device, pinned_to_host, pageable_to_device, pageable_to_host;
  rate_table both_ways;  ///< sum of both directions' rates at once, pinned memory; empty: the faster direction's rate
  double link_latency = 0;      ///< latency of a copy between pinned memory and a device
  double pageable_latency = 0;  ///< latency of a copy between pageable memory and a device

  double host_memory = 0;               ///< bytes that programs can use
  double host_copy = 0;                 ///< rate of a copy within host memory
  double pinned_allocation = 0;         ///< constant part of the time to allocate pinned memory
  double pinned_allocation_a_byte = 0;  ///< additional time for each byte of pinned memory
  double disk = 0;                      ///< rate of reads, or of writes

  std::optional<peer_links> peers;
  std::optional<network> between_nodes;
  std::optional<network> between_ranks;  ///< between MPI ranks on one machine

  /// The speeds of kernels bound by arithmetic and of kernels bound by memory while several devices run kernels,
  /// relative to a specification's reference. If the profile has no speed for kernels bound by memory, both speeds are
  /// the same.
  struct speeds {
    double arithmetic, memory;
  };
  [[nodiscard]] speeds on_one_machine(int devices) const;
  [[nodiscard]] speeds on_machines(int machines) const;
};

/// Return the profile in a file, or in a JSON text from the file `file`. Throw bad_input, which names the file and the
/// field, for JSON that is not a profile.
[[nodiscard]] machine_profile read_profile(const std::string& file);
[[nodiscard]] machine_profile profile_of_json(const std::string& text, const std::string& file);

[[nodiscard]] std::string as_json(const machine_profile& m);

/// Returns the profile with changed parts, as in "link=2x,network=10x", which multiplies rates by 2 and 10. The parts
/// are link (both directions, pinned and pageable), peer, network, disk, host (copies in host memory), gpu (speed of
/// kernels) and memory (size of host memory). Throws bad_input for another part, a part that the machine lacks, and a
/// factor that is not above 0.
[[nodiscard]] machine_profile with_changes(machine_profile m, const std::string& changes);

}  // namespace hpe::predict
