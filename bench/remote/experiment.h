#pragma once

/// Timed passes over near and far memory, whose results are checked.

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

/// The tiles that ended in equal spans of a pass, each counted where it read.
struct time_line {
  double seconds_a_span = 0;
  std::vector<double> near_bytes, far_bytes;  ///< a second, for each span
};

class experiment {
 public:
  /// bytes: of one array; a multiple of the bytes of 1024 tiles. Arrays hold random numbers.
  experiment(std::size_t bytes, unsigned repeats);
  ~experiment();

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Whether the times of kernels tell what far memory costs: on GPUs, and on soft devices whose links have limits.
  /// There the kernels are of PTX, because only those take time on links.
  [[nodiscard]] bool has_links() const noexcept { return on_gpus() || ptx_.has_value(); }

  /// The memories that device 0 can use: its own, that of the host, and that of device 1 if it reaches device 1.
  [[nodiscard]] const std::vector<target>& targets() const noexcept { return targets_; }
  /// The far memory of experiments that need only one: the peer's if there is a peer, else the host's.
  [[nodiscard]] target usual_target() const noexcept { return targets_[1]; }

  /// Seconds of a pass. Caches of both devices hold nothing of the arrays when a pass begins. The results of the first
  /// run are checked; throws std::runtime_error if one is wrong.
  [[nodiscard]] timing seconds(const setting& s);
  [[nodiscard]] time_line progress(const setting& s, std::size_t spans);
  /// Seconds of a copy of one array from there to near memory.
  [[nodiscard]] timing seconds_of_copy(target where);

  struct look_up_result {
    timing time;
    std::size_t bytes;  ///< that all threads together read
  };
  /// All threads of device 0 read a table of so many bytes, a power of two from 64.
  [[nodiscard]] look_up_result look_up_seconds(target where, std::size_t table_bytes, double occupancy, bool read_only);

  struct adding_result {
    timing time;
    double adds;
  };
  /// All threads of device 0 add to `entries` counters, a power of two, by atomic operations that all devices see.
  [[nodiscard]] adding_result adding_seconds(target where, uint32_t entries);

  /// Seconds of filtering an image of side x side pixels in near memory with weights that lie in `where`.
  [[nodiscard]] timing filter_seconds(uint32_t side, uint32_t reach, target where, weight_path path);

 private:
  struct side;

  [[nodiscard]] side& side_of(int device);
  [[nodiscard]] const hpe::array<element>& far_in(side& s, target where);
  [[nodiscard]] const hpe::array<element>& far_out(side& s, target where);
  [[nodiscard]] hpe::array<element> random_array(const hpe::placement& place, std::size_t count, near_or_far which);
  /// Memory as seen from a device.
  [[nodiscard]] static hpe::placement place_of(target where, int device = 0);
  [[nodiscard]] uint32_t blocks(double occupancy) const;
  void launch(int device, const setting& s, uint64_t* stamps);
  void check(int device, const setting& s);
  void empty_caches();
  /// Queues a kernel, `name` in the module of PTX.
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
  std::vector<element> patterns_[2];  // near and far arrays each repeat one
  std::vector<target> targets_;
  std::vector<hpe::array<std::byte>> caches_;
  std::unique_ptr<side> sides_[2];
};

}  // namespace hpe::bench::remote
