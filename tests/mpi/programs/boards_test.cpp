// Tests the boards in shared memory by which ranks of one machine agree on messages (interpose/mpi/messages/board), and
// the agreement of the ranks in MPI_Init.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "interpose/mpi/messages/board/advertisement_board.h"
#include "interpose/mpi/messages/board/offers.h"
#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/job.h"
#include "tests/mpi/programs/fake_mpi.h"

namespace {

using namespace hpe::interpose::mpi;
using fake_mpi::distant, fake_mpi::neighbour, fake_mpi::rank;
using hpe::interpose::peer_bytes;
using stage = offer_board::stage;

class WithBoards : public fake_mpi::with_job {
 protected:
  static offer_board& offers() { return *offer_board::current(); }
  static advertisement_board& receives() { return *advertisement_board::current(); }
};

// ---- the job

using Job = fake_mpi::with_job;

TEST_F(Job, HasTheSettingsOnWhichTheRanksAgree) {
  const job* const its = job::current();
  ASSERT_NE(its, nullptr);
  EXPECT_EQ(its->rank, rank);
  EXPECT_TRUE(its->several_threads);
  EXPECT_FALSE(its->all_use_cuda);
  EXPECT_EQ(its->same_machine, (std::vector<bool>{true, true, false}));
  EXPECT_EQ(its->large, 9000U) << "rank 0 decides";
  EXPECT_EQ(its->direct, envelope_bytes) << "a message is at least as long as an envelope";
  EXPECT_EQ(its->chunk, std::size_t{64} << 10);
  EXPECT_NE(its->id, job::number{});
  EXPECT_TRUE(its->is_near(neighbour));
  EXPECT_FALSE(its->is_near(distant));
  EXPECT_EQ(its->least(neighbour), envelope_bytes);
  EXPECT_EQ(its->least(distant), 9000U);
}

TEST_F(Job, HasTheSmallerLimitForNearRanks) {
  job other = *job::current();
  other.direct = 10000;
  EXPECT_EQ(other.least(neighbour), 9000U);
  other.direct = 0;
  EXPECT_FALSE(other.is_near(neighbour));
  EXPECT_EQ(other.least(neighbour), 9000U);
}

TEST_F(Job, RanksOfTheWorldKeepTheirNumbers) {
  EXPECT_EQ(job::world_rank(handles::get().comm_world, 2), 2);
  EXPECT_EQ(job::world_rank(handles::get().comm_self, 1), 1);
}

// ---- offers

using Offers = WithBoards;

TEST_F(Offers, AreTakenOnceOrWithdrawn) {
  const auto taken = offers().make(false);
  ASSERT_TRUE(taken);
  EXPECT_EQ(offers().stage_of(*taken), stage::offered);
  EXPECT_EQ(offers().stage_of(rank, *taken), stage::offered);
  EXPECT_TRUE(offers().take(rank, *taken));
  EXPECT_FALSE(offers().take(rank, *taken));
  EXPECT_EQ(offers().stage_of(*taken), stage::taken);
  EXPECT_FALSE(offers().withdraw(*taken));
  offers().done(rank, *taken);
  EXPECT_EQ(offers().stage_of(*taken), stage::done);
  offers().end(*taken);

  const auto withdrawn = offers().make(false);
  EXPECT_TRUE(offers().withdraw(*withdrawn));
  EXPECT_FALSE(offers().withdraw(*withdrawn));
  EXPECT_FALSE(offers().take(rank, *withdrawn));
  EXPECT_EQ(offers().stage_of(*withdrawn), stage::withdrawn);
  offers().end(*withdrawn);
}

TEST_F(Offers, AreCopiedByTheSenderIfTheReceiverAsksAndDoesNotTakeTheRequestBack) {
  const auto made = offers().make(false);
  EXPECT_FALSE(offers().begin_push(*made)) << "nobody has asked";
  ASSERT_TRUE(offers().take(rank, *made));
  offer_board::target wanted;
  wanted.place.allocation = 77;
  wanted.place.offset = 3;
  wanted.shape.extent = {5, 6, 7};
  offers().ask(rank, *made, wanted);
  EXPECT_EQ(offers().stage_of(*made), stage::asked);
  EXPECT_TRUE(offers().take_back(rank, *made));
  EXPECT_EQ(offers().stage_of(*made), stage::taken);
  EXPECT_FALSE(offers().begin_push(*made)) << "the receiver copies";
  offers().ask(rank, *made, wanted);
  EXPECT_TRUE(offers().begin_push(*made));
  EXPECT_EQ(offers().watch(rank, *made), stage::pushing);
  EXPECT_FALSE(offers().take_back(rank, *made)) << "the sender copies";
  EXPECT_EQ(offers().target_of(*made).place, wanted.place);
  EXPECT_EQ(offers().target_of(*made).shape.extent.rows, 6U);
  offers().pushed(*made);
  EXPECT_EQ(offers().watch(rank, *made), stage::done);
  offers().leave(*made);
  EXPECT_EQ(offers().stage_of(rank, *made), stage::left);
  offers().matched(rank, *made);
  EXPECT_EQ(offers().watch(*made, [] { return false; }), stage::matched);
  offers().end(*made);
}

TEST_F(Offers, OfOneSlotAreDifferentInEachTurn) {
  const auto first = offers().make(false);
  offers().await(*first);
  EXPECT_TRUE(offers().is_awaited(rank, *first));
  offers().end(*first);
  const auto second = offers().make(false);
  ASSERT_EQ(second->slot, first->slot);
  EXPECT_FALSE(second->is_same(*first));
  EXPECT_TRUE(second->is_same(*second));
  EXPECT_EQ(second->turn, first->turn + 1);
  EXPECT_FALSE(offers().is_awaited(rank, *second));
  EXPECT_EQ(offers().stage_of(rank, *first), stage::done) << "the slot has a later offer";
  EXPECT_EQ(offers().stage_of(rank, *second), stage::offered);
  EXPECT_FALSE(offers().take(rank, *first));
  EXPECT_TRUE(offers().take(rank, *second));
  offers().end(*second);
}

TEST_F(Offers, ThatAreKeptAreNotWritten) {
  const auto earlier = offers().make(false);
  ASSERT_TRUE(offers().take(rank, *earlier));
  offers().show_taken(rank, *earlier);
  EXPECT_EQ(offers().stage_of(*earlier), stage::taken);
  offers().done(rank, *earlier);
  offers().end(*earlier);
  const auto kept = offers().make(true);
  ASSERT_EQ(kept->slot, earlier->slot);
  EXPECT_TRUE(kept->kept);
  EXPECT_FALSE(earlier->kept);
  EXPECT_EQ(offers().stage_of(rank, *earlier), stage::done) << "the cell has the earlier offer";
  EXPECT_EQ(offers().stage_of(*kept), stage::offered);
  EXPECT_TRUE(offers().take(rank, *kept));
  EXPECT_EQ(offers().stage_of(*kept), stage::offered);
  offers().show_taken(rank, *kept);
  EXPECT_EQ(offers().stage_of(*kept), stage::taken);
  offers().done(rank, *kept);
  offers().end(*kept);
}

TEST_F(Offers, CopiesWithoutARequestEndWithSuccessOrFailure) {
  const auto first = offers().make(false);
  EXPECT_FALSE(offers().is_copied(rank, *first));
  EXPECT_FALSE(offers().watch_copy(rank, *first));
  offers().copied(*first);
  EXPECT_TRUE(offers().is_copied(rank, *first));
  EXPECT_TRUE(offers().watch_copy(rank, *first));
  EXPECT_FALSE(offers().has_failed(rank, *first));
  offers().end(*first);
  const auto second = offers().make(false);
  ASSERT_EQ(second->slot, first->slot);
  EXPECT_FALSE(offers().is_copied(rank, *second));
  offers().fail(*second);
  EXPECT_TRUE(offers().is_copied(rank, *second));
  EXPECT_TRUE(offers().has_failed(rank, *second));
  EXPECT_TRUE(offers().is_copied(rank, *first)) << "a later copy has ended";
  EXPECT_FALSE(offers().has_failed(rank, *first));
  offers().end(*second);
}

TEST_F(Offers, AreLimited) {
  std::vector<offer_board::offer> all;
  std::vector<bool> used;
  while (const auto made = offers().make(true)) {
    all.push_back(*made);
    if (made->slot >= used.size()) used.resize(made->slot + 1);
    EXPECT_FALSE(used[made->slot]);
    used[made->slot] = true;
  }
  EXPECT_EQ(all.size(), 1023U);
  EXPECT_EQ(used.size(), 1023U);
  offers().end(all[500]);
  const auto again = offers().make(true);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->slot, all[500].slot);
  EXPECT_FALSE(offers().make(true));
  all[500] = *again;
  for (const auto& each : all) offers().end(each);
}

