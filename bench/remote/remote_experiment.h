#pragma once

/// Times passes of kernels over arrays in near memory (the device's own) and far memory (another device's or the
/// host's), and checks the results.

#include <memory>
#include <optional>
#include <vector>

#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/remote/pass.h"
#include "hpe/hpe.hpp"
#include "hpe/ndarray.hpp"

namespace hpe::bench::remote {

/// Where far memory is, relative to the device that runs the pass.
enum class target { own, peer, host };

struct setting {
  target where = target::own;
  double far_reads = 0, far_writes = 0;  ///< shares of all elements that are in far memory, from 0 to 1
  bool in_columns = true;                ///< the elements in far memory are columns (true) or rows (false)
  uint32_t steps = 0;
  bool reads = true, writes = true;
  double occupancy = 1;  ///< share of the threads that the device can run at a time
  bool on_both = false;  ///< devices 0 and 1 both run the pass; for each, the other is the peer
};

/// The rates during a pass, whose time is divided into equal spans. A tile counts in the span in which its processing
/// ended: as near bytes if it was read from near memory, else as far bytes.
struct time_line {
  double seconds_a_span = 0;
  std::vector<double> near_bytes, far_bytes;  ///< bytes per second in each span
};

class experiment {
 public:
  /// bytes: the size of one array, which must be a multiple of the size of 1024 tiles. The arrays contain random
  /// numbers.
  experiment(std::size_t bytes, unsigned repeats);
  ~experiment();

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Whether far memory costs time: true for GPUs, and for soft devices whose links have limits (HPE_SOFT_PEER_LINK,
  /// HPE_SOFT_HOST_LINK). Soft devices with such links run the kernels as PTX, because hpe simulates links only for PTX
  /// kernels.
  [[nodiscard]] bool has_links() const noexcept { return on_gpus() || ptx_.has_value(); }

  /// The memories that device 0 can access: its own, device 1's if the devices can access each other, and the host's.
  [[nodiscard]] const std::vector<target>& targets() const noexcept { return targets_; }
  /// The far memory of experiments that use only one: the peer's if there is a peer, else the host's.
  [[nodiscard]] target usual_target() const noexcept { return targets_[1]; }

  /// Returns the seconds of a pass with the setting s. The caches of both devices are emptied before each timed pass.
  /// The results of the first run are checked; throws std::runtime_error if one is wrong.
  [[nodiscard]] timing seconds(const setting& s);
  /// Returns the rates during one pass with the setting s, in `spans` spans of equal length. The results of the pass
  /// are checked; throws std::runtime_error if one is wrong.
  [[nodiscard]] time_line progress(const setting& s, std::size_t spans);
  /// Returns the seconds of a copy of one array from the memory `where` to the device's own memory.
  [[nodiscard]] timing seconds_of_copy(target where);

  struct look_up_result {
    timing time;
    std::size_t bytes;  ///< the bytes that all threads together read
  };
  /// Times a kernel in which all threads of device 0 read a table of `table_bytes` bytes (a power of two, at least 64).
  [[nodiscard]] look_up_result look_up_seconds(target where, std::size_t table_bytes, double occupancy, bool read_only);

  struct adding_result {
    timing time;
    double adds;
  };
  /// Times a kernel in which all threads of device 0 add to `entries` counters (a power of two) in the memory `where`,
  /// by atomic operations of system scope.
  [[nodiscard]] adding_result adding_seconds(target where, uint32_t entries);

  /// Returns the seconds of a filter of an image of side x side pixels in near memory, with the filter's weights in the
  /// memory `where`.
  [[nodiscard]] timing filter_seconds(uint32_t side, uint32_t reach, target where, weight_path path);

 private:
  struct side;

  [[nodiscard]] side& side_of(int device);
  [[nodiscard]] const hpe::array<element>& far_in(side& s, target where);
  [[nodiscard]] const hpe::array<element>& far_out(side& s, target where);
  [[nodiscard]] hpe::array<element> random_array(const hpe::placement& place, std::size_t count, near_or_far which);
  /// Returns the placement of an array in the memory `where`, relative to a device.
  [[nodiscard]] static hpe::placement place_of(target where, int device = 0);
  [[nodiscard]] uint32_t blocks(double occupancy) const;
  void launch(int device, const setting& s, uint64_t* stamps);
  void check(int device, const setting& s);
  void empty_caches();
  /// Queues a kernel on a device; `name` is the kernel's name in the PTX module.
  template <class Parameters, class... Accesses>
  void launch_on(int device, const hpe::kernel<Parameters>& kernel, const char* name, uint32_t blocks,
                 const Parameters& parameters, const Accesses&... accesses) const;

  const std::size_t bytes_;
  const unsigned repeats_;
  const uint32_t rows_, columns_;
  const hpe::module module_;
  const hpe::kernel<pass> pass_;
  const hpe::kernel<look_up> look_up_;
  const hpe::kernel<adding> adding_;
  const hpe::kernel<filter> filter_;
  std::optional<hpe::ptx_module> ptx_;
  std::vector<element> patterns_[2];  // near arrays repeat the first pattern, far arrays the second
  std::vector<target> targets_;
  std::vector<hpe::array<std::byte>> caches_;
  std::unique_ptr<side> sides_[2];
};

}  // namespace hpe::bench::remote
