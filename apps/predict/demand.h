#pragma once

/// The work, transfers and memory of an application on a given number of devices: the values of the formulas in its
/// specification. The models use no other data about the application.

#include <map>
#include <string>
#include <vector>

namespace hpe::predict {

/// shared: all devices in one machine. distributed: one device in each machine, with a network between them.
enum class topology { shared, distributed };

enum class direction { to_device, to_host };

/// The pattern of messages among the members. `bytes` is the size of a message from one member to another, or of the
/// whole message for broadcast and all_reduce.
enum class pattern { gather, scatter, broadcast, all_gather, all_reduce, all_to_all, halo, shift };

/// A transfer of bytes between the host and each device.
struct transfer {
  std::string name;
  direction where;
  double bytes;   ///< bytes that one device transfers
  double pieces;  ///< number of copies into which the bytes are divided
  bool pinned;
  bool each_iteration;  ///< true: in each iteration; false: once in a run
  bool overlap;         ///< the transfer runs at the same time as kernels and all other overlapping work
  double disk_passes;   ///< how often the disk transfers the bytes if they are not in host memory; 2 if they also evict
                        ///< other bytes to the disk
};

/// A transfer of bytes between devices.
struct exchange {
  std::string name;
  pattern how;
  double bytes;
  double members;  ///< devices in one exchange; all groups of members exchange concurrently
  double rounds;   ///< number of exchanges, one after the other
  double copied;   ///< bytes that a shared system copies within host memory, in the paper's model
  bool each_iteration;
  bool overlap;
  /// If kernels exchange the data themselves: the bytes that each kernel reads and writes in its own device's memory in
  /// one round. The reference time includes these kernels, and links transfer while these kernels run. 0: copies
  /// exchange the data.
  double kernel_bytes = 0;
};

struct demand {
  int devices;
  topology where;
  double iterations;
  double units;    ///< units of work of all devices in an iteration
  double granule;  ///< number of units that must be on the same device, as in a row of an image
  double block;    ///< units in a block of threads; 0: not known
  double launches;
  double reference_seconds;  ///< time of kernels for reference_units on one device
  double reference_units;
  double reference_bytes;  ///< bytes of device memory that these kernels read and write; 0: bound by arithmetic
  double cpu_seconds;      ///< CPU time of an iteration during which devices are idle
  double host_bytes;       ///< bytes of host memory allocated on one machine
  double device_bytes;     ///< bytes of device memory allocated on one device
  std::vector<transfer> transfers;
  std::vector<exchange> exchanges;
};

/// The resources whose busy times a prediction adds up or overlaps.
enum class resource { kernels, cpu, to_device, to_host, disk, pinning, host_copies, peers, network };

[[nodiscard]] const char* name_of(topology where);
[[nodiscard]] const char* name_of(resource r);

/// The seconds of a run, and the seconds during which each resource is busy.
struct estimate {
  double seconds = 0;
  std::map<resource, double> busy;
  /// Returns the resource that is busy longest.
  [[nodiscard]] resource bound() const;
  /// Returns the busy time of a resource; 0 if the run does not use the resource.
  [[nodiscard]] double seconds_of(resource r) const;
};

}  // namespace hpe::predict
