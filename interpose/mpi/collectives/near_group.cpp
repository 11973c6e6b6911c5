#include "interpose/mpi/collectives/near_group.h"

#include "interpose/buffer_access.h"
#include "interpose/mpi/groups.h"
#include "interpose/mpi/messages/board/offers.h"
#include "interpose/mpi/messages/job.h"
#include "interpose/mpi/messages/message_progress.h"

namespace hpe::interpose::mpi {

namespace {

// The attribute's value for a communicator that has no near_group: an address that no near_group has.
near_group* const no_group = [] {
  static char place;
  return reinterpret_cast<near_group*>(&place);
}();

int forget_group(MPI_Comm, int, void* value, void*) {
  auto* const group = static_cast<near_group*>(value);
  if (group != no_group) delete group;
  return MPI_SUCCESS;
}

// MPI calls this function when the program duplicates a communicator. MPI then copies no attribute to the duplicate.
int copy_no_group(MPI_Comm, int, void*, void*, void*, int* copied) {
  *copied = 0;
  return MPI_SUCCESS;
}

int key_of_groups() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    HPE_REAL(Comm_create_keyval)(copy_no_group, forget_group, &made, nullptr);
    return made;
  }();
  return key;
}

near_group* make_group(MPI_Comm comm) {
  const job& running = *job::current();
  const int size = local_members(comm);
  if (offer_board::current() == nullptr || size < 2) return no_group;
  for (int r = 0; r < size; ++r) {
    const int other = job::world_rank(comm, r);
    if (other == MPI_UNDEFINED || !running.is_near(other)) return no_group;
  }
  return new near_group(comm, rank_in(comm), size);
}

}  // namespace

near_channel::near_channel(MPI_Comm of) { HPE_REAL(Comm_idup)(of, &comm_, &made_); }

// If MPI_Finalize deletes the attribute of MPI_COMM_WORLD, the destructor does not free the channel's communicator,
// because MPI_Finalize frees it.
near_channel::~near_channel() {
  if (ready_ && job::current() != nullptr) HPE_REAL(Comm_free)(&comm_);
}

bool near_channel::ready() {
  const progress::guard held;
  if (ready_) return true;
  int over = 0;
  HPE_REAL(Test)(&made_, &over, MPI_STATUS_IGNORE);
  if (over == 0) return false;
  HPE_REAL(Comm_set_errhandler)(comm_, handles::get().errors_return);
  ready_ = true;
  return true;
}

near_group* near_group::of(MPI_Comm comm) {
  if (job::current() == nullptr || !is_intra(comm)) return nullptr;
  void* value = nullptr;
  int found = 0;
  HPE_REAL(Comm_get_attr)(comm, key_of_groups(), &value, &found);
  if (found == 0) {
    value = make_group(comm);
    HPE_REAL(Comm_set_attr)(comm, key_of_groups(), value);
  }
  auto* const group = static_cast<near_group*>(value);
  return group != no_group ? group : nullptr;
}

near_group* near_group::of_background(MPI_Comm comm) {
  // In most of these calls, every rank sends to every other rank. With more than 8 ranks and ordinary memory, MPI's
  // tree algorithms are faster.
  constexpr int most_ranks = 8;
  const job* const running = job::current();
  if (running == nullptr || !running->all_use_cuda) return nullptr;
  near_group* const group = of(comm);
  return group != nullptr && group->size() <= most_ranks ? group : nullptr;
}

bool near_group::votes() noexcept {
  constexpr std::uint64_t rare = 64;
  ++calls_;
  return device_seen_ || (calls_ & (calls_ - 1)) == 0 || calls_ % rare == 0;
}

bool near_group::agree(memory mine, needed ranks) {
  constexpr int ordinary = static_cast<int>(memory::ordinary);
  constexpr int device = static_cast<int>(memory::device);
  int all = static_cast<int>(mine);
  HPE_REAL(Allreduce)
  (MPI_IN_PLACE, &all, 1, handles::get().integer, handles::get().bit_or, comm_);
  device_seen_ = device_seen_ || all != ordinary;
  return all == device || (ranks == needed::one && all == (device | ordinary));
}

const std::shared_ptr<near_channel>& near_group::channel() {
  if (channel_ == nullptr) channel_ = std::make_shared<near_channel>(comm_);
  return channel_;
}

near_group::ranks_of_call near_group::now() {
  ranks_of_call result{rank_, size_, channel(), 0};
  progress::of_process().until([&] { return result.channel->ready(); });
  return result;
}

near_group::ranks_of_call near_group::next() {
  // MPI allows tags up to this number in every implementation; blocking calls use tag 0.
  constexpr std::uint32_t tags = 32767;
  return {rank_, size_, channel(), static_cast<int>(1 + background_calls_++ % tags)};
}

near_group::memory near_group::memory_of(const void* buffer, const layout& which) {
  if (which.empty()) return memory::ordinary;
  const std::byte* const first = moved(buffer, which.begin());
  if (buffer == nullptr || core::host_access::of(first) != nullptr) return memory::other;
  adopted_pointers* const driver = adopted_pointers::of(first);
  if (driver == nullptr) return memory::ordinary;
  const bool whole = driver->bytes_from(reinterpret_cast<std::uintptr_t>(first)) >= which.extent();
  return whole ? memory::device : memory::other;
}

}  // namespace hpe::interpose::mpi
