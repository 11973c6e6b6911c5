#include "interpose/mpi/messages/board/advertisement_board.h"

#include <cstring>
#include <thread>

#include "interpose/mpi/messages/board/shared_by_machine.h"

// Each pair of receiver and sender numbers its advertisements in order. Advertisement n uses cell n % cells, which is
// reused when the advertisement is over. The first number is `cells`, so cells that contain zeros, as in new memory,
// contain no advertisement. A sender may read a cell while the receiver fills the cell for a later advertisement. The
// sender's claim then fails, because the number in the cell's state has changed.

namespace hpe::interpose::mpi {

namespace {

std::atomic<advertisement_board*> the_advertisements{nullptr};

// The largest number of ranks on one machine that advertise receives. The memory for advertisements grows with the
// square of the number of ranks; for 32 ranks, it is 16 MiB.
constexpr int most_ranks = 32;

std::uint64_t packed(const offer_board::offer& of) noexcept { return std::uint64_t{of.turn} << 32 | of.slot; }
offer_board::offer unpacked(std::uint64_t word) noexcept {
  return {static_cast<std::uint32_t>(word), static_cast<std::uint32_t>(word >> 32), false};
}

}  // namespace

advertisement_board* advertisement_board::current() noexcept {
  return the_advertisements.load(std::memory_order_acquire);
}

advertisement_board::advertisement_board(pair* pairs, std::vector<int> place, std::size_t members, int rank)
    : pairs_(pairs),
      place_(std::move(place)),
      members_(members),
      rank_(rank),
      next_(place_.size(), cells),
      first_(place_.size(), cells) {}

void advertisement_board::open(const job& of, MPI_Comm machine) {
  int members = 0;
  HPE_REAL(Comm_size)(machine, &members);
  if (members < 2 || members > most_ranks || offer_board::current() == nullptr) return;
  std::vector<int> place(of.same_machine.size(), -1);
  for (int m = 0; m < members; ++m) place[static_cast<std::size_t>(job::world_rank(machine, m))] = m;
  const auto count = static_cast<std::size_t>(members);
  void* const shared = shared_by_machine(of, "advertisements", count * count * sizeof(pair), machine);
  if (shared == nullptr) return;
  the_advertisements.store(new advertisement_board(static_cast<pair*>(shared), std::move(place), count, of.rank),
                           std::memory_order_release);
}

// Does not destroy the board, because other threads may be using it.
void advertisement_board::close() noexcept { the_advertisements.store(nullptr, std::memory_order_release); }

advertisement_board::communicator_name advertisement_board::name_of(MPI_Comm comm) noexcept {
  constexpr unsigned equal_bits = 4;  // an MPI_Comm of Open MPI is an address, which is a multiple of 16
  std::uint64_t bits = 0;
  constexpr std::size_t bytes = sizeof comm;  // NOLINT(bugprone-sizeof-expression): the size of the handle is meant
  static_assert(bytes <= sizeof bits);
  std::memcpy(&bits, &comm, bytes);
  return static_cast<communicator_name>(bits >> equal_bits);
}

// ---- the receiver -------------------------------------------------------------------------------------------------

// An element for a communicator that the program has freed is harmless, because no sender claims advertisements for
// this communicator.
void advertisement_board::learn(MPI_Comm comm, int source, int rank, communicator_name communicator) {
  constexpr std::size_t most_correspondents = 4096;
  if (rank == rank_ || place_[static_cast<std::size_t>(rank)] < 0) return;
  if (correspondents_.size() > most_correspondents) correspondents_.clear();
  correspondent& known = correspondents_[{comm, source}];
  known.rank = rank;
  known.communicator = communicator;
}

const advertisement_board::correspondent* advertisement_board::sender_of(MPI_Comm comm, int source) {
  const auto found = correspondents_.find({comm, source});
  if (found == correspondents_.end()) return nullptr;
  if (found->second.unadvertised == 0) return &found->second;
  --found->second.unadvertised;
  return nullptr;
}

void advertisement_board::mistaken(MPI_Comm comm, int source) {
  constexpr unsigned for_a_while = 64;  // the number of following receives from the sender that are not advertised
  const auto found = correspondents_.find({comm, source});
  if (found != correspondents_.end()) found->second.unadvertised = for_a_while;
}

std::unique_ptr<advertisement_board::advertisement> advertisement_board::advertise(const correspondent& to, int tag,
                                                                                   std::size_t bytes,
                                                                                   const peer_bytes& place) {
  std::uint32_t& next = next_[static_cast<std::size_t>(to.rank)];
  cell& its = cell_of(rank_, to.rank, next);
  if (static_cast<stage>(its.state.load(std::memory_order_relaxed)) != stage::unused) return nullptr;
  its.bytes = bytes;
  its.offset = place.offset;
  its.communicator = to.communicator;
  its.tag = tag;
  peer_bytes constant = place;
  constant.offset = 0;
  if (its.place != constant) its.place = constant;
  const std::uint32_t number = next++;
  its.state.store(word(number, stage::advertised), std::memory_order_release);
  return std::make_unique<advertisement>(*this, messages{to.rank, to.communicator, tag}, number);
}

void advertisement_board::withdraw_before(const advertisement* own, const messages& about) {
  for (advertisement* const each : advertised_) {
    if (each == own) return;
    if (each->about() == about) (void)each->claim();
  }
}

advertisement_board::advertisement::advertisement(advertisement_board& board, const messages& about,
                                                  std::uint32_t number)
    : board_(board), about_(about), number_(number) {
  board_.advertised_.push_back(this);
}

std::optional<offer_board::offer> advertisement_board::advertisement::claim() {
  cell& its = board_.cell_of(board_.rank_, about_.sender, number_);
  std::uint64_t expected = word(number_, stage::advertised);
  taken_back_ = taken_back_ ||
                its.state.compare_exchange_strong(expected, word(number_, stage::unused), std::memory_order_acq_rel);
  return taken_back_ ? std::nullopt : std::optional(unpacked(its.claimant.load(std::memory_order_acquire)));
}

bool advertisement_board::advertisement::is_over() {
  const auto claimed = claim();
  const offer_board* const offers = offer_board::current();
  return !claimed || offers == nullptr || offers->is_copied(about_.sender, *claimed);
}

advertisement_board::advertisement::~advertisement() {
  while (!is_over()) std::this_thread::yield();
  std::erase(board_.advertised_, this);
  if (taken_back_) return;  // the cell may already contain a later advertisement
  board_.cell_of(board_.rank_, about_.sender, number_)
      .state.store(word(number_, stage::unused), std::memory_order_release);
}

// ---- the sender ---------------------------------------------------------------------------------------------------

bool advertisement_board::has_any(int receiver) const noexcept {
  const std::uint32_t first = first_[static_cast<std::size_t>(receiver)];
  const std::uint32_t there = number_in(cell_of(receiver, rank_, first).state.load(std::memory_order_acquire));
  return static_cast<std::int32_t>(there - first) >= 0;
}

std::optional<advertisement_board::found_cell> advertisement_board::find(int receiver, communicator_name comm, int tag,
                                                                         std::size_t bytes) {
  std::uint32_t& first = first_[static_cast<std::size_t>(receiver)];
  const std::uint32_t end = first + cells;
  for (std::uint32_t number = first; number != end; ++number) {
    const cell& its = cell_of(receiver, rank_, number);
    const std::uint64_t state = its.state.load(std::memory_order_acquire);
    // Stop: the receiver has not made advertisement `number`.
    if (static_cast<std::int32_t>(number_in(state) - number) < 0) break;
    if (state != word(number, stage::advertised)) {
      if (number == first) ++first;
      continue;
    }
    if (its.communicator != comm || its.tag != tag) continue;
    if (its.bytes < bytes) break;  // MPI will match this receive and report that the message is too long
    found_cell found{number, its.place};
    found.place.offset = its.offset;
    return found;
  }
  return std::nullopt;
}

bool advertisement_board::claim(int receiver, std::uint32_t number, const offer_board::offer& with) {
  cell& its = cell_of(receiver, rank_, number);
  std::uint64_t expected = word(number, stage::advertised);
  its.claimant.store(packed(with), std::memory_order_release);
  return its.state.compare_exchange_strong(expected, word(number, stage::claimed), std::memory_order_acq_rel);
}

}  // namespace hpe::interpose::mpi
