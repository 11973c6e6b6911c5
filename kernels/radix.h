#pragma once

/// Sorting by radix: the order of keys as unsigned numbers, and the parameters of the kernels. Programs and kernel
/// bodies include this header; it needs only <stdint.h>.
///
/// Elements in the memory of several devices are partitioned into ranges, each of which is then sorted separately. The
/// boundary between two ranges is a place in the sorted array; its *splitter* is the key that will be there. With n
/// splitters there are 2 n + 1 *classes*: below the first splitter, equal to it, between it and the second, and so on.
/// If elements are ordered by class, and keep their order within a class, each element is in the right range, however
/// many elements are equal.

#include <stdint.h>

#if defined(__CUDACC__)
#define HPE_RADIX_BOTH __host__ __device__ __forceinline__
#else
#define HPE_RADIX_BOTH inline
#endif

namespace hpe::kernels {

enum class radix_order : uint32_t { without_sign, with_sign, floating };

/// An element begins with its key. Sizes are in bytes: a key has 4 or 8 bytes; an element is a key, or a key and a
/// value.
struct radix_types {
  uint32_t element, key;
  radix_order order;
};

/// Converts the bits of a key to an unsigned number. The numbers have the same order as the keys. The two zeros of
/// floating-point keys become equal.
template <class Bits>
[[nodiscard]] HPE_RADIX_BOTH Bits radix_of(Bits bits, radix_order order) {
  constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  if (order == radix_order::without_sign) return bits;
  if (order == radix_order::with_sign) return bits ^ sign;
  if (bits == sign) return sign;
  return (bits & sign) != 0 ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | sign);
}

/// Returns the index at which piece n begins if `count` elements are divided into `pieces` pieces.
[[nodiscard]] HPE_RADIX_BOTH uint64_t radix_bound(uint64_t count, uint64_t n, uint64_t pieces) {
  return count / pieces * n + count % pieces * n / pieces;
}

inline constexpr uint32_t radix_bits = 8, radix_digits = 1 << radix_bits;
inline constexpr uint32_t radix_most_devices = 16, radix_most_splitters = 31;

/// The state of a search for splitters, which finds the digits of each splitter one by one, the uppermost digit first.
/// Digits that are not known yet are 0. At first, rank[] contains the boundaries' places in the sorted array, in
/// ascending order.
struct radix_splitters {
  uint64_t key[radix_most_splitters];   ///< results of radix_of, in the upper bits
  uint64_t rank[radix_most_splitters];  ///< the boundary's place among the elements whose upper digits are those of
                                        ///< key; 0: key is the splitter itself

  /// Returns the first incomplete splitter with the same known digits as splitter s. The counts for this splitter are
  /// also those for s.
  [[nodiscard]] HPE_RADIX_BOTH uint32_t counted_by(uint32_t s) const {
    while (s > 0 && key[s - 1] == key[s] && rank[s - 1] != 0) --s;
    return s;
  }
};

/// One device's part of the elements.
struct radix_part {
  radix_types types;
  const void* elements;
  uint64_t count;
  uint32_t splitter_count;
  const radix_splitters* splitters;

  /// Returns the index of the first element of tile `tile`, if there are `tiles` tiles.
  [[nodiscard]] HPE_RADIX_BOTH uint64_t begin_of(uint64_t tile, uint64_t tiles) const {
    return radix_bound(count, tile, tiles);
  }
};

/// Kernel radix_count_digits: adds to counts[s * radix_digits + d] the number of elements with the known digits of
/// splitter s and the next digit d, for each s with counted_by(s) == s whose rank is not 0. The grid may have any size.
struct radix_digits_parameters {
  radix_part part;
  uint32_t digit;  ///< 0: the uppermost digit
  uint64_t* counts;
};

/// Kernel radix_choose_digits: finds the next digit of all splitters. The grid has one tile, of radix_digits threads on
/// GPUs.
struct radix_choice_parameters {
  radix_splitters* splitters;
  uint32_t splitter_count, digit, devices;
  const uint64_t* counts[radix_most_devices];  ///< results of radix_count_digits, by device
};

/// Kernel radix_count_classes: sets offsets[class * tiles + tile] to the number of elements of the class in the tile.
/// Kernel radix_move: moves each element to its place, to[offsets[...]++]. The grid may have any size, but both kernels
/// must be launched with the same grid.
struct radix_classes_parameters {
  radix_part part;
  uint64_t* offsets;
  void* to;  ///< the elements of all devices

  [[nodiscard]] HPE_RADIX_BOTH uint32_t classes() const { return 2 * part.splitter_count + 1; }
};

/// Kernel radix_offsets: replaces the counts of classes by places, ordered by class, then by device, then by the
/// device's tile. The grid has one tile, of radix_digits threads on GPUs.
struct radix_offsets_parameters {
  uint32_t classes, devices;
  uint32_t tiles[radix_most_devices];
  uint64_t* offsets[radix_most_devices];
};

/// Kernel radix_sort_ranges, for soft devices: sorts elements [bounds[r], bounds[r + 1]) of `elements` for each range
/// r, stably, from the lowest digit to the uppermost. The grid has a tile for each range. The result is in `elements`
/// or in `other`, which has as many elements; the contents of the other array are then undefined.
struct radix_ranges_parameters {
  radix_types types;
  void *elements, *other;
  uint32_t in_other;  ///< whether the result must be in `other`
  uint64_t bounds[radix_most_splitters + 2];
};

}  // namespace hpe::kernels
