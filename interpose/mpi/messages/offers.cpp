#include "interpose/mpi/messages/offers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/log.h"

// The shared memory is a file named by the job's number. All ranks of the machine open it before the first rank removes
// its name. The kernel allocates its pages at the first access.

namespace hpe::interpose::mpi {

namespace {

std::atomic<offer_board*> the_board{nullptr};

template <class Look, class Holds>
offer_board::stage watch_while(Look look, Holds holds, int looks) {
  offer_board::stage at = look();
  for (int i = 0; i < looks && holds(at); ++i, at = look()) __builtin_ia32_pause();
  return at;
}

void* map_file(const std::string& name, std::size_t bytes) {
  const int file = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return nullptr;
  void* mapped = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(bytes)) == 0)
    mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  return mapped != MAP_FAILED ? mapped : nullptr;
}

}  // namespace

offer_board* offer_board::current() noexcept { return the_board.load(std::memory_order_acquire); }

offer_board::offer_board(row* rows, int rank, std::size_t ranks)
    : rows_(rows), rank_(rank), of_no_use_(new std::atomic<bool>[ranks]()) {
  for (std::uint32_t s = slots; s-- > 0;) free_.push_back({s, 0, false});
}

void offer_board::open(const job& of, MPI_Comm machine) {
  const std::string name = fmt::format("/hpe-mpi-{:016x}{:016x}", of.id[0], of.id[1]);
  const std::size_t bytes = of.same_machine.size() * sizeof(row);
  void* const mapped = map_file(name, bytes);
  // All ranks have the board, or none: a receiver without one could not take an offer.
  int all = mapped != nullptr ? 1 : 0;
  HPE_REAL(Allreduce)
  (MPI_IN_PLACE, &all, 1, handles::get().integer, handles::get().min, machine);
  ::shm_unlink(name.c_str());
  if (all == 0 && mapped != nullptr) ::munmap(mapped, bytes);
  if (all == 0)
    return log(log_level::info, "ranks share no memory in /dev/shm: messages of device memory go by way of the host");
  the_board.store(new offer_board(static_cast<row*>(mapped), of.rank, of.same_machine.size()),
                  std::memory_order_release);
}

// The board is never destroyed: other threads may be using it.
void offer_board::close() noexcept { the_board.store(nullptr, std::memory_order_release); }

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

// As long as the receiver has not answered, the cell of an offer that is kept has the turn before.
offer_board::stage offer_board::stage_of(const offer& of) const noexcept {
  const std::uint64_t now = rows_[rank_].of_offer[of.slot].state.load(std::memory_order_acquire);
  return now >> 32 == of.turn ? static_cast<stage>(now) : stage::offered;
}

offer_board::stage offer_board::stage_of(int rank, const offer& of) const noexcept {
  const std::uint64_t now = rows_[rank].of_offer[of.slot].state.load(std::memory_order_acquire);
  return now >> 32 == of.turn ? static_cast<stage>(now) : stage::done;
}

offer_board::stage offer_board::watch(const offer& of) const noexcept {
  constexpr int while_offered = 50;
  constexpr int while_taken = 100;
  const auto look = [&] { return stage_of(of); };
  const stage at = watch_while(
      look, [](stage s) { return s == stage::offered; }, while_offered);
  return at == stage::taken ? watch_while(
                                  look, [](stage s) { return s == stage::taken; }, while_taken)
                            : at;
}

offer_board::stage offer_board::watch(int rank, const offer& of) const noexcept {
  constexpr int while_asked = 400;  // longer, because the sender copies meanwhile
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

void offer_board::end(const offer& of) noexcept { free_.push_back(of); }

bool offer_board::take(int rank, const offer& of) noexcept {
  return of.kept || change(rank, of, stage::offered, stage::taken);
}

void offer_board::set_looks() noexcept { rows_[rank_].looks.store(true, std::memory_order_release); }

bool offer_board::looks(int rank) const noexcept { return rows_[rank].looks.load(std::memory_order_acquire); }

}  // namespace hpe::interpose::mpi
