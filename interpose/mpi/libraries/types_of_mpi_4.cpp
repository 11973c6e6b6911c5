// The queries of a datatype's construction (library.h) for MPI libraries that may have the constructors of MPI 4.

#include "interpose/mpi/libraries/library.h"

namespace hpe::interpose::mpi {

namespace {

bool has_large_counts() {
  static const bool has = library_has("PMPI_Type_get_contents_c");
  return has;
}

// Copies each argument of type MPI_Count to the list in which the constructor with int arguments has this argument: to
// `addresses` if it is a number of bytes, otherwise to `integers`.
void put_in_order(type_contents& of, const std::vector<MPI_Count>& counts) {
  const auto split = [&](std::size_t integers) {
    const auto middle = counts.begin() + static_cast<std::ptrdiff_t>(integers);
    of.integers.assign(counts.begin(), middle);
    of.addresses.assign(middle, counts.end());
  };
  switch (of.combiner) {
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_HINDEXED_BLOCK: split(2); return;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT: split(static_cast<std::size_t>(counts[0]) + 1); return;
    case MPI_COMBINER_SUBARRAY: of.integers.insert(of.integers.begin() + 1, counts.begin(), counts.end()); return;
    case MPI_COMBINER_DARRAY: of.integers.insert(of.integers.begin() + 3, counts.begin(), counts.end()); return;
    default: of.integers = counts;
  }
}

}  // namespace

type_envelope envelope_of(MPI_Datatype type) {
  if (!has_large_counts()) return envelope_with_int(type);
  type_envelope result;
  HPE_REAL(Type_get_envelope_c)
  (type, &result.integers, &result.addresses, &result.counts, &result.types, &result.combiner);
  return result;
}

type_contents contents_of(MPI_Datatype type) {
  const type_envelope how = envelope_of(type);
  if (how.counts == 0) return contents_with_int(type);
  type_contents result{how.combiner, {}, {}, {}};
  std::vector<int> integers(static_cast<std::size_t>(how.integers) + 1);
  std::vector<MPI_Count> counts(static_cast<std::size_t>(how.counts));
  result.addresses.resize(static_cast<std::size_t>(how.addresses) + 1);
  result.types.resize(static_cast<std::size_t>(how.types));
  HPE_REAL(Type_get_contents_c)
  (type, how.integers, how.addresses, how.counts, how.types, integers.data(), result.addresses.data(), counts.data(),
   result.types.data());
  result.integers.assign(integers.begin(), integers.begin() + how.integers);
  put_in_order(result, counts);
  return result;
}

}  // namespace hpe::interpose::mpi
