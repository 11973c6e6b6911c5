#pragma once

/// Sorting by radix on several GPUs: the parameters of the kernels, and the bits of the keys by which each pass orders.
///
/// Elements are sorted digit by digit, beginning with the lowest digit. Splitters, which are found in a sample of the
/// elements, divide the keys into one range for each device. The first pass orders the elements in the memory of each
/// device by range, and the elements of a range by their lowest bits. In this pass, each device accesses only its own
/// memory. On each device, the elements of one range with the same lowest bits are then consecutive; they are a *run*.
/// In the second pass, a device reads the runs of its range from all devices, in the order of the lowest bits, and
/// orders the elements by the next bits. The later passes access only the device's own range. Therefore, devices
/// exchange elements within the second pass, and the links carry long sequences.
///
/// A pass reads elements in tiles. Compared with splitters, equal keys in different tiles count as different, in the
/// order of tiles, so that ranges have about the same length even if many keys are equal. Counts determine where ranges
/// begin: near the bounds of the devices' parts of the array, but rarely exactly at these bounds. Therefore, a few
/// elements near each bound are written to another device.

#include <stdint.h>

#include "kernels/radix_parameters.h"

namespace hpe::kernels {

inline constexpr uint32_t radix_pass_threads = 384;
inline constexpr uint32_t radix_most_bins = 512, radix_first_bits = 9;
inline constexpr uint32_t radix_most_later_passes = 7;
inline constexpr uint32_t radix_samples = 1 << 14;
/// The largest number of elements of a sort: sums of tiles are 32-bit words, two bits of which are marks.
inline constexpr uint64_t radix_most_elements = uint64_t{1} << 30;

/// Returns the number of elements of a tile: as many as fit into the registers and the shared memory of a block.
[[nodiscard]] HPE_RADIX_BOTH constexpr uint32_t radix_tile_of(uint32_t element) {
  return radix_pass_threads * (element == 4 ? 19 : 96 / element);
}

/// A sequence of elements [begin, end), read in tiles whose bounds are multiples of 32 elements.
struct radix_sequence {
  uint64_t begin, end;

  [[nodiscard]] HPE_RADIX_BOTH uint64_t origin() const { return begin / 32 * 32; }
  [[nodiscard]] HPE_RADIX_BOTH uint32_t tiles(uint32_t tile) const {
    return begin < end ? uint32_t((end - origin() + tile - 1) / tile) : 0;
  }
  [[nodiscard]] HPE_RADIX_BOTH radix_sequence part(uint32_t number, uint32_t tile) const {
    const uint64_t next = origin() + (uint64_t{number} + 1) * tile;
    return {number == 0 ? begin : next - tile, next < end ? next : end};
  }
};

/// The bits of the keys by which each pass orders: pass 0 uses the lowest bits, pass 1 the next bits, and so on. The
/// number of passes is even, so that the result is in the array of the input.
struct radix_digits_of_passes {
  uint32_t key_bytes, devices;

  /// Returns the number of bits of a first-pass bin that are key bits; the other bits of the bin are the number of the
  /// range.
  [[nodiscard]] HPE_RADIX_BOTH uint32_t low_bits() const {
    uint32_t range_bits = 0;
    while (uint32_t{1} << range_bits < devices) ++range_bits;
    return radix_first_bits - range_bits;
  }
  [[nodiscard]] HPE_RADIX_BOTH uint32_t later_passes() const { return key_bytes == 4 ? 3 : radix_most_later_passes; }
  [[nodiscard]] HPE_RADIX_BOTH uint32_t passes() const { return 1 + later_passes(); }
  [[nodiscard]] HPE_RADIX_BOTH uint32_t bits(uint32_t pass) const {
    if (pass == 0) return low_bits();
    const uint32_t all = 8 * key_bytes - low_bits();
    return all / later_passes() + uint32_t(pass <= all % later_passes());
  }
  [[nodiscard]] HPE_RADIX_BOTH uint32_t shift(uint32_t pass) const {
    uint32_t result = 0;
    for (uint32_t before = 0; before < pass; ++before) result += bits(before);
    return result;
  }
  /// Returns the number of bins of the kernel that makes the pass.
  [[nodiscard]] HPE_RADIX_BOTH uint32_t bins(uint32_t pass) const { return pass > 0 && bits(pass) <= 8 ? 256 : 512; }
};

/// The number of elements of one device's input in each bin of the first pass, and the numbers for each later pass,
/// range and digit. All members must be zero before kernel radix_count_NAME runs.
struct radix_pass_counts {
  uint64_t first[radix_most_bins];
  uint64_t later[radix_most_later_passes][radix_most_devices][radix_most_bins];
};

/// The state of the passes on one device.
struct radix_pass_state {
  uint64_t splitter_keys[radix_most_devices], splitter_places[radix_most_devices];
  // for each pass and bin, where the bin begins in the output
  uint64_t offsets[1 + radix_most_later_passes][radix_most_bins];
  radix_sequence range;                                ///< this device's range: its part of the sorted array
  radix_sequence runs[radix_most_bins];                ///< the input of pass 1
  uint32_t run_count, run_tiles[radix_most_bins + 1];  ///< run_tiles: for each run, the tiles of all earlier runs
  uint32_t next_tile[1 + radix_most_later_passes];     ///< for each pass, the number of tiles that blocks have taken
};

/// The parameters of all kernels of a sort, on one device. In the names of the kernels below, NAME is the name of a
/// type in sort.def.
///
/// Kernel radix_sample finds the splitters, each by a block of radix_sample_threads threads; it is not launched for a
/// single device. Kernel radix_count_NAME counts the elements, and sets the sums of the first pass to zero; the grid
/// may have any size. Kernel radix_places computes `state` from the counts of all devices, by one block of
/// radix_most_bins threads. Kernel radix_pass_NAME makes one pass, and sets the sums of the next pass to zero; the grid
/// may have any number of blocks of radix_pass_threads threads. Kernel radix_pass_wide_NAME makes passes of 512 bins,
/// and radix_pass_first_NAME makes the first pass.
struct radix_pass_parameters {
  radix_types types;
  uint32_t devices, device;  ///< the number of devices, and the number of this device
  uint64_t begins[radix_most_devices + 1];
  radix_pass_counts* counts[radix_most_devices];
  radix_pass_state* state;
  const void* from;  ///< the elements of all devices before the pass, in one array
  void* to;          ///< the elements of all devices after the pass, in one array; used only by passes
  uint32_t pass;
  uint32_t *sums, *next_sums;  ///< by tile and bin: the sums of this pass and the next; next_sums may be null

  [[nodiscard]] HPE_RADIX_BOTH radix_digits_of_passes digits() const { return {types.key, devices}; }
  [[nodiscard]] HPE_RADIX_BOTH uint32_t tile() const { return radix_tile_of(types.element); }
  [[nodiscard]] HPE_RADIX_BOTH radix_sequence own() const { return {begins[device], begins[device + 1]}; }
};
inline constexpr uint32_t radix_sample_threads = 1024;

/// Returns the number of words in each of a device's two arrays of sums, for the most uneven division into ranges.
[[nodiscard]] inline uint64_t radix_sum_words(const radix_pass_parameters& p) {
  const uint64_t first = uint64_t{p.own().tiles(p.tile())} * radix_most_bins;
  const uint64_t tiles = p.begins[p.devices] / p.tile() + 2 * radix_most_bins;
  const uint64_t later =
      tiles * (p.digits().bins(1) > p.digits().bins(p.digits().later_passes()) ? radix_most_bins : p.digits().bins(1));
  return first > later ? first : later;
}

}  // namespace hpe::kernels
