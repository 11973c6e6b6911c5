#pragma once

/// The work of an application on a certain number of devices: the formulas of its specification, evaluated. The models
/// read nothing else of an application.

#include <map>
#include <string>
#include <vector>

namespace hpe::predict {

/// shared: all devices in one machine. distributed: one device in each machine, with a network between them.
enum class topology { shared, distributed };

enum class direction { to_device, to_host };

/// Who sends what to whom. Bytes are those of one member to one other, or of the whole message for broadcast and
/// all_reduce.
enum class pattern { gather, scatter, broadcast, all_gather, all_reduce, all_to_all, halo, shift };

/// Bytes between the host and each device.
struct transfer {
  std::string name;
  direction where;
  double bytes;   ///< of one device
  double pieces;  ///< copies that they are divided into
  bool pinned;
  bool each_iteration;  ///< else once in a run
  bool overlap;         ///< with kernels, and with everything else that overlaps
  double disk_passes;   ///< how often its bytes cross the disk if they are not in host memory; 2 if they also displace
                        ///< others
};

/// Bytes between devices.
struct exchange {
  std::string name;
  pattern how;
  double bytes;
  double members;  ///< devices in one exchange; all groups of members exchange concurrently
  double rounds;   ///< exchanges one after the other
  double copied;   ///< bytes that a shared system copies within host memory, in the paper's model
  bool each_iteration;
  bool overlap;
  /// If kernels make the exchange: the bytes of its device that each of these kernels reads and writes, in one round.
  /// Their time is in the reference, and links work beside them. 0: copies make the exchange.
  double kernel_bytes = 0;
};

struct demand {
  int devices;
  topology where;
  double iterations;
  double units;    ///< of all devices, in an iteration
  double granule;  ///< units that stay together
  double block;    ///< units in a block of threads; 0: not known
  double launches;
  double reference_seconds;  ///< kernels of reference_units on one device
  double reference_units;
  double reference_bytes;  ///< of device memory that these kernels read and write; 0: arithmetic bounds them
  double cpu_seconds;      ///< CPU time of an iteration during which devices are idle
  double host_bytes;       ///< allocated in one machine
  double device_bytes;     ///< allocated on one device
  std::vector<transfer> transfers;
  std::vector<exchange> exchanges;
};

/// The resources whose busy times a prediction adds up or overlaps.
enum class resource { kernels, cpu, to_device, to_host, disk, pinning, host_copies, peers, network };

[[nodiscard]] const char* name_of(topology where);
[[nodiscard]] const char* name_of(resource r);

/// The seconds of a run, and those in which each resource is busy.
struct estimate {
  double seconds = 0;
  std::map<resource, double> busy;
  /// The resource that is busy longest.
  [[nodiscard]] resource bound() const;
  /// 0 for a resource that the run does not use.
  [[nodiscard]] double seconds_of(resource r) const;
};

}  // namespace hpe::predict
