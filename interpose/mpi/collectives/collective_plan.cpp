#include "interpose/mpi/collectives/collective_plan.h"

#include "interpose/mpi/libraries/library.h"

namespace hpe::interpose::mpi {

bool is_smaller(std::size_t least, int count, MPI_Datatype type) {
  if (count <= 0 || is_null(type, handles::get().datatype_null)) return true;
  return saturated_product(static_cast<std::size_t>(measures_of(type).size), static_cast<std::size_t>(count)) < least;
}

blocks blocks::equal(const void* buffer, int count, MPI_Datatype type) {
  blocks result;
  result.none_ = false;
  result.buffer_ = buffer;
  result.count_ = count;
  result.type_ = type;
  return result;
}

blocks blocks::listed(const void* buffer, const int* counts, const int* displacements, MPI_Datatype type) {
  blocks result = equal(buffer, 0, type);
  result.counts_ = counts;
  result.displacements_ = displacements;
  return result;
}

blocks blocks::shared(const void* buffer, int count, MPI_Datatype type) {
  return equal(buffer, count, type).block_of(0);
}

blocks blocks::block_of(int which) const {
  blocks result = *this;
  result.block_ = which;
  return result;
}

blocks blocks::only_for(int rank) const {
  blocks result = *this;
  result.only_ = rank;
  return result;
}

blocks blocks::without(int rank) const {
  blocks result = *this;
  result.left_out_ = rank;
  return result;
}

std::byte* blocks::place(int rank) const {
  const int i = index(rank);
  const MPI_Aint before = displacements_ != nullptr ? displacements_[i] : MPI_Aint{i} * count_;
  return moved(buffer_, before * measures_of(type_).extent);
}

int blocks::count(int rank) const noexcept { return counts_ != nullptr ? counts_[index(rank)] : count_; }

near_group::memory blocks::memory(int n) const {
  if (none_) return near_group::memory::ordinary;
  if (counts_ != nullptr) return near_group::memory_of(buffer_, pieces(n, counts_, displacements_, type_));
  return near_group::memory_of(buffer_, block_ == any ? each(n, count_, type_) : elements(count_, type_));
}

// Only derived datatypes need a duplicate, because the program cannot free predefined datatypes. The duplicate stays
// valid when the program frees its datatype.
void blocks::keep_type() {
  if (none_ || !envelope_of(type_).is_derived()) return;
  MPI_Datatype duplicate{};
  HPE_REAL(Type_dup)(type_, &duplicate);
  type_ = duplicate;
  kept_ = {new MPI_Datatype(duplicate), [](MPI_Datatype* kept) {
             HPE_REAL(Type_free)(kept);
             delete kept;
           }};
}

namespace {

// Calls visit(rank) for all ranks, beginning with the next rank and ending with this rank. So the ranks begin with
// different ranks.
template <class Visit>
void for_each_rank(const exchange& call, Visit visit) {
  for (int i = 1; i <= call.size(); ++i) visit((call.rank() + i) % call.size());
}

}  // namespace

void collective_plan::post(exchange& call) const {
  for_each_rank(call, [&](int r) {
    if (to.has(r)) call.receive(to.place(r), to.count(r), to.type(), r);
  });
  for_each_rank(call, [&](int r) {
    if (from.has(r)) call.send(from.place(r), from.count(r), from.type(), r);
  });
}

}  // namespace hpe::interpose::mpi
