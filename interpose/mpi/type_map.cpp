// Computes the type map of a datatype from the calls that constructed the datatype (MPI_Type_get_envelope and
// MPI_Type_get_contents).
#include "interpose/mpi/type_map.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <span>

#include "interpose/mpi/libraries/library.h"
#include "runtime/base/error.h"

namespace hpe::interpose::mpi {

namespace {

// `count`: how many stretches, from the first one on, have equal widths and equal distances. `pitch`: this distance.
struct run_of_rows {
  std::size_t count;
  MPI_Aint pitch;
};

run_of_rows first_rows(const std::vector<stretch>& all) {
  if (all.size() == 1) return {1, 0};
  const MPI_Aint pitch = all[1].offset - all[0].offset;
  std::size_t n = 1;
  while (n < all.size() && all[n].bytes == all[0].bytes && all[n].offset - all[n - 1].offset == pitch) ++n;
  return {n, pitch};
}

std::optional<placed_box> find_rows(const std::vector<stretch>& all) {
  if (all.empty()) return std::nullopt;
  const auto [count, pitch] = first_rows(all);
  const std::size_t width = all[0].bytes;
  placed_box result{all[0].offset, {{width, count, all.size() / count}, {static_cast<std::size_t>(pitch), 0}}};
  if (all.size() % count != 0 || (count > 1 && pitch < static_cast<MPI_Aint>(width))) return std::nullopt;
  if (result.shape.extent.planes == 1) return result;
  const MPI_Aint plane = all[count].offset - all[0].offset;
  result.shape.strides.plane = static_cast<std::size_t>(plane);
  if (count == 1 || plane < static_cast<MPI_Aint>(width)) return std::nullopt;
  for (std::size_t i = count; i < all.size(); ++i)
    if (all[i].bytes != width || all[i].offset - all[i - count].offset != plane) return std::nullopt;
  return result;
}

}  // namespace

type_map::type_map(std::vector<stretch> all) : std::vector<stretch>(std::move(all)), rows_(find_rows(*this)) {
  if (empty()) return;
  lowest_ = std::numeric_limits<MPI_Aint>::max();
  highest_ = std::numeric_limits<MPI_Aint>::min();
  for (const stretch& each : *this) {
    lowest_ = std::min<MPI_Aint>(lowest_, each.offset);
    highest_ = std::max<MPI_Aint>(highest_, each.offset + static_cast<MPI_Aint>(each.bytes));
  }
}

void throw_beyond_addresses() {
  HPE_THROW(HPE_ERROR_INVALID_ARGUMENT,
            "the counts, displacements and datatypes of an MPI call reach beyond the address space");
}

type_measures measures_of(MPI_Datatype type) {
  type_measures result;
  MPI_Count lower = 0;
  HPE_REAL(Type_size_x)(type, &result.size);
  HPE_REAL(Type_get_extent_x)(type, &lower, &result.extent);
  HPE_REAL(Type_get_true_extent_x)(type, &result.true_lower, &result.true_extent);
  return result;
}

namespace {

class builder {
 public:
  void add(MPI_Aint offset, std::size_t bytes) {
    if (bytes == 0) return;
    if (!map_.empty() && map_.back().offset + static_cast<MPI_Aint>(map_.back().bytes) == offset) {
      map_.back().bytes += bytes;
    } else {
      map_.push_back({offset, bytes});
    }
  }
  void add(MPI_Aint offset, const type_map& element, MPI_Aint extent, MPI_Aint count) {
    if (count > 0 && element.size() == 1 && extent == static_cast<MPI_Aint>(element.front().bytes))
      return add(checked_sum(offset, element.front().offset), static_cast<std::size_t>(checked_product(extent, count)));
    for (MPI_Aint i = 0; i < count; ++i)
      for (const stretch& s : element)
        add(checked_sum(checked_sum(offset, checked_product(i, extent)), s.offset), s.bytes);
  }
  [[nodiscard]] type_map take() { return type_map(std::move(map_)); }

