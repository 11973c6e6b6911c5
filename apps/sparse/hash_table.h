#pragma once

/// A hash table that is built by scatters and searched by gathers (B. He et al., "Efficient gather and scatter
/// operations on graphics processors", SC 2007, section 5).

#include <functional>
#include <vector>

#include "apps/gather/gather_plan.h"
#include "kernels/sparse_parameters.h"

namespace hpe::sparse {

/// Chooses the method of a gather or scatter; called once for each level of the table and each batch of queries.
using method_choice = std::function<gather::choice(const gather::problem&)>;

/// A table of 32-bit keys with 32-bit values, on one device, in several levels. A scatter writes all entries to their
/// slots in the first level. If several entries have the same slot, one of these entries stays. Other entries with the
/// key of this entry are dropped; entries with other keys move to the next level, which assigns slots differently. A
/// search gathers the entries of the keys' slots; keys that find another entry continue in the next level. An empty
/// slot ends the search of a key, because an entry with that key would have filled the slot. With twice as many slots
/// as entries, 0.21 of the entries move to the next level. A table can be searched many times. Only one thread at a
/// time may use a table.
class hash_table {
 public:
  /// Builds the table of `count` entries (see kernels::hash_key_of), which are in hpe memory. If entries have equal
  /// keys, a search finds one of them. The pair of the greatest key and the greatest value must not be among the
  /// entries, because it marks an empty slot; the constructor does not check this. Throws hpe::error, for example for
  /// too many entries.
  hash_table(const std::uint64_t* entries, std::uint64_t count, int device, const method_choice& choose);

  /// Sets results[i] to the value of keys[i], or to `missing` if the table does not contain this key. Waits for the
  /// results. All arrays are in hpe memory. Throws hpe::error.
  void find(const std::uint32_t* keys, std::uint64_t count, std::uint32_t* results, std::uint32_t missing,
            const method_choice& choose);

  [[nodiscard]] std::size_t levels() const { return levels_.size(); }
  [[nodiscard]] std::uint64_t slots() const;

 private:
  /// Memory for a batch of queries, kept between calls.
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
  std::vector<array<std::uint64_t>> levels_;  ///< the slots of each level
  batch batch_;
  array<std::uint32_t> count_;  ///< number of entries that move to the next level
};

}  // namespace hpe::sparse
