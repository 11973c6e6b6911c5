#include "interpose/mpi/messages/board/receive_inspection.h"

#include <algorithm>
#include <new>

#include "interpose/adopted_pointers.h"
#include "interpose/mpi/libraries/library.h"
#include "interpose/mpi/messages/board/offers.h"
#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/unmatched_sends.h"
#include "interpose/mpi/pending.h"

// Invariant: when inspected_as_told is set, no receive is in progress that hpe does not inspect and that could get an
// envelope. A thread that begins an uninspected receive first counts the receive and then reads inspected_now; tell()
// reads the counts after inspected_now has been set. So either the thread inspects the receive, or tell() sees the
// count. All these accesses are sequentially consistent.

namespace hpe::interpose::mpi {

receive_inspection& receive_inspection::of_process() {
  static auto* const it = new receive_inspection;
  return *it;
}

void receive_inspection::open(const job& of) noexcept {
  const bool all_near = std::find(of.same_machine.begin(), of.same_machine.end(), false) == of.same_machine.end();
  if (all_near && offer_board::current() != nullptr) return;
  all_ranks_inspect = true;
  inspected_now = extent::large;
  tell();
}

void receive_inspection::ask_all() noexcept {
  offer_board* const board = offer_board::current();
  if (board == nullptr) return;
  unmatched_sends::expect_envelopes();
  if (!board->is_inspection_wanted()) board->want_inspection();
  notice();
}

bool receive_inspection::needs(bool fits_envelope) noexcept {
  const extent now = current();
  return now == extent::all || (now == extent::large && (fits_envelope || job::survives_errors()));
}

bool receive_inspection::accepts_envelope(int rank, std::size_t bytes) noexcept {
  const offer_board* const board = offer_board::current();
  const bool is_short = bytes < envelope_bytes;
  if (board == nullptr || !job::current()->is_near(rank)) return !is_short;
  return is_short ? board->looks(rank) : all_ranks_inspect || board->takes_envelopes(rank);
}

bool receive_inspection::is_asked() noexcept {
  const offer_board* const board = offer_board::current();
  return board != nullptr && board->is_inspection_wanted();
}

receive_inspection::extent receive_inspection::current() noexcept {
  const extent now = inspected_now.load();
  if (now == extent::none && !is_asked()) return now;
  return now == extent::all && inspected_as_told.load() == extent::all ? now : widened();
}

receive_inspection::extent receive_inspection::widened() noexcept {
  const bool all = offer_board::current() != nullptr && adopted_pointers::exist();
  const extent next = all ? extent::all : extent::large;
  extent now = inspected_now.load();
  while (now < next && !inspected_now.compare_exchange_weak(now, next)) {
  }
  tell();
  return std::max(now, next);
}

// An uninspected receive that is too small for an envelope does not matter here: only an erroneous program sends it an
// envelope of full length. MPI then reports MPI_ERR_TRUNCATE, and the sender waits for an answer.
void receive_inspection::tell() noexcept {
  const extent now = inspected_now.load();
  if (now == extent::none || large_.load() != 0) return;
  const extent next = small_.load() != 0 ? extent::large : now;
  extent before = inspected_as_told.load();
  while (before < next && !inspected_as_told.compare_exchange_weak(before, next)) {
  }
  offer_board* const board = offer_board::current();
  if (before >= next || board == nullptr) return;
  board->set_takes_envelopes();
  if (next == extent::all) board->set_looks();
}

void receive_inspection::end(int small, int large) noexcept {
  if (small != 0) small_ -= small;
  if (large != 0) large_ -= large;
  if (inspected_now.load() != inspected_as_told.load()) tell();
}

receive_inspection::uninspected::uninspected(bool fits_envelope) noexcept
    : counts_(offer_board::current() != nullptr),
      fits_envelope_(fits_envelope),
      is_large_(counts_ && (fits_envelope || job::has_several_threads())) {
  receive_inspection& all = of_process();
  if (counts_) ++(is_large_ ? all.large_ : all.small_);
}

receive_inspection::uninspected::~uninspected() {
  if (counts_ && !lasts_) of_process().end(is_large_ ? 0 : 1, is_large_ ? 1 : 0);
}

void receive_inspection::uninspected::posted() noexcept {
  if (fits_envelope_ || !is_large_) return;
  receive_inspection& all = of_process();
  ++all.small_;
  is_large_ = false;
  all.end(0, 1);
}

// If host memory is too short for the record, hpe does not learn when the receive completes. The receive then counts as
// in progress until the process ends.
void receive_inspection::uninspected::lasts(MPI_Request request) noexcept {
  if (!counts_ || stands_for_many(request)) return;  // MPI has completed the receive
  posted();
  lasts_ = true;
  receive_inspection& all = of_process();
  const lock_guard lock(all.mutex_);
  try {
    all.requests_.emplace(request, is_large_);
    has_requests.store(true, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): see above
  }
}

receive_inspection::completion::completion(int count, const MPI_Request* requests) : now_(requests) {
  if (!has_requests.load(std::memory_order_relaxed) || requests == nullptr || count <= 0) return;
  count_ = count;
  if (count <= usual) {
    std::copy_n(requests, count, few_.begin());
    before_ = few_.data();
  } else {
    many_.assign(requests, requests + count);
    before_ = many_.data();
  }
}

receive_inspection::completion::~completion() {
  notice();
  if (count_ == 0 || std::equal(before_, before_ + count_, now_)) return;
  receive_inspection& all = of_process();
  int small = 0;
  int large = 0;
  {
    const lock_guard lock(all.mutex_);
    for (int i = 0; i < count_; ++i) {
      if (now_[i] == before_[i]) continue;
      if (const auto was_large = all.remove(before_[i])) ++(*was_large ? large : small);
    }
    has_requests.store(!all.requests_.empty(), std::memory_order_relaxed);
  }
  all.end(small, large);
}

void receive_inspection::freed(MPI_Request request) noexcept {
  if (!has_requests.load(std::memory_order_relaxed)) return;
  std::optional<bool> was_large;
  {
    const lock_guard lock(mutex_);
    was_large = remove(request);
  }
  MPI_Status status;
  if (was_large && is_complete(request, status)) end(*was_large ? 0 : 1, *was_large ? 1 : 0);
}

std::optional<bool> receive_inspection::remove(MPI_Request request) noexcept {
  const auto oldest = requests_.lower_bound(request);
  if (oldest == requests_.end() || oldest->first != request) return std::nullopt;
  const bool was_large = oldest->second;
  requests_.erase(oldest);
  return was_large;
}

}  // namespace hpe::interpose::mpi
