// Datatypes taken apart as they were put together. Open MPI says how (MPI_Type_get_envelope and _contents); what it
// does not say in terms of other types is found out by unpacking into an empty buffer.

#include <algorithm>
#include <cstring>
#include <mutex>

#include "interpose/mpi/layout.h"

namespace hpe::interpose::mpi {

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
      return add(offset + element.front().offset, element.front().bytes * static_cast<std::size_t>(count));
    for (MPI_Aint i = 0; i < count; ++i)
      for (const stretch& s : element) add(offset + i * extent + s.offset, s.bytes);
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

// What get_contents tells. The types in it are the caller's to free, unless they are predefined.
struct contents {
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
  int combiner = MPI_COMBINER_NAMED;

  explicit contents(MPI_Datatype type) {
    int counts[3] = {};
    HPE_REAL(Type_get_envelope)(type, &counts[0], &counts[1], &counts[2], &combiner);
    if (combiner == MPI_COMBINER_NAMED || counts[2] == 0) return;
    integers.resize(static_cast<std::size_t>(counts[0]) + 1);
    addresses.resize(static_cast<std::size_t>(counts[1]) + 1);
    types.resize(static_cast<std::size_t>(counts[2]));
    HPE_REAL(Type_get_contents)
    (type, counts[0], counts[1], counts[2], integers.data(), addresses.data(), types.data());
  }
  contents(const contents&) = delete;
  contents& operator=(const contents&) = delete;
  ~contents() {
    for (MPI_Datatype& t : types) {
      int counts[3] = {};
      int how = MPI_COMBINER_NAMED;
      HPE_REAL(Type_get_envelope)(t, &counts[0], &counts[1], &counts[2], &how);
      if (how != MPI_COMBINER_NAMED && counts[2] != 0) HPE_REAL(Type_free)(&t);
    }
  }
};

// A predefined type is one stretch, or a pair of a value and an int with padding between them.
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

void add_subarray(builder& result, const contents& c, const type_map& element, MPI_Aint extent) {
  const int dimensions = c.integers[0];
  const int* const sizes = &c.integers[1];
  const int* const parts = sizes + dimensions;
  const int* const starts = parts + dimensions;
  const bool fortran = starts[dimensions] == MPI_ORDER_FORTRAN;
  // From the dimension that varies slowest to the one whose elements lie side by side.
  std::vector<int> order;
  for (int d = 0; d < dimensions; ++d) order.push_back(fortran ? dimensions - 1 - d : d);
  std::vector<int> at(static_cast<std::size_t>(dimensions), 0);
  if (std::any_of(parts, parts + dimensions, [](int n) { return n == 0; })) return;
  while (true) {
    MPI_Aint index = 0;
    for (const int d : order) index = index * sizes[d] + starts[d] + at[static_cast<std::size_t>(d)];
    result.add(index * extent, element, extent, parts[order.back()]);
    int slower = dimensions - 2;
    for (; slower >= 0; --slower) {
      auto& position = at[static_cast<std::size_t>(order[static_cast<std::size_t>(slower)])];
      if (++position < parts[order[static_cast<std::size_t>(slower)]]) break;
      position = 0;
    }
    if (slower < 0) return;
  }
}

// Unpacks the numbers of the packed bytes, one digit at a time, and sees where they have gone.
type_map map_by_trial(MPI_Datatype original) {
  // Types that others are made of need not be committed.
  MPI_Datatype type = nullptr;
  HPE_REAL(Type_dup)(original, &type);
  HPE_REAL(Type_commit)(&type);
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  HPE_REAL(Type_size_x)(type, &size);
  HPE_REAL(Type_get_true_extent_x)(type, &lower, &extent);
  const auto bytes = static_cast<std::size_t>(size);
  std::vector<std::uint64_t> number(static_cast<std::size_t>(extent));  // 1 + the number of the byte that lies there
  std::vector<std::uint8_t> stream(bytes);
  std::vector<std::uint8_t> place(number.size());
  for (unsigned shift = 0; shift < 64 && ((bytes + 1) >> shift) != 0; shift += 8) {
    for (std::size_t k = 0; k < bytes; ++k) stream[k] = static_cast<std::uint8_t>((k + 1) >> shift);
    std::fill(place.begin(), place.end(), 0);
    int position = 0;
    HPE_REAL(Unpack)
    (stream.data(), static_cast<int>(bytes), &position, place.data() - lower, 1, type, handles::get().comm_world);
    for (std::size_t j = 0; j < place.size(); ++j) number[j] |= std::uint64_t{place[j]} << shift;
  }
  HPE_REAL(Type_free)(&type);
  std::vector<MPI_Aint> where(bytes);
  for (std::size_t j = 0; j < number.size(); ++j)
    if (number[j] != 0) where[number[j] - 1] = lower + static_cast<MPI_Aint>(j);
  builder result;
  for (const MPI_Aint offset : where) result.add(offset, 1);
  return result.take();
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
        result.add(static_cast<MPI_Aint>(i) * n[2] * extent, *element, extent, n[1]);
      break;
    case MPI_COMBINER_HVECTOR:
      for (std::size_t i = 0; i < blocks; ++i) result.add(static_cast<MPI_Aint>(i) * a[0], *element, extent, n[1]);
      break;
    case MPI_COMBINER_INDEXED:
      for (std::size_t i = 0; i < blocks; ++i) result.add(n[1 + blocks + i] * extent, *element, extent, n[1 + i]);
      break;
    case MPI_COMBINER_HINDEXED:
      for (std::size_t i = 0; i < blocks; ++i) result.add(a[i], *element, extent, n[1 + i]);
      break;
    case MPI_COMBINER_INDEXED_BLOCK:
      for (std::size_t i = 0; i < blocks; ++i) result.add(n[2 + i] * extent, *element, extent, n[1]);
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
    default: return map_by_trial(type);
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
  if (type == nullptr || type == handles::get().datatype_null) throw left_to_mpi{};
  kept* found = nullptr;
  int flag = 0;
  HPE_REAL(Type_get_attr)(type, keyval(), static_cast<void*>(&found), &flag);
  if (flag != 0) return *found;
  auto made = std::make_shared<const type_map>(take_apart(type));
  // Two threads may do this at once for one type: what is kept is never replaced, because others may be reading it.
  static std::mutex keeping;
  const std::lock_guard lock(keeping);
  HPE_REAL(Type_get_attr)(type, keyval(), static_cast<void*>(&found), &flag);
  if (flag != 0) return *found;
  HPE_REAL(Type_set_attr)(type, keyval(), new kept(made));
  return made;
}

}  // namespace hpe::interpose::mpi
