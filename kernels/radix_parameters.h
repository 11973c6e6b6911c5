#pragma once

/// Sorting by radix: the order of keys as unsigned numbers, and the parameters of the kernels. Programs and kernel
/// bodies include this header; it needs only <stdint.h>.
///
/// Elements in the memory of several devices are partitioned into ranges, and each range is then sorted separately. The
/// boundary between two ranges is a place in the sorted array. The boundary's *splitter* is the key that the sorted
/// array contains at this place. With n splitters, there are 2 n + 1 *classes* of keys: below the first splitter, equal
/// to the first splitter, between the first and the second splitter, and so on. If elements are ordered by class, and
/// keep their order within a class, each element is in the right range, however many elements are equal.

#include <stdint.h>

#if defined(__CUDACC__)
#define HPE_RADIX_BOTH __host__ __device__ __forceinline__
#else
#define HPE_RADIX_BOTH inline
#endif

namespace hpe::kernels {

enum class radix_order : uint32_t { without_sign, with_sign, floating };

/// An element begins with its key. Sizes are in bytes: a key has 4 or 8 bytes. An element is a key, or a key and a
/// value.
struct radix_types {
  uint32_t element, key;
  radix_order order;
};

/// Converts the bits of a key to an unsigned number. The numbers have the order of the keys. Both zeros of
/// floating-point keys yield the same number.
template <class Bits>
[[nodiscard]] HPE_RADIX_BOTH Bits radix_of(Bits bits, radix_order order) {
  constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  if (order == radix_order::without_sign) return bits;
  if (order == radix_order::with_sign) return bits ^ sign;
  if (bits == sign) return sign;
  return (bits & sign) != 0 ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | sign);
}

/// Returns the index of the first element of piece n, if `count` elements are divided into `pieces` pieces of about the
/// same size.
[[nodiscard]] HPE_RADIX_BOTH uint64_t radix_bound(uint64_t count, uint64_t n, uint64_t pieces) {
  return count / pieces * n + count % pieces * n / pieces;
}

inline constexpr uint32_t radix_bits = 8, radix_digits = 1 << radix_bits;
inline constexpr uint32_t radix_most_devices = 16, radix_most_splitters = 31;

/// The state of a search for splitters. The search finds the digits of each splitter one after the other, beginning
/// with the uppermost digit. Digits that are not found yet are 0. Before the search, rank[] contains the places of the
/// boundaries in the sorted array, in ascending order.
struct radix_splitters {
  uint64_t key[radix_most_splitters];   ///< results of radix_of, in the upper bits of the word
  uint64_t rank[radix_most_splitters];  ///< the boundary's place among elements with these digits; 0: key is complete

  /// Returns the first incomplete splitter whose known digits are those of splitter s. The counts for the returned
  /// splitter are also the counts for s.
  [[nodiscard]] HPE_RADIX_BOTH uint32_t counted_by(uint32_t s) const {
    while (s > 0 && key[s - 1] == key[s] && rank[s - 1] != 0) --s;
    return s;
  }
};

/// The elements in the memory of one device.
struct radix_part {
  radix_types types;
  const void* elements;
  uint64_t count;
  uint32_t splitter_count;
  const radix_splitters* splitters;

  /// Returns the index of the first element of tile `tile`, if the elements are divided into `tiles` tiles.
  [[nodiscard]] HPE_RADIX_BOTH uint64_t begin_of(uint64_t tile, uint64_t tiles) const {
    return radix_bound(count, tile, tiles);
  }
};

/// Kernel radix_count_digits: for each s with counted_by(s) == s and a rank that is not 0, adds to counts[s *
/// radix_digits + d] the number of elements that have the known digits of splitter s and the next digit d. The grid may
/// have any size.
struct radix_digits_parameters {
  radix_part part;
  uint32_t digit;  ///< 0: the uppermost digit
  uint64_t* counts;
};

/// Kernel radix_choose_digits: finds the next digit of all splitters. The grid must have one tile, of radix_digits
/// threads on GPUs.
struct radix_choice_parameters {
  radix_splitters* splitters;
  uint32_t splitter_count, digit, devices;
  const uint64_t* counts[radix_most_devices];  ///< for each device, the result of radix_count_digits
};

/// Kernel radix_count_classes: sets offsets[class * tiles + tile] to the number of elements of the class that are in
/// the tile. Kernel radix_move: copies each element to to[offsets[class * tiles + tile]++]. The grid may have any size,
/// but both kernels must be launched with the same grid.
struct radix_classes_parameters {
  radix_part part;
  uint64_t* offsets;
  void* to;  ///< the array to which all devices move their elements

  [[nodiscard]] HPE_RADIX_BOTH uint32_t classes() const { return 2 * part.splitter_count + 1; }
};

/// Kernel radix_offsets: replaces the counts of classes by places in `to`, ordered by class, then by device, then by
/// the device's tile. The grid must have one tile, of radix_digits threads on GPUs.
struct radix_offsets_parameters {
  uint32_t classes, devices;
  uint32_t tiles[radix_most_devices];
  uint64_t* offsets[radix_most_devices];
};

/// Kernel radix_sort_ranges, for soft devices: sorts elements [bounds[r], bounds[r + 1]) of `elements` for each range
/// r, stably, beginning with the lowest digit. The grid must have one tile for each range. The result is in `elements`
/// or in `other`, which has as many elements; the contents of the other array are undefined afterwards.
struct radix_ranges_parameters {
  radix_types types;
  void *elements, *other;
  uint32_t in_other;  ///< whether the result must be in `other`
  uint64_t bounds[radix_most_splitters + 2];
};

}  // namespace hpe::kernels