TEST_F(Offers, RanksTellWhatTheyCanDo) {
  EXPECT_FALSE(offers().looks(rank));
  EXPECT_FALSE(offers().looks(neighbour));
  offers().set_looks();
  EXPECT_TRUE(offers().looks(rank));
  EXPECT_FALSE(offers().looks(neighbour));
  EXPECT_FALSE(offers().is_inspection_wanted());
  offers().want_inspection();
  EXPECT_TRUE(offers().is_inspection_wanted());
  EXPECT_FALSE(offers().takes_envelopes(neighbour));
  offers().set_takes_envelopes();
  EXPECT_TRUE(offers().takes_envelopes(rank));
  EXPECT_FALSE(offers().takes_envelopes(neighbour));
  EXPECT_FALSE(offers().is_of_no_use(neighbour));
  offers().set_of_no_use(neighbour);
  EXPECT_TRUE(offers().is_of_no_use(neighbour));
  EXPECT_FALSE(offers().is_of_no_use(rank));
  offer_board::device_id device{std::byte{4}};
  EXPECT_FALSE(offers().sends_from(device)) << "no other rank sends";
  EXPECT_FALSE(offers().sends_from(device));
}

// ---- advertised receives. This rank advertises them to itself.

class Advertisements : public WithBoards {
 protected:
  static constexpr advertisement_board::communicator_name comm = 17;
  static constexpr int tag = 5;

