#pragma once

/// Where the blocks of a grid run and where the arrays should lie.

#include <string>
#include <vector>

#include "runtime/spread/launch.h"

namespace hpe::spread {

/// Blocks first <= index < first + count of each axis.
struct block_range {
  dimension first{0, 0, 0}, count{0, 0, 0};
  [[nodiscard]] std::uint64_t blocks() const { return std::uint64_t{count[0]} * count[1] * count[2]; }
  [[nodiscard]] bool contains(const dimension& block) const;
  bool operator==(const block_range&) const = default;
};

/// The parts of a grid: each block is in exactly one.
struct cut {
  std::array<std::uint32_t, 3> pieces{1, 1, 1};  // along each axis
  std::vector<block_range> parts;                // of each device; without blocks: the device runs nothing
  [[nodiscard]] bool is_spread() const { return pieces[0] * pieces[1] * pieces[2] > 1; }
};

/// pieces[0] * pieces[1] * pieces[2] parts as equal as whole blocks allow, along x first, for that many devices.
[[nodiscard]] cut cut_grid(const dimension& grid, const std::array<std::uint32_t, 3>& pieces);
/// About equal parts along the last axis that has several blocks, because arrays in row order are divided along that
/// axis; devices beyond the number of blocks get none.
[[nodiscard]] cut cut_evenly(const dimension& grid, std::uint32_t devices);
/// The whole grid on one device.
[[nodiscard]] cut whole_grid(const dimension& grid, std::uint32_t devices, device_number on);

struct placement {
  enum class kind : std::uint8_t {
    stay,        // as it is now; also host memory and arrays that cannot move
    one,         // in the memory of one device, `home`
    parts,       // device d has bytes bounds[d] <= offset < bounds[d + 1], bounds at multiples of the granule
    cyclic,      // runs of `run` bytes, a multiple of the granule, go round the devices
    replicated,  // each device has a copy; only for arrays that the kernel does not write
  };
  kind how = kind::stay;
  device_number home = 0;
  std::vector<std::uint64_t> bounds;
  std::uint64_t run = 0;
  bool operator==(const placement&) const = default;
};

/// The homes that an allocation has under a placement; for stay and replicated those that it has now.
[[nodiscard]] std::vector<home_run> homes_under(const placement& p, const allocation& a, std::uint32_t devices);
/// As in "parts of 512 MiB", for reports.
[[nodiscard]] std::string words_of(const placement& p);

/// A plan that the decision compared, and its predicted time.
struct alternative {
  std::string name;         // "one device", "cut along y", "cut along y, arrays moved"
  double seconds = 0;       // of the kernel, with the launches
  double move_seconds = 0;  // before it, once
  double remote_bytes = 0, local_bytes = 0;
  double imbalance = 0;  // largest part / mean part - 1
};

/// For each pointer of the kernel (kernel_model::pointers).
struct array_decision {
  placement move_to;         // before this launch; stay: nothing is to be done
  bool use_replica = false;  // each device's launch gets the pointer to its own copy (same offset in it)
};

struct decision {
  cut how;
  std::vector<array_decision> arrays;
  double seconds = 0;         // predicted for this launch
  double seconds_on_one = 0;  // predicted for one device, with the arrays in its memory
  std::vector<alternative> alternatives;
  std::string reason;  // one sentence: why it is spread like this, or why it stays on one device

  [[nodiscard]] bool is_spread() const { return how.is_spread(); }
};

}  // namespace hpe::spread
