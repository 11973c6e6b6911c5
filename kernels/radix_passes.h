#pragma once

/// Sorting by radix over several GPUs: the parameters of the kernels, and which bits of the keys each pass orders.
///
/// Elements are sorted digit by digit, the lowest digit first. Splitters, found in a sample, divide the keys into one
/// range for each device. The first pass orders the elements of each device by range, and the elements of a range by
/// their lowest bits, all in the memory of the device. So on each device, the elements of one range with the same
/// lowest bits are one *run*. In the second pass, a device reads the runs of its range from all devices, in the order
/// of the lowest bits, and orders them by the next bits. The later passes only work on the device's own range. So the
/// exchange needs no pass of its own, and the links carry long sequences.
///
/// The elements of a pass are read in tiles. For splitters, equal keys in different tiles are treated as different, in
/// the order of tiles, so that ranges have about the same length even if many keys are equal. Counts determine where
/// ranges begin: near the bounds of the devices' parts of the array, but rarely exactly there. So a few elements at
/// each bound are written to another device.

#include <stdint.h>

#include "kernels/radix.h"

namespace hpe::kernels {

inline constexpr uint32_t radix_pass_threads = 384;
inline constexpr uint32_t radix_most_bins = 512, radix_first_bits = 9;
inline constexpr uint32_t radix_most_later_passes = 7;
inline constexpr uint32_t radix_samples = 1 << 14;
/// The largest number of elements: sums of tiles are 32-bit words, of which two bits are marks.
inline constexpr uint64_t radix_most_elements = uint64_t{1} << 30;

/// The number of elements of a tile: as many as fit into the registers and the shared memory of a block.
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

/// The bits of the keys by which each pass orders: pass 0 uses the bits from bit 0 on, pass 1 the next bits, and so on.
/// The number of passes is even, so the result is in the array of the input.
struct radix_digits_of_passes {
  uint32_t key_bytes, devices;

  /// Returns the number of key bits in a bin of the first pass; the other bits of the bin are the range.
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

/// How many of a device's original elements are in each bin of the first pass, and how many have each range and digit
/// of each later pass. Must be zero before kernel radix_count_NAME runs.
struct radix_pass_counts {
  uint64_t first[radix_most_bins];
  uint64_t later[radix_most_later_passes][radix_most_devices][radix_most_bins];
};

/// The state of a device's own work.
struct radix_pass_state {
  uint64_t splitter_keys[radix_most_devices], splitter_places[radix_most_devices];
  // by pass and bin: where the bin begins in the output
  uint64_t offsets[1 + radix_most_later_passes][radix_most_bins];
  radix_sequence range;                                ///< the device's part of the sorted array
  radix_sequence runs[radix_most_bins];                ///< the input of pass 1
  uint32_t run_count, run_tiles[radix_most_bins + 1];  ///< run_tiles: number of tiles in all runs before each run
  uint32_t next_tile[1 + radix_most_later_passes];     ///< by pass
};

/// The parameters of all kernels of a sort, on one device. In the names of kernels, NAME is the name of a type in
/// sort.def.
///
/// Kernel radix_sample finds the splitters, each with a block of radix_sample_threads; it is not used for a single
/// device. Kernel radix_count_NAME counts, and clears the sums of the first pass; the grid may have any size. Kernel
/// radix_places computes `state` from the counts of all devices, with one block of radix_most_bins threads. Kernel
/// radix_pass_NAME makes one pass, and clears the sums of the next one; the grid has any number of blocks of
/// radix_pass_threads. Kernel radix_pass_wide_NAME is for passes of 512 bins, radix_pass_first_NAME for the first pass.
struct radix_pass_parameters {
  radix_types types;
  uint32_t devices, device;  ///< the number of devices, and the number of this device
  uint64_t begins[radix_most_devices + 1];
  radix_pass_counts* counts[radix_most_devices];
  radix_pass_state* state;
  const void* from;  ///< by device: its elements
  void* to;          ///< by device: its elements; only passes use this
  uint32_t pass;
  uint32_t *sums, *next_sums;  ///< sums of tiles, by bin; next_sums may be null

  [[nodiscard]] HPE_RADIX_BOTH radix_digits_of_passes digits() const { return {types.key, devices}; }
  [[nodiscard]] HPE_RADIX_BOTH uint32_t tile() const { return radix_tile_of(types.element); }
  [[nodiscard]] HPE_RADIX_BOTH radix_sequence own() const { return {begins[device], begins[device + 1]}; }
};
inline constexpr uint32_t radix_sample_threads = 1024;

/// Returns the number of words in each of the two arrays of sums of a device, for the worst division into ranges.
[[nodiscard]] inline uint64_t radix_sum_words(const radix_pass_parameters& p) {
  const uint64_t first = uint64_t{p.own().tiles(p.tile())} * radix_most_bins;
  const uint64_t tiles = p.begins[p.devices] / p.tile() + 2 * radix_most_bins;
  const uint64_t later =
      tiles * (p.digits().bins(1) > p.digits().bins(p.digits().later_passes()) ? radix_most_bins : p.digits().bins(1));
  return first > later ? first : later;
}

}  // namespace hpe::kernels
