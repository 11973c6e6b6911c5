#pragma once

/// A hash table that is built by scatters and searched by gathers (B. He et al., "Efficient gather and scatter
/// operations on graphics processors", SC 2007, section 5).

#include <functional>
#include <vector>

#include "apps/gather/plan.h"
#include "kernels/sparse.h"

namespace hpe::sparse {

/// How a gather or scatter is done; called once for each level of the table and each batch of queries.
using method_choice = std::function<gather::choice(const gather::problem&)>;

/// A table of 32-bit keys with 32-bit values, on one device. It has levels. A scatter writes all entries to the slots
/// of the first level; of the entries with one slot one stays; those with its key are dropped, the others go to the
/// next level, which has other slots. A search gathers the entries of the keys' slots; keys that meet another entry go
/// to the next level. An empty slot ends the search, because an entry with this slot would have filled it. With twice
/// as many slots as entries, 0.21 of them go to the next level. Made once and searched often; one thread at a time.
class hash_table {
 public:
  /// Builds the table of `count` entries (see kernels::hash_key_of), in memory of hpe. Of entries with equal keys one
  /// is found. Throws hpe::error; the pair of the greatest key and the greatest value is refused, since it marks an
  /// empty slot.
  hash_table(const std::uint64_t* entries, std::uint64_t count, int device, const method_choice& choose);

  /// results[i] = the value of keys[i], or `missing`. All in memory of hpe; waits. Throws hpe::error.
  void find(const std::uint32_t* keys, std::uint64_t count, std::uint32_t* results, std::uint32_t missing,
            const method_choice& choose);

  [[nodiscard]] std::size_t levels() const { return levels_.size(); }
  [[nodiscard]] std::uint64_t slots() const;

 private:
  /// Room for a batch, kept between calls.
  struct batch {
    array<std::uint32_t> indices;
    array<std::uint64_t> found;
  };
  void make_room(std::uint64_t count);
  void compute_slots(const std::uint64_t* entries, const std::uint32_t* keys, std::uint64_t count, std::size_t level);
  void gather_from(std::size_t level, std::uint64_t count, const method_choice& choose);

  const int device_;
  module module_;
  kernel<kernels::hash_slots_parameters> slots_;
  kernel<kernels::hash_settle_parameters> settle_;
  kernel<kernels::hash_match_parameters> match_;
  std::vector<array<std::uint64_t>> levels_;  ///< the slots of each
  batch batch_;
  array<std::uint32_t> count_;  ///< of those that go to the next level
};

}  // namespace hpe::sparse
