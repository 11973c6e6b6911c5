#include "interpose/mpi/messages/board/offers.h"

#include "interpose/mpi/messages/board/shared_by_machine.h"
#include "runtime/base/log.h"

namespace hpe::interpose::mpi {

namespace {

std::atomic<offer_board*> the_offers{nullptr};

}  // namespace

offer_board* offer_board::current() noexcept { return the_offers.load(std::memory_order_acquire); }

offer_board::offer_board(row* rows, int rank, std::size_t ranks)
    : rows_(rows), rank_(rank), of_no_use_(new std::atomic<bool>[ranks]()) {
  for (std::uint32_t s = slots; s-- > 0;) free_.push_back({s, 0, false});
}

void offer_board::open(const job& of, MPI_Comm machine) {
  // All ranks of the machine have the board, or none, because a receiver without the board could not answer an offer.
  void* const mapped = shared_by_machine(of, "offers", of.same_machine.size() * sizeof(row), machine);
  if (mapped == nullptr)
    return log(log_level::info,
               "the ranks cannot share memory in /dev/shm: messages of device memory pass through the host");
  the_offers.store(new offer_board(static_cast<row*>(mapped), of.rank, of.same_machine.size()),
                   std::memory_order_release);
}

// Does not destroy the board, because other threads may be using it.
void offer_board::close() noexcept { the_offers.store(nullptr, std::memory_order_release); }

std::optional<offer_board::offer> offer_board::make(bool kept) {
  if (free_.empty()) return std::nullopt;
  offer made = free_.back();
  free_.pop_back();
  ++made.turn;
  made.kept = kept;
  if (!kept) set(rank_, made, stage::offered);
  return made;
}

void offer_board::await(const offer& of) noexcept {
  rows_[rank_].of_offer[of.slot].awaited.store(of.turn, std::memory_order_release);
}

bool offer_board::is_awaited(int rank, const offer& of) const noexcept {
  return rows_[rank].of_offer[of.slot].awaited.load(std::memory_order_acquire) == of.turn;
}

void offer_board::ask(int rank, const offer& of, const target& wanted) noexcept {
  rows_[rank].of_offer[of.slot].wanted = wanted;
  set(rank, of, stage::asked);
}

// The sender does not write a kept offer into the cell. So if the cell contains an earlier turn, the receiver has not
// answered the offer.
offer_board::stage offer_board::stage_of(const offer& of) const noexcept {
  const std::uint64_t now = rows_[rank_].of_offer[of.slot].state.load(std::memory_order_acquire);
  return now >> 32 == of.turn ? static_cast<stage>(now) : stage::offered;
}

offer_board::stage offer_board::stage_of(int rank, const offer& of) const noexcept {
  const std::uint64_t now = rows_[rank].of_offer[of.slot].state.load(std::memory_order_acquire);
  return now >> 32 == of.turn ? static_cast<stage>(now) : stage::done;
}

offer_board::stage offer_board::watch(int rank, const offer& of) const noexcept {
  // Longer than while_offered and while_taken, because the sender copies during this time.
  constexpr int while_asked = 400;
  return watch_while([&] { return stage_of(rank, of); },
                     [](stage s) { return s == stage::asked || s == stage::pushing; }, while_asked);
}

bool offer_board::change(int rank, const offer& of, stage from, stage to) noexcept {
  std::uint64_t expected = word(of, from);
  return rows_[rank].of_offer[of.slot].state.compare_exchange_strong(expected, word(of, to), std::memory_order_acq_rel);
}

bool offer_board::withdraw(const offer& of) noexcept { return change(rank_, of, stage::offered, stage::withdrawn); }

bool offer_board::begin_push(const offer& of) noexcept { return change(rank_, of, stage::asked, stage::pushing); }

bool offer_board::take_back(int rank, const offer& of) noexcept { return change(rank, of, stage::asked, stage::taken); }

void offer_board::fail(const offer& of) noexcept {
  rows_[rank_].of_offer[of.slot].failed.store(of.turn, std::memory_order_relaxed);
  copied(of);
}

// Also true if the slot contains a later offer, because a sender ends an offer only after the copy.
bool offer_board::is_copied(int rank, const offer& of) const noexcept {
  const std::uint32_t last = rows_[rank].of_offer[of.slot].copied.load(std::memory_order_acquire);
  return static_cast<std::int32_t>(last - of.turn) >= 0;
}

bool offer_board::watch_copy(int rank, const offer& of) const noexcept {
  constexpr int while_copying = 400;
  return watch_while([&] { return is_copied(rank, of); }, [](bool over) { return !over; }, while_copying);
}

void offer_board::end(const offer& of) noexcept { free_.push_back(of); }

bool offer_board::take(int rank, const offer& of) noexcept {
  return of.kept || change(rank, of, stage::offered, stage::taken);
}

std::optional<int> offer_board::sends_from(const device_id& device) noexcept {
  if (sends_.load(std::memory_order_relaxed) || sends_.exchange(true)) return std::nullopt;
  row& mine = rows_[rank_];
  mine.device = device;
  mine.sends.store(true);
  const std::vector<bool>& near = job::current()->same_machine;
  for (std::size_t r = 0; r < near.size(); ++r)
    if (near[r] && static_cast<int>(r) != rank_ && rows_[r].sends.load() && rows_[r].device == device)
      return static_cast<int>(r);
  return std::nullopt;
}

void offer_board::set_looks() noexcept { rows_[rank_].looks.store(true, std::memory_order_release); }

bool offer_board::looks(int rank) const noexcept { return rows_[rank].looks.load(std::memory_order_acquire); }

}  // namespace hpe::interpose::mpi
