#pragma once

/// Delays the end of PTX launches: if a simulated link has a limit, a launch takes at least as long as the link needs
/// for the kernel's accesses to the memory of other devices and of the host.
///
/// The interpreter runs some blocks of a launch, and counts the bytes that these blocks read and write in the memory of
/// other devices and of the host. A sector of 32 bytes counts once for each block that reads it, and once for each
/// block that writes it, as if the caches kept the sector until the block ends. Each atomic operation counts as 32
/// written bytes. The count is then scaled to all blocks of the launch. Blocks at the edges of the grid are sampled
/// separately, because they often access halos in the memory of other devices.

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

/// The bytes that a launch reads from another memory, and writes to it.
struct remote_bytes {
  double read = 0, written = 0;
};
/// Traffic by device number, host_location or foreign_location.
using remote_traffic = std::map<int, remote_bytes>;

/// Returns a map from the number of each sampled block to the number of blocks that it represents. Blocks are numbered
/// with x fastest. In a small grid, all blocks are sampled. If the launch has clusters, whole clusters are sampled, and
/// the map contains the number of each cluster's first block.
[[nodiscard]] std::unordered_map<std::uint64_t, double> sampled_blocks(const ptx::dimensions& grid,
                                                                       const ptx::dimensions& cluster);

/// Counts the traffic of one launch. Thread-safe.
class traffic_count {
 public:
  traffic_count(unsigned device, const address_space& memory, const ptx::launch_configuration& launch);

  /// Returns an engine that runs sampled blocks with an interpreter that counts their traffic, and all other blocks
  /// with `usual`. This object must outlive the engine.
  [[nodiscard]] std::shared_ptr<ptx::execution_engine> engine_over(std::shared_ptr<ptx::execution_engine> usual);

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

/// Makes launches wait for the links of a device. The traffic is counted at the first launch with the same kernel,
/// shape and parameters, and again at every 16th of these launches, because the data that determines the traffic may
/// have changed. The other launches wait for the traffic that was counted last. Thread-safe.
class link_meter {
 public:
  link_meter(unsigned device, fabric& shared, const address_space& memory)
      : device_(device), shared_(shared), memory_(memory) {}

  /// Call this before a launch. Returns the object that must count the traffic of the launch; null if the traffic of an
  /// equal launch is known, or if no link has a limit.
  [[nodiscard]] std::unique_ptr<traffic_count> begin(const ptx::launch_configuration& launch);
  /// Call this after the launch, with the result of begin. Waits until the links have transferred the launch's traffic.
  /// `start`: the link time at which the launch began.
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