  static peer_bytes place(std::uint64_t offset) {
    peer_bytes result;
    result.allocation = 9;
    result.base = 0x10000;
    result.offset = offset;
    return result;
  }
  static auto advertise(int its_tag, std::size_t bytes, std::uint64_t offset = 0) {
    return receives().advertise({rank, comm, 0}, its_tag, bytes, place(offset));
  }
  static std::optional<peer_bytes> claim(int its_tag, std::size_t bytes, const offer_board::offer& with,
                                         bool may_copy = true, advertisement_board::communicator_name its = comm) {
    return receives().claim(rank, its, its_tag, bytes, with, [=](const peer_bytes&) { return may_copy; });
  }
};

TEST_F(Advertisements, AreClaimedByTheMessageThatMatches) {
  const offer_board::offer with{3, 8, false};
  EXPECT_FALSE(receives().has_any(rank));
  EXPECT_FALSE(claim(tag, 10, with));
  auto made = advertise(tag, 100, 48);
  ASSERT_NE(made, nullptr);
  EXPECT_TRUE(receives().has_any(rank));
  EXPECT_FALSE(receives().has_any(neighbour));
  EXPECT_FALSE(claim(tag + 1, 10, with));
  EXPECT_FALSE(claim(tag, 10, with, true, comm + 1));
  EXPECT_FALSE(claim(tag, 101, with)) << "longer than the buffer";
  EXPECT_FALSE(claim(tag, 100, with, false)) << "the sender may not copy there";
  const auto found = claim(tag, 100, with);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, place(48));
  EXPECT_FALSE(claim(tag, 100, with)) << "each receive is claimed once";
  EXPECT_FALSE(receives().has_any(rank));
  const auto by = made->claim();
  ASSERT_TRUE(by);
  EXPECT_TRUE(by->is_same(with));
  EXPECT_FALSE(made->is_over());
  offers().copied(with);  // all offers with this slot use the memory of this rank
  EXPECT_TRUE(made->is_over());
}

TEST_F(Advertisements, TheOldestThatMatchesIsClaimedUnlessItIsTooShort) {
  const offer_board::offer with{4, 1, false};
  auto other = advertise(tag + 1, 400, 1), first = advertise(tag, 100, 2), second = advertise(tag, 200, 3);
  EXPECT_FALSE(claim(tag, 150, with)) << "MPI matches the message with the first receive";
  EXPECT_EQ(claim(tag, 100, with)->offset, 2U);
  EXPECT_EQ(claim(tag, 150, with)->offset, 3U);
  EXPECT_TRUE(receives().has_any(rank));
  EXPECT_EQ(claim(tag + 1, 400, with)->offset, 1U);
  EXPECT_FALSE(claim(tag + 1, 1, with));
  EXPECT_FALSE(receives().has_any(rank));
  offers().copied(with);
}

