// Invariant: a message has the columns of one rank, row by row, on both sides; on rank 0 the rows lie as far apart as
// those of the whole matrix, which a datatype says. Ranks without columns send and get nothing.

#include "apps/scan_mpi/mpi_ranks.h"

#include <limits>
#include <string>

#include "hpe/error.hpp"

namespace hpe::scan {

namespace {

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw error(HPE_ERROR_SYSTEM, std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

int counted(std::uint64_t number) {
  if (number > std::numeric_limits<int>::max())
    throw error(HPE_ERROR_NOT_SUPPORTED, "a scan over ranks with " + std::to_string(number) +
                                             " sums of chunks: MPI counts to 2^31 - 1; a larger K makes fewer");
  return static_cast<int>(number);
}

/// `columns` of `rows` rows that are `distance` elements apart.
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
  std::vector<MPI_Request> requests;
  for (int r = 0; r < size_ && rank_ == 0; ++r) {
    const std::uint64_t columns = shape.columns[static_cast<std::size_t>(r)];
    if (columns * shape.rows == 0) continue;
    const datatype theirs(shape.rows, columns, shape.all_columns(), shape.element_size);
    check(MPI_Irecv(all + shape.before(r) * shape.element_size, 1, theirs.get(), r, tag, among_,
                    &requests.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Irecv");
  }
  const std::uint64_t columns = shape.columns[static_cast<std::size_t>(rank_)];
  if (columns * shape.rows != 0) {
    const datatype own(shape.rows, columns, columns, shape.element_size);
    check(MPI_Isend(mine, 1, own.get(), 0, tag, among_, &requests.emplace_back(MPI_REQUEST_NULL)), "MPI_Isend");
  }
  check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

void mpi_ranks::scatter(const spread_matrix& shape, const std::byte* all, std::byte* mine) {
  std::vector<MPI_Request> requests;
  const std::uint64_t columns = shape.columns[static_cast<std::size_t>(rank_)];
  if (columns * shape.rows != 0) {
    const datatype own(shape.rows, columns, columns, shape.element_size);
    check(MPI_Irecv(mine, 1, own.get(), 0, tag, among_, &requests.emplace_back(MPI_REQUEST_NULL)), "MPI_Irecv");
  }
  for (int r = 0; r < size_ && rank_ == 0; ++r) {
    const std::uint64_t theirs = shape.columns[static_cast<std::size_t>(r)];
    if (theirs * shape.rows == 0) continue;
    const datatype type(shape.rows, theirs, shape.all_columns(), shape.element_size);
    check(MPI_Isend(all + shape.before(r) * shape.element_size, 1, type.get(), r, tag, among_,
                    &requests.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Isend");
  }
  check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
}

}  // namespace hpe::scan
