#include "interpose/mpi/collectives/exchange.h"

#include "interpose/mpi/messages/unmatched_sends.h"
#include "interpose/mpi/mpi_errors.h"
#include "interpose/mpi/pending.h"

namespace hpe::interpose::mpi {

namespace {

std::size_t bytes_of(int count, MPI_Datatype type) {
  return count > 0
             ? saturated_product(static_cast<std::size_t>(measures_of(type).size), static_cast<std::size_t>(count))
             : 0;
}

}  // namespace

exchange::~exchange() {
  for (MPI_Request& request : requests_)
    if (request != handles::get().request_null) ::MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void exchange::receive(void* to, int count, MPI_Datatype type, int from) {
  const std::size_t bytes = bytes_of(count, type);
  if (bytes == 0) return;
  MPI_Request& request = requests_.emplace_back(handles::get().request_null);
  const int result = ::MPI_Irecv(to, count, type, from, who_.tag, who_.channel->comm(), &request);
  if (result == MPI_SUCCESS) return;
  note(result);
  unused_.push_back(std::make_unique<std::byte[]>(bytes));
  note(::MPI_Irecv(unused_.back().get(), static_cast<int>(bytes), handles::get().byte, from, who_.tag,
                   who_.channel->comm(), &request));
}

void exchange::send(const void* from, int count, MPI_Datatype type, int to) {
  if (bytes_of(count, type) == 0) return;
  MPI_Request& request = requests_.emplace_back(handles::get().request_null);
  const int result = ::MPI_Isend(from, count, type, to, who_.tag, who_.channel->comm(), &request);
  if (result == MPI_SUCCESS) return;
  note(result);
  const unmatched_sends::by_mpi passing(who_.channel->comm(), to, who_.tag);
  note(HPE_REAL(Isend)(nullptr, 0, handles::get().byte, to, who_.tag, who_.channel->comm(), &request));
}

int exchange::finish(MPI_Comm comm) {
  // This function waits for one request after the other, because MPI_Waitall of Open MPI 4.1 may wait forever if one of
  // several requests has failed.
  for (MPI_Request& request : requests_) note(::MPI_Wait(&request, MPI_STATUS_IGNORE));
  return result_ == MPI_SUCCESS ? result_ : raise(on_comm{comm}, result_);
}

bool exchange::over() {
  for (; first_left_ < requests_.size(); ++first_left_) {
    int is_over = 0;
    note(::MPI_Test(&requests_[first_left_], &is_over, MPI_STATUS_IGNORE));
    if (is_over == 0 && requests_[first_left_] != handles::get().request_null) return false;
  }
  return true;
}

void exchange::await() {
  for (std::size_t i = first_left_; i < requests_.size(); ++i)
    if (const auto operation = pending_table::all().find(requests_[i])) operation->await();
}

}  // namespace hpe::interpose::mpi