TEST_F(Advertisements, AreWithdrawnIfNobodyHasClaimedThem) {
  auto made = advertise(tag, 100);
  EXPECT_FALSE(made->claim());
  EXPECT_TRUE(made->is_over());
  EXPECT_FALSE(claim(tag, 10, {5, 1, false}));
  made.reset();
  { const auto another = advertise(tag, 100); }
  EXPECT_FALSE(claim(tag, 10, {5, 1, false})) << "the receive has ended";
}

TEST_F(Advertisements, OlderReceivesOfTheSameMessagesAreWithdrawn) {
  const offer_board::offer with{6, 1, false};
  auto first = advertise(tag, 100, 1), other = advertise(tag + 1, 100, 2), own = advertise(tag, 100, 3),
       later = advertise(tag, 100, 4);
  EXPECT_EQ(own->about(), (advertisement_board::messages{rank, comm, tag}));
  receives().withdraw_before(own.get(), own->about());
  EXPECT_EQ(claim(tag, 100, with)->offset, 3U);
  EXPECT_EQ(claim(tag + 1, 100, with)->offset, 2U);
  receives().withdraw_before(nullptr, own->about());
  EXPECT_FALSE(claim(tag, 100, with));
  offers().copied(with);
}

TEST_F(Advertisements, AreLimitedForEachSender) {
  std::vector<std::unique_ptr<advertisement_board::advertisement>> all;
  while (auto made = advertise(tag, 100, all.size())) all.push_back(std::move(made));
  EXPECT_EQ(all.size(), 64U);
  const offer_board::offer with{7, 1, false};
  for (std::size_t n = 0; n < 3; ++n) EXPECT_EQ(claim(tag, 100, with)->offset, n);
  EXPECT_EQ(advertise(tag, 100), nullptr) << "claimed receives still use their cells";
  offers().copied(with);
  all.erase(all.begin());
  EXPECT_NE(all.emplace_back(advertise(tag, 100, 64)), nullptr);
  EXPECT_EQ(advertise(tag, 100), nullptr);
  for (std::size_t n = 3; n < 65; ++n) EXPECT_EQ(claim(tag, 100, with)->offset, n);
  EXPECT_FALSE(claim(tag, 100, with));
}

TEST_F(Advertisements, GoToSendersThatAreKnownAndNear) {
  const MPI_Comm world = handles::get().comm_world, self = handles::get().comm_self;
  EXPECT_EQ(receives().sender_of(world, 0), nullptr);
  receives().learn(world, 0, neighbour, 3);
  receives().learn(world, 1, rank, 3);
  receives().learn(world, 2, distant, 3);
  const auto* const known = receives().sender_of(world, 0);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->rank, neighbour);
  EXPECT_EQ(known->communicator, 3U);
  EXPECT_EQ(receives().sender_of(world, 1), nullptr) << "this rank";
  EXPECT_EQ(receives().sender_of(world, 2), nullptr) << "another machine";
  EXPECT_EQ(receives().sender_of(self, 0), nullptr) << "another communicator";
  receives().mistaken(self, 0);
  EXPECT_EQ(receives().sender_of(self, 0), nullptr);
  receives().mistaken(world, 0);
  for (int n = 0; n < 64; ++n) EXPECT_EQ(receives().sender_of(world, 0), nullptr) << n;
  EXPECT_EQ(receives().sender_of(world, 0), known);
  receives().learn(world, 0, neighbour, 4);
  EXPECT_EQ(receives().sender_of(world, 0)->communicator, 4U);
  for (int source = 10; source < 10 + 4200; ++source) receives().learn(self, source, neighbour, 1);
  EXPECT_EQ(receives().sender_of(world, 0), nullptr) << "the table does not grow without end";
}

TEST(Advertisement, CommunicatorsHaveNamesOfTheirOwn) {
  const auto comm_at = [](std::uintptr_t address) { return reinterpret_cast<MPI_Comm>(address); };
  EXPECT_NE(advertisement_board::name_of(comm_at(0x7000)), advertisement_board::name_of(comm_at(0x7010)));
  EXPECT_NE(advertisement_board::name_of(comm_at(0x100007000)), advertisement_board::name_of(comm_at(0x7000)));
}

}  // namespace
