#include "interpose/mpi/layout.h"

#include <algorithm>
#include <limits>

namespace hpe::interpose::mpi {

void layout::cover(MPI_Aint begin, MPI_Aint end) {
  begin_ = size_ == 0 ? begin : std::min(begin_, begin);
  end_ = size_ == 0 ? end : std::max(end_, end);
}

void layout::add(MPI_Aint displacement, MPI_Count count, MPI_Datatype type) {
  if (count < 0) throw left_to_mpi{};
  const auto map = map_of(type);
  if (count == 0 || map->empty()) return;
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  MPI_Count true_lower = 0;
  MPI_Count true_extent = 0;
  HPE_REAL(Type_size_x)(type, &size);
  HPE_REAL(Type_get_extent_x)(type, &lower, &extent);
  HPE_REAL(Type_get_true_extent_x)(type, &true_lower, &true_extent);
  // The extent may be negative: the last element then lies below the first one.
  const MPI_Aint last = (count - 1) * extent;
  cover(displacement + true_lower + std::min<MPI_Aint>(last, 0),
        displacement + true_lower + true_extent + std::max<MPI_Aint>(last, 0));
  size_ += static_cast<std::size_t>(size) * static_cast<std::size_t>(count);
  if (map->size() == 1 && static_cast<std::size_t>(extent) == map->front().bytes) {
    const auto all = static_cast<std::size_t>(size) * static_cast<std::size_t>(count);
    parts_.push_back({displacement, 1, 0, std::make_shared<type_map>(type_map{{map->front().offset, all}})});
  } else {
    parts_.push_back({displacement, count, static_cast<MPI_Aint>(extent), map});
  }
}

void layout::add_bytes(MPI_Aint displacement, std::size_t bytes) {
  if (bytes == 0) return;
  cover(displacement, displacement + static_cast<MPI_Aint>(bytes));
  size_ += bytes;
  parts_.push_back({displacement, 1, 0, std::make_shared<type_map>(type_map{{0, bytes}})});
}

void layout::visit(std::size_t bytes, const std::function<void(stretch)>& each) const {
  stretch current;
  for (const part& p : parts_) {
    for (MPI_Count i = 0; i < p.count; ++i) {
      for (const stretch& s : *p.map) {
        if (bytes == 0) break;
        const std::size_t size = std::min(s.bytes, bytes);
        const MPI_Aint offset = p.displacement + i * p.extent + s.offset;
        bytes -= size;
        if (current.bytes != 0 && offset == current.offset + static_cast<MPI_Aint>(current.bytes)) {
          current.bytes += size;
        } else {
          if (current.bytes != 0) each(current);
          current = {offset, size};
        }
      }
    }
  }
  if (current.bytes != 0) each(current);
}

layout elements(MPI_Count count, MPI_Datatype type) {
  layout result;
  result.add(0, count, type);
  return result;
}

layout each(int n, int count, MPI_Datatype type) {
  if (count < 0) throw left_to_mpi{};
  return elements(MPI_Count{n} * count, type);
}

layout pieces(int n, const int* counts, const int* displacements, MPI_Datatype type) {
  if (counts == nullptr || displacements == nullptr) throw left_to_mpi{};
  (void)map_of(type);  // refuses a null handle
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  HPE_REAL(Type_get_extent_x)(type, &lower, &extent);
  layout result;
  for (int i = 0; i < n; ++i) result.add(displacements[i] * extent, counts[i], type);
  return result;
}

namespace {

template <class Displacement>
layout pieces_of_types(int n, const int* counts, const Displacement* displacements, const MPI_Datatype* types) {
  if (counts == nullptr || displacements == nullptr || types == nullptr) throw left_to_mpi{};
  layout result;
  for (int i = 0; i < n; ++i)
    if (counts[i] != 0) result.add(displacements[i], counts[i], types[i]);
  return result;
}

}  // namespace

layout pieces(int n, const int* counts, const int* displacements, const MPI_Datatype* types) {
  return pieces_of_types(n, counts, displacements, types);
}

layout pieces(int n, const int* counts, const MPI_Aint* displacements, const MPI_Datatype* types) {
  return pieces_of_types(n, counts, displacements, types);
}

MPI_Count total(int n, const int* counts) {
  if (counts == nullptr) throw left_to_mpi{};
  MPI_Count sum = 0;
  for (int i = 0; i < n; ++i) {
    if (counts[i] < 0) throw left_to_mpi{};
    sum += counts[i];
  }
  return sum;
}

layout packed(MPI_Aint position, MPI_Aint room, MPI_Aint size) {
  layout result;
  const MPI_Aint bytes = std::min(room - position, size);
  if (position >= 0 && bytes > 0) result.add_bytes(position, static_cast<std::size_t>(bytes));
  return result;
}

MPI_Aint pack_size(int count, MPI_Datatype type, MPI_Comm comm) {
  if (count < 0 || type == handles::get().datatype_null) throw left_to_mpi{};
  int size = 0;
  HPE_REAL(Pack_size)(count, type, comm, &size);
  // A size beyond the range of int comes out wrong.
  MPI_Count of_one = 0;
  HPE_REAL(Type_size_x)(type, &of_one);
  return std::max<MPI_Aint>(size, static_cast<MPI_Aint>(of_one) * count);
}

MPI_Aint pack_external_size(const char* representation, int count, MPI_Datatype type) {
  if (count < 0 || type == handles::get().datatype_null) throw left_to_mpi{};
  MPI_Aint size = 0;
  HPE_REAL(Pack_external_size)(representation, count, type, &size);
  return size;
}

}  // namespace hpe::interpose::mpi
