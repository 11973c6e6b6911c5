#include "interpose/mpi/messages/unadvertised_receives.h"

#include <map>
#include <tuple>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/messages/board/advertisement_board.h"
#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

namespace {

using arguments = std::tuple<MPI_Comm, int, int>;

std::map<arguments, unsigned>& listed() {
  static auto* const them = new std::map<arguments, unsigned>;
  return *them;
}

// The number of receives in progress that began before the process had memory of the CUDA driver. These receives are
// only counted, which is faster than listing their arguments.
unsigned counted = 0;

std::atomic<unsigned> calls{0};

}  // namespace

unadvertised_receive::unadvertised_receive(MPI_Comm comm, int source, int tag)
    : comm_(comm), source_(source), tag_(tag), record_(record::none) {
  if (advertisement_board::current() == nullptr) return;
  record_ = adopted_pointers::exist() ? record::listed : record::counted;
  if (record_ == record::counted)
    ++counted;
  else
    ++listed()[{comm_, source_, tag_}];
}

unadvertised_receive::~unadvertised_receive() {
  if (record_ == record::counted) --counted;
  if (record_ != record::listed) return;
  const auto found = listed().find({comm_, source_, tag_});
  if (--found->second == 0) listed().erase(found);
}

bool unadvertised_receive::may_precede(MPI_Comm comm, int source, int tag) {
  if (counted != 0 || calls.load(std::memory_order_acquire) != 0) return true;
  if (listed().empty()) return false;
  for (const int s : {source, MPI_ANY_SOURCE})
    for (const int t : {tag, MPI_ANY_TAG})
      if (listed().contains({comm, s, t})) return true;
  return false;
}

unadvertised_receive::call::call() : counts_(job::current()->several_threads) {
  if (counts_) ++calls;
}

unadvertised_receive::call::~call() {
  if (counts_) --calls;
}

}  // namespace hpe::interpose::mpi
