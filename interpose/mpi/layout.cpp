#include "interpose/mpi/layout.h"

#include <algorithm>
#include <limits>

namespace hpe::interpose::mpi {

std::optional<placed_box> layout::rows() const {
  if (parts_.size() != 1) return std::nullopt;
  const layout_part& all = parts_[0];
  if (all.map == nullptr) return placed_box{all.displacement, {{all.bytes}, {}}};
  if (!all.map->rows()) return std::nullopt;
  placed_box result = *all.map->rows();
  auto& [size, distances] = result.shape;
  result.offset += all.displacement;
  if (all.count == 1) return result;
  if (all.extent <= 0) return std::nullopt;
  const auto extent = static_cast<std::size_t>(all.extent);
  const auto count = static_cast<std::size_t>(all.count);
  if (size.is_one_row()) {
    if (extent < size.width) return std::nullopt;
    size.rows = count;
    distances.row = extent;
  } else if (size.planes == 1 && extent == size.rows * distances.row) {
    size.rows *= count;
  } else if (size.planes == 1 && extent >= size.width) {
    size.planes = count;
    distances.plane = extent;
  } else {
    return std::nullopt;
  }
  return result;
}

std::optional<layout::elements_of_type> layout::scattered() const {
  if (parts_.size() != 1) return std::nullopt;
  const layout_part& all = parts_[0];
  if (all.map == nullptr)
    return elements_of_type{all.displacement,
                            {std::make_shared<const std::vector<stretch>>(1, stretch{0, all.bytes}), all.bytes,
                             static_cast<std::ptrdiff_t>(all.bytes)}};
  return elements_of_type{all.displacement, {all.map, size_ / static_cast<std::size_t>(all.count), all.extent}};
}

void layout::cover(MPI_Aint begin, MPI_Aint end, std::size_t bytes) {
  begin_ = size_ == 0 ? begin : std::min(begin_, begin);
  end_ = size_ == 0 ? end : std::max(end_, end);
  MPI_Aint between = 0;
  if (__builtin_sub_overflow(end_, begin_, &between)) throw_beyond_addresses();
  size_ = static_cast<std::size_t>(checked_sum(static_cast<MPI_Aint>(size_), static_cast<MPI_Aint>(bytes)));
}

void layout::add(MPI_Aint displacement, MPI_Count count, MPI_Datatype type) {
  if (count < 0) throw left_to_mpi{};
  const auto map = map_of(type);
  if (count == 0 || map->empty()) return;
  const type_measures measures = measures_of(type);
  const MPI_Count size = measures.size, extent = measures.extent;
  // If the extent is negative, the last element is at a lower address than the first one.
  const MPI_Aint last = checked_product(count - 1, extent);
  const auto all = static_cast<std::size_t>(checked_product(size, count));
  cover(checked_sum(checked_sum(displacement, map->lowest()), std::min<MPI_Aint>(last, 0)),
        checked_sum(checked_sum(displacement, map->highest()), std::max<MPI_Aint>(last, 0)), all);
  if (map->size() == 1 && static_cast<std::size_t>(extent) == map->front().bytes) {
    parts_.push_back({displacement + map->front().offset, 1, 0, nullptr, all});
  } else {
    parts_.push_back({displacement, count, static_cast<MPI_Aint>(extent), map, 0});
  }
}

void layout::add_bytes(MPI_Aint displacement, std::size_t bytes) {
  if (bytes == 0) return;
  cover(displacement, checked_sum(displacement, static_cast<MPI_Aint>(bytes)), bytes);
  parts_.push_back({displacement, 1, 0, nullptr, bytes});
}

void layout::visit(std::size_t bytes, const std::function<void(stretch)>& each) const {
  stretch current;
  const auto take = [&](MPI_Aint offset, std::size_t most) {
    const std::size_t size = std::min(most, bytes);
    if (size == 0) return;
    bytes -= size;
    if (current.bytes != 0 && offset == current.offset + static_cast<MPI_Aint>(current.bytes)) {
      current.bytes += size;
    } else {
      if (current.bytes != 0) each(current);
      current = {offset, size};
    }
  };
  for (const layout_part& p : parts_) {
    if (p.map == nullptr) {
      take(p.displacement, p.bytes);
      continue;
    }
    for (MPI_Count i = 0; i < p.count && bytes != 0; ++i)
      for (const stretch& s : *p.map) take(p.displacement + i * p.extent + s.offset, s.bytes);
  }
  if (current.bytes != 0) each(current);
}

layout elements(MPI_Count count, MPI_Datatype type) {
  layout result;
  result.add(0, count, type);
  return result;
}

layout each(int n, MPI_Count count, MPI_Datatype type) {
  if (count < 0) throw left_to_mpi{};
  return elements(checked_product(n, count), type);
}

template <class Count, class Displacement>
layout pieces(int n, const Count* counts, const Displacement* displacements, MPI_Datatype type) {
  if (counts == nullptr || displacements == nullptr) throw left_to_mpi{};
  (void)map_of(type);  // throws left_to_mpi for a null handle
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  HPE_REAL(Type_get_extent_x)(type, &lower, &extent);
  layout result;
  for (int i = 0; i < n; ++i) result.add(checked_product(displacements[i], extent), counts[i], type);
  return result;
}

template <class Count, class Displacement>
layout pieces(int n, const Count* counts, const Displacement* displacements, const MPI_Datatype* types) {
  if (counts == nullptr || displacements == nullptr || types == nullptr) throw left_to_mpi{};
  layout result;
  for (int i = 0; i < n; ++i)
    if (counts[i] != 0) result.add(displacements[i], counts[i], types[i]);
  return result;
}

template <class Count>
MPI_Count total(int n, const Count* counts) {
  if (counts == nullptr) throw left_to_mpi{};
  MPI_Count sum = 0;
  for (int i = 0; i < n; ++i) {
    if (counts[i] < 0) throw left_to_mpi{};
    sum = checked_sum(sum, counts[i]);
  }
  return sum;
}

// The combinations of types in the prototypes of MPI's functions.
template layout pieces(int, const int*, const int*, MPI_Datatype);
template layout pieces(int, const MPI_Count*, const MPI_Aint*, MPI_Datatype);
template layout pieces(int, const int*, const int*, const MPI_Datatype*);
template layout pieces(int, const int*, const MPI_Aint*, const MPI_Datatype*);
template layout pieces(int, const MPI_Count*, const MPI_Aint*, const MPI_Datatype*);
template MPI_Count total(int, const int*);
template MPI_Count total(int, const MPI_Count*);

layout packed(MPI_Aint position, MPI_Aint room, MPI_Aint size) {
  layout result;
  const MPI_Aint bytes = std::min(room - position, size);
  if (position >= 0 && bytes > 0) result.add_bytes(position, static_cast<std::size_t>(bytes));
  return result;
}

namespace {

// Returns `count`, or the largest int if `count` is larger, for MPI functions with int counts.
int as_int(MPI_Count count) { return static_cast<int>(std::min<MPI_Count>(count, std::numeric_limits<int>::max())); }

// Returns the larger of MPI's pack size and the size of the data. MPI's pack size is wrong if it exceeds the range of
// int, or if the count exceeds this range.
MPI_Aint at_least_data(MPI_Aint packed, MPI_Count count, MPI_Datatype type) {
  MPI_Count of_one = 0;
  HPE_REAL(Type_size_x)(type, &of_one);
  return std::max<MPI_Aint>(packed, checked_product(of_one, count));
}

}  // namespace

MPI_Aint pack_size(MPI_Count count, MPI_Datatype type, MPI_Comm comm) {
  if (count < 0 || type == handles::get().datatype_null) throw left_to_mpi{};
  int size = 0;
  HPE_REAL(Pack_size)(as_int(count), type, comm, &size);
  return at_least_data(size, count, type);
}

MPI_Aint pack_external_size(const char* representation, MPI_Count count, MPI_Datatype type) {
  if (count < 0 || type == handles::get().datatype_null) throw left_to_mpi{};
  MPI_Aint size = 0;
  HPE_REAL(Pack_external_size)(representation, as_int(count), type, &size);
  return count == as_int(count) ? size : at_least_data(size, count, type);
}

}  // namespace hpe::interpose::mpi
