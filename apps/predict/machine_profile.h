#pragma once

/// What the models need to know of a machine. `hpe bench machine` measures a profile and writes it as JSON, which
/// docs/schemas/machine.json describes; apps/predict/machines has profiles of published figures.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "apps/predict/expression.h"

namespace hpe::predict {

/// The rate of each device while `devices` devices are busy, in bytes per second.
struct shared_rate {
  int devices;
  double rate;
};

/// Rates for some numbers of devices, ascending.
class rate_table {
 public:
  rate_table() = default;
  /// Throws bad_input unless the numbers of devices ascend from 1 and all rates are positive.
  explicit rate_table(std::vector<shared_rate> rows);

  /// The rate of each device while `devices` devices are busy. Between two rows, the sum of all devices is
  /// interpolated. Beyond the last row, all devices together get no more than in the last row. The table must not be
  /// empty.
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
  /// The rate of each device while all of them copy from their neighbours; empty: that of a pair.
  rate_table together = {};
  /// The rate of each device while kernels on all of them read the memory of their neighbours; empty: that of copies.
  rate_table by_kernels = {};
  /// The rate of the slowest pair among the first `devices` devices, or of all pairs if the profile has none among
  /// them; but at most the rate of each copy while all these devices copy.
  [[nodiscard]] double rate(int devices) const;
  /// The same for kernels that read the memory of other devices.
  [[nodiscard]] double rate_of_kernels(int devices) const;
};

struct network {
  double rate;     ///< bytes per second, of messages from one machine to another
  double latency;  ///< seconds
  /// What each machine sends while so many send to their neighbours and receive from them; empty: the rate.
  rate_table together = {};
  [[nodiscard]] double rate_together(int machines) const {
    return together.empty() ? rate : std::min(rate, together.of_each(machines));
  }
};

/// Rates are bytes per second, times seconds, sizes bytes.
struct machine_profile {
  std::string name;
  std::string origin;                ///< "published" or "measured"
  std::vector<std::string> sources;  ///< of published figures: the publications; of measured ones: the program

  int devices = 1;            ///< in one machine. Predictions for more of them are extrapolations
  double device_memory = 0;   ///< of each device
  double relative_speed = 1;  ///< of its kernels, against the device of the specification's reference time
  double kernel_memory = 0;   ///< rate at which a kernel reads and writes memory of its device; 0: not known
  /// The speed of kernels on each device while several devices run kernels, relative to one device alone; empty: 1. For
  /// kernels bound by arithmetic, and for kernels bound by memory.
  rate_table speeds_together, memory_speeds_together;
  /// The same while one device of each of several machines runs kernels, or copies from and to pageable memory. Below 1
  /// for "machines" that share processors, as network namespaces do.
  rate_table speeds_on_machines, memory_speeds_on_machines, copy_speeds_on_machines;
  double launch = 0;        ///< from a launch to the kernel's begin
  double kernel_floor = 0;  ///< time of an empty kernel
  double wave = 0;          ///< blocks of threads that a device runs at once; 0: not known

  rate_table pinned_to_device, pinned_to_host, pageable_to_device, pageable_to_host;
  rate_table both_ways;         ///< both directions together, pinned; empty: no more than the faster direction
  double link_latency = 0;      ///< of a copy between host and device, pinned
  double pageable_latency = 0;  ///< the same, pageable

  double host_memory = 0;               ///< that programs can use
  double host_copy = 0;                 ///< rate of a copy within host memory
  double pinned_allocation = 0;         ///< constant part of the time of an allocation
  double pinned_allocation_a_byte = 0;  ///< additional time for each byte
  double disk = 0;                      ///< rate in one direction

  std::optional<peer_links> peers;
  std::optional<network> between_nodes;
  std::optional<network> between_ranks;  ///< of MPI, on one machine

  /// The speed of kernels while this number of devices run kernels, relative to a specification's reference: of kernels
  /// that arithmetic bounds, and of kernels that memory bounds. Without figures for the latter, both are the same.
  struct speeds {
    double arithmetic, memory;
  };
  [[nodiscard]] speeds on_one_machine(int devices) const;
  [[nodiscard]] speeds on_machines(int machines) const;
};

/// Throws bad_input, with the file and the field, for JSON that is no profile.
[[nodiscard]] machine_profile read_profile(const std::string& file);
[[nodiscard]] machine_profile profile_of_json(const std::string& text, const std::string& file);

[[nodiscard]] std::string as_json(const machine_profile& m);

/// A machine with other parts: "link=2x,network=10x". The parts are link (both directions, pinned and pageable), peer,
/// network, disk, host (copies in host memory), gpu (speed of kernels) and memory (of the host). Throws bad_input.
[[nodiscard]] machine_profile with_changes(machine_profile m, const std::string& changes);

}  // namespace hpe::predict
