#pragma once

/// Makes kernels of PTX take the time that limited links need for the kernels' accesses to the memory of other devices
/// and of the host.
///
/// The interpreter runs some blocks of a launch, and counts the bytes that these blocks read and write in the memory of
/// other devices and of the host. A sector of 32 bytes counts once for each block that reads it, and once for each
/// block that writes it, as if the caches kept the sector for the rest of the block; an atomic operation counts each
/// time. The result is scaled to all blocks of the launch. The blocks at the edges of the grid are sampled separately,
/// because they access halos.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "runtime/base/thread_safety.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/softd/memory.h"
#include "runtime/ptx/execution/interpreter.h"

namespace hpe::device::soft {

/// Bytes that a launch moves between its device and another memory.
struct remote_bytes {
  double read = 0, written = 0;
};
/// Traffic by device number, host_location or foreign_location.
using remote_traffic = std::map<int, remote_bytes>;

/// Returns the numbers of the sampled blocks (with x fastest), and how many blocks each of them represents. In a small
/// grid, all blocks are sampled. In a grid of clusters, whole clusters are sampled; a cluster has the number of its
/// first block.
[[nodiscard]] std::unordered_map<std::uint64_t, double> sampled_blocks(const ptx::dimensions& grid,
                                                                       const ptx::dimensions& cluster);

/// Counts the traffic of one launch. Thread-safe.
class traffic_count {
 public:
  traffic_count(unsigned device, const address_space& memory, const ptx::launch_configuration& launch);

  /// Returns an engine that counts the traffic of sampled blocks and runs all other blocks with `usual`. This object
  /// must outlive the engine.
  [[nodiscard]] std::shared_ptr<ptx::engine> engine_over(std::shared_ptr<ptx::engine> usual);

  void add(const remote_traffic& of_some_blocks);
  [[nodiscard]] remote_traffic total();

  const unsigned device;
  const address_space& memory;
  const ptx::program& program;
  const std::unordered_map<std::uint64_t, double> weights;  // weights of blocks, by number

 private:
  mutex mutex_;
  remote_traffic total_ HPE_GUARDED_BY(mutex_);
};

/// Makes launches take time on the links of a device. A launch takes the same time as an earlier launch with the same
/// kernel, shape and parameters. The traffic of every 16th of these launches is counted again, because data may have
/// changed. Thread-safe.
class link_meter {
 public:
  link_meter(unsigned device, fabric& shared, const address_space& memory)
      : device_(device), shared_(shared), memory_(memory) {}

  /// Call this before a launch. Returns null if the launch's traffic is known, or if no link has a limit.
  [[nodiscard]] std::unique_ptr<traffic_count> begin(const ptx::launch_configuration& launch);
  /// Call this after the launch, with the result of begin. Waits until the links have carried the traffic; `start` is
  /// the link time at which the launch began.
  void end(const ptx::launch_configuration& launch, traffic_count* counted, std::uint64_t start);

 private:
  struct known {
    remote_traffic traffic;
    unsigned uses = 0;
  };

  [[nodiscard]] bool has_limits() const;

  const unsigned device_;
  fabric& shared_;
  const address_space& memory_;
  mutex mutex_;
  std::unordered_map<std::string, known> launches_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::soft