 private:
  std::vector<stretch> map_;
};

MPI_Aint extent_of(MPI_Datatype type) {
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  HPE_REAL(Type_get_extent_x)(type, &lower, &extent);
  return static_cast<MPI_Aint>(extent);
}

// The contents of a datatype. The destructor frees the derived datatypes in the contents.
struct contents : type_contents {
  explicit contents(MPI_Datatype type) : type_contents(contents_of(type)) {}
  contents(const contents&) = delete;
  contents& operator=(const contents&) = delete;
  ~contents() {
    for (MPI_Datatype& t : types)
      if (envelope_of(t).is_derived()) HPE_REAL(Type_free)(&t);
  }
};

// Returns the type map of a predefined type: one stretch or, for a pair of a value and an int with padding between
// them, two stretches.
type_map map_of_predefined(MPI_Datatype type) {
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  HPE_REAL(Type_size_x)(type, &size);
  HPE_REAL(Type_get_true_extent_x)(type, &lower, &extent);
  builder result;
  if (size == extent) {
    result.add(lower, static_cast<std::size_t>(size));
  } else if (size > static_cast<MPI_Count>(sizeof(int))) {
    result.add(lower, static_cast<std::size_t>(size) - sizeof(int));
    result.add(lower + extent - static_cast<MPI_Aint>(sizeof(int)), sizeof(int));
  }
  return result.take();
}

// One dimension of an array of elements: the dimension's length, and the runs of indices that belong to the datatype.
struct dimension {
  struct run {
    MPI_Aint first;
    MPI_Aint count;
  };
  MPI_Aint length;
  std::vector<run> mine;
};

// Adds the elements of an array that belong to the datatype. `slowest_first`: the dimensions, from the slowest varying
// one to the one whose elements are adjacent. `index`: the linear index in the dimensions that the callers of this
// recursion have visited.
void add_part(builder& result, std::span<const dimension> slowest_first, MPI_Aint index, const type_map& element,
              MPI_Aint extent) {
  const auto& [length, mine] = slowest_first.front();
  for (const auto& [first, count] : mine) {
    const MPI_Aint begin = checked_sum(checked_product(index, length), first);
    if (slowest_first.size() == 1) {
      result.add(checked_product(begin, extent), element, extent, count);
    } else {
      for (MPI_Aint i = 0; i < count; ++i) add_part(result, slowest_first.subspan(1), begin + i, element, extent);
    }
  }
}

void add_array(builder& result, std::vector<dimension> dimensions, int order, const type_map& element,
               MPI_Aint extent) {
  if (order == MPI_ORDER_FORTRAN) std::reverse(dimensions.begin(), dimensions.end());
  add_part(result, dimensions, 0, element, extent);
}

void add_subarray(builder& result, const contents& c, const type_map& element, MPI_Aint extent) {
  const MPI_Count count = c.integers[0];
  const MPI_Count* const sizes = &c.integers[1];
  const MPI_Count* const parts = sizes + count;
  const MPI_Count* const starts = parts + count;
  std::vector<dimension> dimensions;
  for (MPI_Count d = 0; d < count; ++d) dimensions.push_back({sizes[d], {{starts[d], parts[d]}}});
  add_array(result, std::move(dimensions), static_cast<int>(starts[count]), element, extent);
}

// Returns the runs of indices that belong to one process in a block-cyclic distribution.
dimension dealt_out(MPI_Aint length, MPI_Aint block, MPI_Count process, MPI_Count processes) {
  dimension result{length, {}};
  for (MPI_Aint first = process * block; first < length; first += processes * block)
    result.mine.push_back({first, std::min(block, length - first)});
  return result;
}

void add_distributed_array(builder& result, const contents& c, const type_map& element, MPI_Aint extent) {
  const MPI_Count count = c.integers[2];
  const MPI_Count* const sizes = &c.integers[3];
  const MPI_Count* const distributions = sizes + count;
  const MPI_Count* const arguments = distributions + count;
  const MPI_Count* const processes = arguments + count;
  std::vector<dimension> dimensions;
  MPI_Count others = c.integers[0];  // the number of processes that have the same coordinates in the dimensions up to d
  MPI_Count rank = c.integers[1];
  for (MPI_Count d = 0; d < count; ++d) {
    others /= processes[d];
    const MPI_Count place = rank / others;
    rank %= others;
    const bool by_default = arguments[d] == MPI_DISTRIBUTE_DFLT_DARG;
    MPI_Aint block = sizes[d];  // the block size of a dimension that is not distributed
    if (distributions[d] == MPI_DISTRIBUTE_BLOCK)
      block = by_default ? (sizes[d] + processes[d] - 1) / processes[d] : arguments[d];
    if (distributions[d] == MPI_DISTRIBUTE_CYCLIC) block = by_default ? 1 : arguments[d];
    dimensions.push_back(dealt_out(sizes[d], block, place, processes[d]));
  }
  add_array(result, std::move(dimensions), static_cast<int>(processes[count]), element, extent);
}

type_map take_apart(MPI_Datatype type) {
  const contents c(type);
  if (c.types.empty()) return map_of_predefined(type);
  const auto element = map_of(c.types[0]);
  const MPI_Aint extent = extent_of(c.types[0]);
  const auto& n = c.integers;
  const auto& a = c.addresses;
  const auto blocks = n.empty() ? 0 : static_cast<std::size_t>(n[0]);
  builder result;
  switch (c.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: result.add(0, *element, 0, 1); break;
    case MPI_COMBINER_CONTIGUOUS: result.add(0, *element, extent, n[0]); break;
    case MPI_COMBINER_VECTOR:
      for (std::size_t i = 0; i < blocks; ++i)
        result.add(checked_product(checked_product(static_cast<MPI_Aint>(i), n[2]), extent), *element, extent, n[1]);
      break;
    case MPI_COMBINER_HVECTOR:
      for (std::size_t i = 0; i < blocks; ++i)
        result.add(checked_product(static_cast<MPI_Aint>(i), a[0]), *element, extent, n[1]);
      break;
    case MPI_COMBINER_INDEXED:
      for (std::size_t i = 0; i < blocks; ++i)
        result.add(checked_product(n[1 + blocks + i], extent), *element, extent, n[1 + i]);
      break;
    case MPI_COMBINER_HINDEXED:
      for (std::size_t i = 0; i < blocks; ++i) result.add(a[i], *element, extent, n[1 + i]);
      break;
    case MPI_COMBINER_INDEXED_BLOCK:
      for (std::size_t i = 0; i < blocks; ++i) result.add(checked_product(n[2 + i], extent), *element, extent, n[1]);
      break;
    case MPI_COMBINER_HINDEXED_BLOCK:
      for (std::size_t i = 0; i < blocks; ++i) result.add(a[i], *element, extent, n[1]);
      break;
    case MPI_COMBINER_STRUCT:
      for (std::size_t i = 0; i < blocks; ++i) {
        const MPI_Datatype member = c.types[i];
        result.add(a[i], *map_of(member), extent_of(member), n[1 + i]);
      }
      break;
    case MPI_COMBINER_SUBARRAY: add_subarray(result, c, *element, extent); break;
    case MPI_COMBINER_DARRAY: add_distributed_array(result, c, *element, extent); break;
    default: throw left_to_mpi{};  // a constructor of a later version of MPI
  }
  return result.take();
}

using kept = std::shared_ptr<const type_map>;

int copy_nothing(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int forget(MPI_Datatype, int, void* value, void*) {
  delete static_cast<kept*>(value);
  return MPI_SUCCESS;
}

int keyval() {
  static const int key = [] {
    int created = MPI_KEYVAL_INVALID;
    HPE_REAL(Type_create_keyval)(copy_nothing, forget, &created, nullptr);
    return created;
  }();
  return key;
}

}  // namespace

std::shared_ptr<const type_map> map_of(MPI_Datatype type) {
  if (is_null(type, handles::get().datatype_null)) throw left_to_mpi{};
  kept* found = nullptr;
  int flag = 0;
  HPE_REAL(Type_get_attr)(type, keyval(), static_cast<void*>(&found), &flag);
  if (flag != 0) return *found;
  auto made = std::make_shared<const type_map>(take_apart(type));
  // Two threads may have computed the map of the same type. The second thread must not replace the stored map, because
  // other threads may be reading it.
  static std::mutex keeping;
  const std::lock_guard lock(keeping);
  HPE_REAL(Type_get_attr)(type, keyval(), static_cast<void*>(&found), &flag);
  if (flag != 0) return *found;
  HPE_REAL(Type_set_attr)(type, keyval(), new kept(made));
  return made;
}

}  // namespace hpe::interpose::mpi
