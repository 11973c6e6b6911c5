#pragma once

/// Times passes over near and far memory, and checks their results.

#include <memory>
#include <optional>
#include <vector>

#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/remote/pass.h"
#include "hpe/hpe.hpp"
#include "hpe/ndarray.hpp"

namespace hpe::bench::remote {

/// Where far memory is, as seen from the device that runs the pass.
enum class target { own, peer, host };

struct setting {
  target where = target::own;
  double far_reads = 0, far_writes = 0;  ///< shares of all elements, from 0 to 1
  bool in_columns = true;                ///< the far elements are columns, not rows
  uint32_t steps = 0;
  bool reads = true, writes = true;
  double occupancy = 1;  ///< share of the threads that a device can hold
  bool on_both = false;  ///< devices 0 and 1 both run the pass; each one's peer is the other
};

/// The rates over the time of a pass, which is divided into equal spans. A tile is counted in the span in which it
/// ended, as near or far bytes depending on the memory that it read.
struct time_line {
  double seconds_a_span = 0;
  std::vector<double> near_bytes, far_bytes;  ///< bytes per second, for each span
};

class experiment {
 public:
  /// bytes: the size of one array, a multiple of the bytes of 1024 tiles. Arrays hold random numbers.
  experiment(std::size_t bytes, unsigned repeats);
  ~experiment();

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Whether the times of kernels show the cost of far memory: true for GPUs, and for soft devices whose links have
  /// limits. Such soft devices run PTX kernels, because only PTX kernels take time on links.
  [[nodiscard]] bool has_links() const noexcept { return on_gpus() || ptx_.has_value(); }

  /// The memories that device 0 can use: its own, that of device 1 if the devices reach each other, and that of the
  /// host.
  [[nodiscard]] const std::vector<target>& targets() const noexcept { return targets_; }
  /// The far memory for experiments that use one far memory: the peer's if there is a peer, else the host's.
  [[nodiscard]] target usual_target() const noexcept { return targets_[1]; }

  /// Returns the seconds of a pass. The caches of both devices are emptied before each pass. Checks the results of the
  /// first run, and throws std::runtime_error if one is wrong.
  [[nodiscard]] timing seconds(const setting& s);
  [[nodiscard]] time_line progress(const setting& s, std::size_t spans);
  /// Returns the seconds of a copy of one array from the memory `where` to near memory.
  [[nodiscard]] timing seconds_of_copy(target where);

  struct look_up_result {
    timing time;
    std::size_t bytes;  ///< the number of bytes that all threads together read
  };
  /// Times a kernel in which all threads of device 0 read a table of `table_bytes` bytes (a power of two, at least 64).
  [[nodiscard]] look_up_result look_up_seconds(target where, std::size_t table_bytes, double occupancy, bool read_only);

  struct adding_result {
    timing time;
    double adds;
  };
  /// Times a kernel in which all threads of device 0 add to `entries` counters (a power of two) by atomic operations of
  /// system scope.
  [[nodiscard]] adding_result adding_seconds(target where, uint32_t entries);

  /// Returns the seconds of filtering an image of side x side pixels in near memory with weights in the memory `where`.
  [[nodiscard]] timing filter_seconds(uint32_t side, uint32_t reach, target where, weight_path path);

 private:
  struct side;

  [[nodiscard]] side& side_of(int device);
  [[nodiscard]] const hpe::array<element>& far_in(side& s, target where);
  [[nodiscard]] const hpe::array<element>& far_out(side& s, target where);
  [[nodiscard]] hpe::array<element> random_array(const hpe::placement& place, std::size_t count, near_or_far which);
  /// The placement of an array in the memory `where`, as seen from a device.
  [[nodiscard]] static hpe::placement place_of(target where, int device = 0);
  [[nodiscard]] uint32_t blocks(double occupancy) const;
  void launch(int device, const setting& s, uint64_t* stamps);
  void check(int device, const setting& s);
  void empty_caches();
  /// Queues a kernel; `name` is its name in the PTX module.
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
  std::vector<element> patterns_[2];  // near arrays repeat the first, far arrays the second
  std::vector<target> targets_;
  std::vector<hpe::array<std::byte>> caches_;
  std::unique_ptr<side> sides_[2];
};

}  // namespace hpe::bench::remote
