// A message contains the columns of one rank, row by row. On rank 0, an MPI datatype describes the distance of these
// rows in the whole matrix. Ranks without columns send and receive nothing.

#include "apps/scan_mpi/mpi_ranks.h"

#include <limits>
#include <string>

#include "apps/ranks/mpi_check.h"
#include "hpe/error.hpp"

namespace hpe::scan {

namespace {

using hpe::ranks::check;

int counted(std::uint64_t number) {
  if (number > std::numeric_limits<int>::max())
    throw error(HPE_ERROR_NOT_SUPPORTED,
                "a scan over ranks with " + std::to_string(number) +
                    " sums of chunks: MPI counts only up to 2^31 - 1; a larger K makes fewer sums");
  return static_cast<int>(number);
}

/// A datatype of `rows` rows of `columns` elements; the rows are `distance` elements apart.
class datatype {
 public:
  datatype(std::uint64_t rows, std::uint64_t columns, std::uint64_t distance, std::size_t element_size) {
    check(MPI_Type_vector(counted(rows), counted(columns * element_size), counted(distance * element_size), MPI_BYTE,
                          &type_),
          "MPI_Type_vector");
    check(MPI_Type_commit(&type_), "MPI_Type_commit");
  }
  datatype(const datatype&) = delete;
  datatype& operator=(const datatype&) = delete;
  ~datatype() { MPI_Type_free(&type_); }
  [[nodiscard]] MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

constexpr int tag = 0x5ca;

}  // namespace

mpi_ranks::mpi_ranks(MPI_Comm among) : among_(among) {
  check(MPI_Comm_rank(among, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(among, &size_), "MPI_Comm_size");
}

std::vector<std::uint64_t> mpi_ranks::all_of(std::uint64_t mine) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size_));
  check(MPI_Allgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, among_), "MPI_Allgather");
  return all;
}

void mpi_ranks::gather(const spread_matrix& shape, const std::byte* mine, std::byte* all) {
  exchange(shape, const_cast<std::byte*>(mine), all, way::to_first);
}

void mpi_ranks::scatter(const spread_matrix& shape, const std::byte* all, std::byte* mine) {
  exchange(shape, mine, const_cast<std::byte*>(all), way::from_first);
}

void mpi_ranks::exchange(const spread_matrix& shape, std::byte* mine, std::byte* all, way which) {
  std::vector<MPI_Request> requests;
  // Begins a message with the columns of a rank, in rows that are `distance` elements apart.
  const auto begin = [&](bool sends, std::byte* at, int columns_of, std::uint64_t distance, int other) {
    const std::uint64_t columns = shape.columns[static_cast<std::size_t>(columns_of)];
    if (columns * shape.rows == 0) return;
    const datatype type(shape.rows, columns, distance, shape.element_size);
    MPI_Request* const request = &requests.emplace_back(MPI_REQUEST_NULL);
    if (sends)
      check(MPI_Isend(at, 1, type.get(), other, tag, among_, request), "MPI_Isend");
    else
      check(MPI_Irecv(at, 1, type.get(), other, tag, among_, request), "MPI_Irecv");
  };
  const bool to_first = which == way::to_first;
  for (int r = 0; r < size_ && rank_ == 0; ++r)
    begin(!to_first, all + shape.before(r) * shape.element_size, r, shape.all_columns(), r);
  begin(to_first, mine, rank_, shape.columns[static_cast<std::size_t>(rank_)], 0);
  check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

}  // namespace hpe::scan
