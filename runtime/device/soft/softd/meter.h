#pragma once

/// Kernels of PTX take time on links with a limit, for their accesses to the memory of other devices and of the host.
///
/// The interpreter runs some blocks of a launch, and counts the bytes that they read and write of other memories. A
/// sector of 32 bytes counts once for each block that reads it, and once for each that writes it, as if the caches kept
/// it for the rest of the block; an atomic operation counts each time. The launch is charged for all of its blocks.
/// The blocks at the edges of the grid are sampled for themselves, because halos are there.

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
/// By device, or host_location, or foreign_location.
using remote_traffic = std::map<int, remote_bytes>;

/// The numbers of the blocks that are counted (with x fastest), and how many blocks each stands for: all blocks of a
/// small grid. Blocks of clusters are counted whole clusters apart, at the first block of each.
[[nodiscard]] std::unordered_map<std::uint64_t, double> sampled_blocks(const ptx::dimensions& grid,
                                                                       const ptx::dimensions& cluster);

/// The count of one launch. Thread-safe.
class traffic_count {
 public:
  traffic_count(unsigned device, const address_space& memory, const ptx::launch_configuration& launch);

  /// An engine that counts in sampled blocks and runs all others with `usual`. The count must outlive the engine.
  [[nodiscard]] std::shared_ptr<ptx::engine> engine_over(std::shared_ptr<ptx::engine> usual);

  void add(const remote_traffic& of_some_blocks);
  [[nodiscard]] remote_traffic total();

  const unsigned device;
  const address_space& memory;
  const ptx::program& program;
  const std::unordered_map<std::uint64_t, double> weights;  // of blocks, by number

 private:
  mutex mutex_;
  remote_traffic total_ HPE_GUARDED_BY(mutex_);
};

/// Makes launches take time on the links of a device. A launch like an earlier one, of the same kernel with the same
/// shape and parameters, is charged the same; every 16th one is counted anew, because data may have changed.
/// Thread-safe.
class link_meter {
 public:
  link_meter(unsigned device, fabric& shared, const address_space& memory)
      : device_(device), shared_(shared), memory_(memory) {}

  /// To be called before a launch: null if its traffic is known, or no link has a limit.
  [[nodiscard]] std::unique_ptr<traffic_count> begin(const ptx::launch_configuration& launch);
  /// To be called after the launch, with what begin returned. Waits until the links have carried the traffic; `start`
  /// is the time of the links at which the launch began.
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
