#pragma once

/// Sparse matrices, graphs and hash tables: the parameters of the kernels. Programs and kernel bodies include this
/// header; it needs only <stdint.h>. A matrix or a graph is stored in *compressed rows*: the elements of row r, or the
/// neighbours of vertex r, have the indices first[r] to first[r + 1] - 1.

#include <stdint.h>

#if defined(__CUDACC__)
#define HPE_SPARSE_BOTH __host__ __device__ __forceinline__
#else
#define HPE_SPARSE_BOTH inline
#endif

namespace hpe::kernels {

/// The number of threads in a block on GPUs.
inline constexpr uint32_t sparse_threads = 256;

/// Kernel sparse_multiply: y = A x. The grid may have any size. On GPUs, `lanes` threads share a row; `lanes` is a
/// power of two up to 32. Each thread loads `each` elements, 2 or 4, before it uses the first of them.
struct sparse_multiply_parameters {
  uint32_t element;  ///< size of an element in bytes: 4 (float) or 8 (double)
  uint32_t lanes, each;
  uint64_t rows;
  const uint32_t* first;    ///< rows + 1 indices
  const uint32_t* columns;  ///< null: x contains a value for each element of the matrix, in the order of the elements
  const void* values;
  const void* x;
  void* y;
};

/// The level of a vertex that the search has not reached.
inline constexpr uint32_t graph_unreached = ~uint32_t{0};

/// Kernel graph_step: one step of a breadth-first search. The kernel finds the neighbours of the counts[depth] vertices
/// of `frontier` that no earlier step has reached. It sets the level of each to depth + 1, appends it to `next` and
/// counts it in counts[depth + 1]. The grid may have any size. On GPUs, `lanes` threads share a vertex; `lanes` is a
/// power of two up to 32.
struct graph_step_parameters {
  const uint32_t* first;
  const uint32_t* neighbours;
  uint32_t* levels;
  const uint32_t* frontier;
  uint32_t* next;
  uint32_t* counts;
  uint32_t depth, lanes;
};

/// An entry of a hash table: the lower half is the key, the upper half the value.
inline constexpr uint64_t hash_empty = ~uint64_t{0};
[[nodiscard]] HPE_SPARSE_BOTH uint32_t hash_key_of(uint64_t entry) { return uint32_t(entry); }
[[nodiscard]] HPE_SPARSE_BOTH uint32_t hash_value_of(uint64_t entry) { return uint32_t(entry >> 32); }

/// Returns the slot of a key in a level of the table. The hash function is the finaliser of MurmurHash3 (A. Appleby)
/// with the level as seed; the multiplication maps the hash to [0, slots).
[[nodiscard]] HPE_SPARSE_BOTH uint32_t hash_slot(uint32_t key, uint32_t level, uint32_t slots) {
  uint32_t h = key + (level + 1) * 0x9e3779b9U;
  h = (h ^ (h >> 16)) * 0x85ebca6bU;
  h = (h ^ (h >> 13)) * 0xc2b2ae35U;
  h ^= h >> 16;
  return uint32_t((uint64_t{h} * slots) >> 32);
}

/// Kernel hash_slots: computes the slot of each entry's key or, if `entries` is null, of each of `keys`. The grid may
/// have any size.
struct hash_slots_parameters {
  const uint64_t* entries;
  const uint32_t* keys;
  uint64_t count;
  uint32_t level, slots;
  uint32_t* indices;
};

/// Kernel hash_settle: appends to `rest` each entry whose slot contains an entry with another key. found[i] must be the
/// entry in the slot of entries[i], and *rest_count must be zero before the launch. The grid may have any size.
struct hash_settle_parameters {
  const uint64_t* entries;
  const uint64_t* found;
  uint64_t count;
  uint64_t* rest;
  uint32_t* rest_count;
};

/// Kernel hash_match: tests found[i], which must be the entry in the slot of keys[i]. If the entry has this key, the
/// kernel writes its value to results[places[i]]; if the slot is empty, the kernel writes `missing` there. Otherwise,
/// the kernel appends the key and its place to the rest, for the next level. If `places` is null, the place of keys[i]
/// is i. *rest_count must be zero before the launch. The grid may have any size.
struct hash_match_parameters {
  const uint32_t* keys;
  const uint32_t* places;
  const uint64_t* found;
  uint64_t count;
  uint32_t* results;
  uint32_t missing;
  uint32_t* rest_keys;
  uint32_t* rest_places;
  uint32_t* rest_count;
};

}  // namespace hpe::kernels
