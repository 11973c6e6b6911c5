// Tests the exchange of messages by the wrappers: chunks, the progress of transfers, answers and envelopes.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "interpose/mpi/messages/channel.h"
#include "interpose/mpi/messages/envelope.h"
#include "interpose/mpi/messages/job.h"
#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/messages/transfer/chunks.h"
#include "tests/mpi/programs/fake_mpi.h"

namespace {

using namespace hpe::interpose::mpi;
using fake_mpi::distant, fake_mpi::messages, fake_mpi::neighbour;

// ---- chunks

TEST(Chunks, HaveASizeThatFitsTheMessage) {
  constexpr std::size_t k = 1024, m = k * k;
  for (const auto& [bytes, most, size] : std::vector<std::array<std::size_t, 3>>{{1, 1, 1},
                                                                                 {1, 100 * m, 512 * k},
                                                                                 {4 * m, 100 * m, 512 * k},
                                                                                 {4 * m + 8, 100 * m, 576 * k},
                                                                                 {8 * m, 100 * m, m},
                                                                                 {8 * m + 7, 100 * m, m},
                                                                                 {8 * m + 8, 100 * m, m + 64 * k},
                                                                                 {80 * m, 2 * m, 2 * m},
                                                                                 {80 * m, 10 * m, 10 * m}})
    EXPECT_EQ(chunk_plan::chunk_for(bytes, most), size) << bytes << " " << most;
}

TEST(Chunks, CoverTheMessage) {
  for (const std::size_t bytes : {1, 99, 100, 101, 199, 200, 1000}) {
    const chunk_plan plan{.bytes = bytes, .chunk = 100};
    std::size_t sum = 0;
    for (std::size_t n = 0; n < plan.count(); ++n) {
      EXPECT_EQ(plan.offset(n), sum);
      EXPECT_GT(plan.size(n), 0U);
      EXPECT_LE(plan.size(n), 100U);
      sum += plan.size(n);
    }
    EXPECT_EQ(sum, bytes);
  }
}

TEST(Failures, TheFirstIsKept) {
  first_failure none;
  none.attempt([] {});
  EXPECT_FALSE(none.any());
  first_failure failure;
  failure.attempt([] { throw hpe::error(HPE_ERROR_DEVICE_LOST, "first"); });
  failure.attempt([] { throw hpe::error(HPE_ERROR_SYSTEM, "second"); });
  failure.attempt([] { throw std::bad_alloc(); });
  ASSERT_TRUE(failure.any());
  EXPECT_EQ(failure.what()->status(), HPE_ERROR_DEVICE_LOST);
  first_failure memory;
  memory.attempt([] { throw std::bad_alloc(); });
  memory.attempt([] { throw hpe::error(HPE_ERROR_SYSTEM, "second"); });
  EXPECT_EQ(memory.what()->status(), HPE_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(first_failure(failure.what()).what()->status(), HPE_ERROR_DEVICE_LOST);
}

class Transfers : public fake_mpi::with_job {
 protected:
  Transfers() {
    const progress::guard held;
    first_ = messages().size();
  }
  /// The messages that the test's transfers have begun.
  [[nodiscard]] std::size_t count() const { return messages().size() - first_; }
  [[nodiscard]] fake_mpi::message& at(std::size_t n) const { return messages().at(first_ + n); }

  transfer_over over() {
    return [this](const std::optional<hpe::error>& failure) {
      ++ended_;
      failure_ = failure;
    };
  }

  std::size_t first_ = 0;
  int ended_ = 0;
  std::optional<hpe::error> failure_;
  const progress::busy under_way_;
};

TEST_F(Transfers, EightChunksAreSentAtATimeInOrder) {
  std::vector<std::byte> payload(1150);
  const chunk_plan plan{.bytes = payload.size(), .chunk = 100, .rank = neighbour, .tag = 12};
  {
    const progress::guard held;
    send_in_chunks(payload.data(), plan, over());
  }
  ASSERT_EQ(count(), 8U);
  fake_mpi::complete(at(0));
  fake_mpi::complete(at(2));
  fake_mpi::make_progress();
  EXPECT_EQ(count(), 9U) << "chunk 10 uses the place of chunk 2, but is sent after chunk 9";
  fake_mpi::complete(at(1));
  fake_mpi::make_progress();
  ASSERT_EQ(count(), 11U);
  for (std::size_t n = 3; n < 11; ++n) {
    EXPECT_EQ(ended_, 0);
    fake_mpi::complete(at(n));
    fake_mpi::make_progress();
  }
  ASSERT_EQ(count(), 12U);
  EXPECT_EQ(ended_, 0);
  fake_mpi::complete(at(11));
  fake_mpi::make_progress();
  fake_mpi::make_progress();
  EXPECT_EQ(count(), 12U);
  EXPECT_EQ(ended_, 1);
  EXPECT_FALSE(failure_);
  for (std::size_t n = 0; n < 12; ++n) {
    EXPECT_TRUE(at(n).is_send);
    EXPECT_EQ(at(n).buffer, payload.data() + 100 * n);
    EXPECT_EQ(at(n).bytes, n == 11 ? 50 : 100);
    EXPECT_EQ(at(n).peer, neighbour);
    EXPECT_EQ(at(n).tag, 12);
  }
}

TEST_F(Transfers, EightChunksAreReceivedAtATime) {
  std::vector<std::byte> payload(950);
  const chunk_plan plan{.bytes = payload.size(), .chunk = 100, .rank = distant, .tag = 13};
  {
    const progress::guard held;
    receive_in_chunks(payload.data(), plan, over());
  }
  ASSERT_EQ(count(), 8U);
  fake_mpi::complete(at(1), 100);
  fake_mpi::make_progress();
  EXPECT_EQ(count(), 8U) << "receives are posted in the order of the chunks";
  fake_mpi::complete(at(0), 100);
  fake_mpi::make_progress();
  ASSERT_EQ(count(), 10U);
  fake_mpi::complete(at(9), 50);
  for (std::size_t n = 2; n < 9; ++n) {
    EXPECT_EQ(ended_, 0);
    fake_mpi::complete(at(n), 100);
    fake_mpi::make_progress();
  }
  fake_mpi::make_progress();
  EXPECT_EQ(count(), 10U);
  EXPECT_EQ(ended_, 1);
  EXPECT_FALSE(failure_);
  for (std::size_t n = 0; n < 10; ++n) {
    EXPECT_FALSE(at(n).is_send);
    EXPECT_EQ(at(n).buffer, payload.data() + 100 * n);
    EXPECT_EQ(at(n).bytes, n == 9 ? 50 : 100);
    EXPECT_EQ(at(n).peer, distant);
    EXPECT_EQ(at(n).tag, 13);
  }
}

TEST_F(Transfers, AfterAFailureTheRemainingChunksAreReceivedElsewhere) {
  std::vector<std::byte> payload(1000);
  const auto is_in_payload = [&](const fake_mpi::message& m) {
    return m.buffer >= payload.data() && m.buffer < payload.data() + payload.size();
  };
  for (const bool is_short : {true, false}) {
    first_ = messages().size();
    ended_ = 0;
    failure_.reset();
    {
      const progress::guard held;
      receive_in_chunks(payload.data(), {.bytes = payload.size(), .chunk = 100, .rank = distant, .tag = 14}, over());
    }
    if (is_short) fake_mpi::complete(at(0), 99);
    if (!is_short) fake_mpi::complete(at(0), 100, MPI_ERR_OTHER);
    fake_mpi::make_progress();
    fake_mpi::make_progress();
    ASSERT_EQ(count(), 9U);
    EXPECT_TRUE(is_in_payload(at(7)));
    EXPECT_FALSE(is_in_payload(at(8)));
    for (std::size_t n = 1; n < 10; ++n) {
      EXPECT_EQ(ended_, 0);
      fake_mpi::complete(at(n), 100);
      fake_mpi::make_progress();
    }
    EXPECT_EQ(ended_, 1);
    ASSERT_TRUE(failure_);
    EXPECT_EQ(failure_->status(), HPE_ERROR_SYSTEM);
    EXPECT_NE(std::string(failure_->what()).find("rank 2 could not send all of a message of 1000 bytes"),
              std::string::npos)
        << failure_->what();
  }
}

// ---- progress

using Progress = fake_mpi::with_job;

TEST_F(Progress, PollsAreCalledUntilTheyAreDone) {
  progress& all = progress::of_process();
  int first = 0, second = 0;
  {
    const progress::guard held;
    all.repeat([&] {
      if (++first == 1) all.repeat([&] { return ++second == 2; });
      return first == 2;
    });
  }
  fake_mpi::make_progress();
  EXPECT_EQ(first, 0) << "nothing is in progress";
  EXPECT_TRUE(all.idle());
  const progress::busy one;
  EXPECT_TRUE(all.only_one());
  EXPECT_FALSE(all.idle());
  {
    const progress::guard held;
    EXPECT_EQ(fake_mpi::make_progress(), 0);
    EXPECT_EQ(first, 0) << "a guard exists";
  }
  EXPECT_EQ(fake_mpi::make_progress(), 0);
  EXPECT_EQ(std::pair(first, second), std::pair(1, 0));
  EXPECT_EQ(fake_mpi::make_progress(), 1);
  EXPECT_EQ(std::pair(first, second), std::pair(2, 1));
  all.look();
  EXPECT_EQ(second, 1) << "no other operation is in progress";
  const progress::busy another;
  EXPECT_FALSE(all.only_one());
  {
    const progress::guard held;
    all.look();
  }
  EXPECT_EQ(second, 1) << "a guard exists";
  all.look();
  EXPECT_EQ(second, 2);
  EXPECT_EQ(fake_mpi::make_progress(), 0);
  EXPECT_EQ(std::pair(first, second), std::pair(2, 2));
}

TEST_F(Progress, ContinuationsGetTheStatusOfTheirRequest) {
  const progress::busy one;
  progress& all = progress::of_process();
  const std::size_t first = messages().size();
  std::vector<std::array<int, 3>> got;
  {
    const progress::guard held;
    for (int n = 0; n < 20; ++n) {
      MPI_Request request{};
      MPI_Status unused{};
      static_cast<void>(unused);
      all.make_room();
      HPE_REAL(Irecv)(nullptr, 0, handles::get().byte, neighbour, n, job::current()->channel, &request);
      all.when_over(request, [&got, n](const MPI_Status& status, int code) {
        got.push_back({n, status.MPI_TAG, code});
      });
    }
  }
  EXPECT_EQ(fake_mpi::make_progress(), 0);
  std::vector<std::size_t> order(20);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  std::vector<std::array<int, 3>> expected;
  for (std::size_t n = 0; n < order.size(); n += 2) {
    const auto low = std::min(order[n], order[n + 1]), high = std::max(order[n], order[n + 1]);
    fake_mpi::complete(messages().at(first + low));
    fake_mpi::complete(messages().at(first + high), 0, n % 4 == 0 ? MPI_ERR_OTHER : MPI_SUCCESS);
    for (const std::size_t each : {low, high})
      expected.push_back(
          {static_cast<int>(each), static_cast<int>(each), each == high && n % 4 == 0 ? MPI_ERR_OTHER : MPI_SUCCESS});
    EXPECT_EQ(fake_mpi::make_progress(), 2);
  }
  EXPECT_EQ(got, expected);
}

TEST_F(Progress, SomeOfTheReceivesBesideOthersLookForArrivals) {
  progress& all = progress::of_process();
  const int before = fake_mpi::progress_calls();
  for (int n = 0; n < 16; ++n) all.look_at_arrivals();
  const progress::busy one;
  for (int n = 0; n < 16; ++n) all.look_at_arrivals();
  EXPECT_EQ(fake_mpi::progress_calls(), before);
  const progress::busy another;
  for (int n = 0; n < 24; ++n) all.look_at_arrivals();
  EXPECT_EQ(fake_mpi::progress_calls(), before + 3);
}

TEST_F(Progress, OwedOperationsAreCounted) {
  progress& all = progress::of_process();
  EXPECT_TRUE(all.owes_nothing());
  all.owe(2);
  all.owe(-1);
  EXPECT_FALSE(all.owes_nothing());
  int calls = 0;
  const int before = fake_mpi::progress_calls();
  all.until([&] {
    if (++calls == 4) all.owe(-1);
    return all.owes_nothing();
  });
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(fake_mpi::progress_calls(), before + 3);
  EXPECT_FALSE(all.continues_itself()) << "this MPI library calls hpe";
}

// ---- answers and envelopes

class Channel : public fake_mpi::with_job {
 protected:
  static fake_mpi::message& listening() {
    for (auto& m : messages())
      if (!m.is_send && !m.is_complete && m.peer == MPI_ANY_SOURCE) return m;
    throw std::logic_error("nobody listens for answers");
  }
};

TEST_F(Channel, EachAnswerIsGivenToTheSenderOfItsEnvelope) {
  const progress::busy one;
  channel& its = channel::of_process();
  std::vector<std::pair<int, int>> got;
  std::vector<std::uint64_t> numbers;
  {
    const progress::guard held;
    for (int n = 0; n < 3; ++n)
      numbers.push_back(
          its.expect_answer([&got, n](const envelope_answer& answer) { got.emplace_back(n, answer.tag); }));
  }
  const auto answer = [](std::uint64_t sequence, int tag) {
    const envelope_answer what{sequence, envelope_answer::verdict::chunks, tag};
    fake_mpi::message& place = listening();
    ASSERT_EQ(place.bytes, static_cast<int>(sizeof what));
    std::memcpy(place.buffer, &what, sizeof what);
    fake_mpi::complete(place, sizeof what);
    fake_mpi::make_progress();
  };
  answer(numbers[1], 41);
  answer(numbers[0], 40);
  answer(numbers[1], 99);  // a second answer is for nobody
  answer(numbers[2] + 1000, 98);
  answer(numbers[2], 42);
  EXPECT_EQ(got, (std::vector<std::pair<int, int>>{{1, 41}, {0, 40}, {2, 42}}));
}

TEST_F(Channel, AnAnswerIsOwedUntilItIsSent) {
  progress& all = progress::of_process();
  const std::size_t first = messages().size();
  {
    const progress::guard held;
    channel::of_process().send({55, envelope_answer::verdict::done, 3}, neighbour);
  }
  ASSERT_EQ(messages().size(), first + 1);
  fake_mpi::message& sent = messages().back();
  EXPECT_TRUE(sent.is_send);
  EXPECT_EQ(sent.peer, neighbour);
  envelope_answer what;
  ASSERT_EQ(sent.bytes, static_cast<int>(sizeof what));
  std::memcpy(&what, sent.buffer, sizeof what);
  EXPECT_EQ(what.sequence, 55U);
  EXPECT_EQ(what.tag, 3);
  EXPECT_FALSE(all.owes_nothing());
  EXPECT_TRUE(all.only_one());
  fake_mpi::complete(sent);
  fake_mpi::make_progress();
  EXPECT_TRUE(all.owes_nothing());
  EXPECT_TRUE(all.idle());
}

TEST_F(Channel, TagsOfTransfersAreReusedInRotation) {
  channel& its = channel::of_process();
  const progress::guard held;
  const int first = its.new_tag();
  for (int n = 1; n < 32767; ++n) {
    const int tag = its.new_tag();
    ASSERT_GE(tag, 1);
    ASSERT_LE(tag, 32767);
    ASSERT_NE(tag, first);
  }
  EXPECT_EQ(its.new_tag(), first);
}

TEST_F(Channel, EnvelopesAreRecognisedByTheirLengthAndTheJob) {
  envelope sent;
  sent.job_id = job::current()->id;
  sent.sequence = 7;
  sent.bytes = 123456;
  sent.chunk = 4096;
  sent.sender = 2;
  sent.communicator = 19;
  envelope::offered_bytes offered;
  offered.device.allocation = 5;
  offered.offer = {3, 4, true};
  offered.awaited = true;
  sent.memory = offered;
  for (const std::size_t length : {short_envelope_bytes, envelope_bytes}) {
    EXPECT_TRUE(envelope::is_length(length));
    EXPECT_FALSE(envelope::is_length(length + 1));
    EXPECT_FALSE(envelope::is_length(length - 1));
    envelope::wire wire;
    wire.fill(std::byte{0xab});
    sent.pack(wire, length);
    for (std::size_t n = length; n < wire.size(); ++n) ASSERT_EQ(wire[n], std::byte{0xab}) << n;
    EXPECT_EQ(wire[length - 1], std::byte{0});
    const auto got = envelope::recognise(wire.data(), length);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->sequence, 7U);
    EXPECT_EQ(got->bytes, 123456U);
    EXPECT_EQ(got->chunk, 4096U);
    EXPECT_EQ(got->sender, 2);
    EXPECT_EQ(got->communicator, 19U);
    ASSERT_NE(got->offered(), nullptr);
    EXPECT_EQ(got->exported(), nullptr);
    EXPECT_TRUE(got->offered()->offer.is_same(offered.offer));
    EXPECT_TRUE(got->offered()->awaited);
    EXPECT_EQ(got->offered()->device, offered.device);
    EXPECT_FALSE(envelope::recognise(wire.data(), length - 1));
    wire[0] ^= std::byte{1};
    EXPECT_FALSE(envelope::recognise(wire.data(), length)) << "of another job";
  }
}

}  // namespace
