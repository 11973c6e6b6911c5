#include "interpose/check/message_uses.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "runtime/check/host_watch.h"
#include "tests/check/four_pages.h"

using namespace hpe::check;
using hpe::interpose::message_uses;

namespace {

hpeTouchWatcher handlers_of_messages{};

hpeStatus show_touches_to_messages(const hpeTouchWatcher* watcher, bool* can_step) {
  handlers_of_messages = *watcher;
  *can_step = true;
  return HPE_SUCCESS;
}

/// The test makes the calls of MPI's wrappers, and says what kind of memory the four pages are.
class MessageUses : public with_four_pages, public message_uses {
 protected:
  MessageUses() {
    EXPECT_EQ(host_watch::start(show_touches_to_messages), HPE_SUCCESS);
    static auto* const all = new std::vector<host_watch*>;  // a process usually has one, which is never deleted
    all->push_back(host_watch::of_process());
  }

  checker& started_checker() override {
    if (!starts_) throw std::runtime_error("no devices");
    return checker_;
  }
  buffer_memory memory_at(const void* address) const override {
    const auto offset = static_cast<std::uintptr_t>(static_cast<const char*>(address) - memory_);
    return offset < 4 * page ? kind_ : buffer_memory::ordinary;
  }

  [[nodiscard]] buffer written(std::uintptr_t begin, std::uintptr_t end) const {
    return {memory_ + begin, end - begin, true};
  }
  [[nodiscard]] buffer read(std::uintptr_t begin, std::uintptr_t end) const {
    return {memory_ + begin, end - begin, false};
  }
  /// Makes a call of MPI that begins to use buffers.
  std::uint64_t use(const char* function, const std::vector<buffer>& buffers) {
    enter();
    const std::uint64_t made = begin(function, buffers);
    leave();
    return made;
  }
  std::uint64_t use(const char* function, const buffer& one) { return use(function, std::vector{one}); }
  /// Makes a call of MPI that completes a use, which a wait or a test tells the program.
  void complete(std::uint64_t which, bool is_new = true) {
    enter();
    end(which, is_new);
    leave();
  }
  /// The four pages are memory of CUDA.
  void allocate(buffer_memory kind) {
    kind_ = kind;
    checker_.allocate(at(0), 4 * page, false, false,
                      std::make_shared<const call_place>(call_place::here("cudaMallocHost")));
  }
  /// Queues a copy that writes, or reads, bytes of this memory.
  void copy(std::uintptr_t begin, std::uintptr_t end, bool writes) {
    const auto made = std::make_shared<const call_place>(call_place::here("cudaMemcpyAsync"));
    const auto work = checker_.queue(checker_.add_line(0), 7, {}, {}, {.uses_memory = true}, made);
    const access_range range{at(begin), at(end), writes ? use_of::write : use_of::read, 0};
    checker_.add({std::make_shared<const checked_operation>(checked_operation{made->call, made}), work}, {&range, 1});
    copies_.push_back(work->when);
  }
  void wait_for_copies() {
    for (const past_ptr& each : copies_) checker_.wait(each);
    copies_.clear();
  }
  using use_of = hpe::check::use;
  using words = std::vector<std::string>;

  words kinds() {
    words result;
    for (const finding& each : checker_.take()) result.push_back(each.kind);
    return result;
  }
  words sentences() {
    words result;
    for (const finding& each : checker_.take()) result.push_back(each.sentence);
    return result;
  }

  checker checker_{ignored_findings(""), [](std::uint64_t, std::uint64_t) { return true; },
                   [](std::uint64_t) { return true; }, [] { return host_watch::of_process()->take_touches(); }};
  buffer_memory kind_ = buffer_memory::ordinary;
  bool starts_ = true;
  std::vector<past_ptr> copies_;
};

}  // namespace

TEST_F(MessageUses, OfOrdinaryMemoryWatchThePagesThatTheyCover) {
  const auto received = use("MPI_Irecv", written(page - 1, 3 * page - 1));
  EXPECT_EQ(protections(), "w-ww");
  complete(received);
  EXPECT_EQ(protections(), "wwww");
  const auto sent = use("MPI_Isend", read(page, 3 * page));
  EXPECT_EQ(protections(), "wrrw");
  complete(sent);
  const auto part = use("MPI_Irecv", written(page + 1, 2 * page));
  EXPECT_EQ(protections(), "wwww");
  complete(part);
}

TEST_F(MessageUses, OfPinnedMemoryWatchAllTheirPages) {
  allocate(buffer_memory::pinned);
  const auto received = use("MPI_Irecv", written(page - 1, 2 * page + 1));
  EXPECT_EQ(protections(), "---w");
  complete(received);
  EXPECT_EQ(protections(), "wwww");
  const auto nothing = use("MPI_Irecv", written(page, page));
  EXPECT_EQ(protections(), "wwww");
  complete(nothing);
}

TEST_F(MessageUses, OfOtherMemoryWatchNoPages) {
  for (const auto kind : {buffer_memory::of_cuda, buffer_memory::other}) {
    allocate(kind);
    const auto received = use("MPI_Irecv", written(0, 4 * page));
    EXPECT_EQ(protections(), "wwww");
    complete(received);
  }
}

TEST_F(MessageUses, PagesAreOpenInFunctionsOfMpi) {
  enter();
  const auto made = begin("MPI_Irecv", std::vector{written(0, page)});
  EXPECT_EQ(protections(), "wwww");
  leave();
  EXPECT_EQ(protections(), "-www");
  enter();
  EXPECT_EQ(protections(), "wwww");
  leave();
  complete(made);
}

TEST_F(MessageUses, TouchesOfOrdinaryMemoryAreFoundUntilTheUseHasEnded) {
  const auto touch = [this](std::uintptr_t offset, bool writes) {
    handlers_of_messages.called(memory_ + offset, 4, writes);
  };
  const auto received = use("MPI_Irecv", {written(0, page), read(2 * page, 3 * page)});
  touch(page, true);
  touch(3 * page, true);
  touch(2 * page, false);
  EXPECT_EQ(kinds(), words{}) << "beside the buffers, or a second read";
  touch(page - 4, false);
  EXPECT_EQ(sentences(), words{"CPU code reads memory that MPI_Irecv may still write"});
  touch(2 * page, true);
  EXPECT_EQ(sentences(), words{"CPU code writes memory that MPI_Irecv may still read"});
  complete(received);
  touch(0, true);
  touch(2 * page, true);
  EXPECT_EQ(kinds(), words{});
}

TEST_F(MessageUses, ConflictWithDeviceWorkForWhichNobodyHasWaited) {
  allocate(buffer_memory::of_cuda);
  copy(100, 200, true);
  complete(use("MPI_Send", {read(0, 100), read(200, 300)}));
  EXPECT_EQ(kinds(), words{});
  complete(use("MPI_Send", {read(0, 100), read(150, 151)}));
  EXPECT_EQ(sentences(), words{"MPI_Send reads bytes that cudaMemcpyAsync may still write"});
  wait_for_copies();
  complete(use("MPI_Recv", written(150, 151)));
  EXPECT_EQ(kinds(), words{});
  const auto active = use("MPI_Isend", read(0, 10));
  complete(use("MPI_Recv", written(10, 20)));
  EXPECT_EQ(kinds(), words{});
  complete(use("MPI_Recv", written(9, 20)));
  EXPECT_EQ(kinds(), words{"mpi-race"}) << "of two calls";
  complete(active);
  complete(use("MPI_Recv", written(9, 20)));
  EXPECT_EQ(kinds(), words{});
}

TEST_F(MessageUses, BuffersOfOneCallThatMeetAreOneAccess) {
  const auto first_range = [this](const std::vector<buffer>& buffers, std::uintptr_t begin, std::uintptr_t end) {
    allocate(buffer_memory::of_cuda);
    copy(begin, end, true);
    complete(use("MPI_Send", buffers));
    const auto found = checker_.take();
    wait_for_copies();
    EXPECT_FALSE(found.empty());
    return found.empty() ? std::pair(std::uint64_t{0}, std::uint64_t{0})
                         : std::pair(found[0].address - at(0), found[0].bytes);
  };
  const auto range = [](std::uint64_t begin, std::uint64_t bytes) { return std::pair(begin, bytes); };
  EXPECT_EQ(first_range({read(40, 50), read(10, 20), read(15, 30)}, 0, 100), range(10, 20));
  EXPECT_EQ(first_range({read(10, 30), read(12, 14), read(30, 40)}, 0, 100), range(10, 30));
  EXPECT_EQ(first_range({read(10, 20), read(21, 40)}, 0, 100), range(10, 10));
  EXPECT_EQ(first_range({written(50, 60), read(10, 20), read(20, 20)}, 0, 100), range(10, 10));
  EXPECT_EQ(first_range({written(50, 60), written(60, 70), read(5, 6)}, 50, 100), range(50, 20));
}

TEST_F(MessageUses, ChangesBesideCompletePagesAreFoundAtTheEnd) {
  const auto address_of_change = [this](const buffer& sent, std::uintptr_t changed, bool is_new = true) {
    std::memset(memory_, 1, 4 * page);
    const auto made = use("MPI_Isend", sent);
    enter();
    memory_[changed] = 2;
    leave();
    complete(made, is_new);
    const auto found = checker_.take();
    EXPECT_LE(found.size(), 1U);
    if (found.empty()) return std::string("none");
    EXPECT_EQ(found[0].sentence, "CPU code writes memory that MPI_Isend may still read");
    EXPECT_NE(found[0].now->what.find("the request was completed"), std::string::npos) << found[0].now->what;
    EXPECT_EQ(found[0].bytes, 1U);
    return std::to_string(found[0].address - at(0));
  };
  const auto number = [](std::uintptr_t offset) { return std::to_string(offset); };
  const buffer inside = read(100, page - 1);
  for (const std::uintptr_t changed : {std::uintptr_t{100}, std::uintptr_t{300}, page - 2})
    EXPECT_EQ(address_of_change(inside, changed), number(changed));
  for (const std::uintptr_t changed : {std::uintptr_t{99}, page - 1})
    EXPECT_EQ(address_of_change(inside, changed), "none");
  EXPECT_EQ(address_of_change(inside, 300, false), "none") << "the program may have learnt earlier that it has ended";
  const buffer around = read(page - 1, 3 * page + 1);
  for (const std::uintptr_t changed : {page - 1, 3 * page})
    EXPECT_EQ(address_of_change(around, changed), number(changed));
  for (const std::uintptr_t changed : {page, 3 * page - 1, 3 * page + 1})
    EXPECT_EQ(address_of_change(around, changed), "none") << "these pages are watched";
  EXPECT_EQ(address_of_change(written(100, 200), 150), "none") << "MPI writes there";
  kind_ = buffer_memory::other;
  EXPECT_EQ(address_of_change(inside, 300), "none");
}

TEST_F(MessageUses, TheFirstBytesOfALongListAreCompared) {
  constexpr std::size_t limit = std::size_t{64} << 10;
  for (const std::size_t last : {std::size_t{32}, std::size_t{33}}) {
    std::vector<buffer> all(16, read(1, page - 1));
    ASSERT_EQ(16 * (page - 2) + 32, limit);
    all.push_back(read(page + 1, page + 1 + last));
    const auto made = use("MPI_Isend", all);
    enter();
    memory_[page + 1] ^= 1;
    leave();
    complete(made);
    EXPECT_EQ(checker_.take().size(), last == 32 ? 1U : 0U) << last;
  }
}

TEST_F(MessageUses, LinesOfWorkAreUsedAgain) {
  const std::uint32_t first = checker_.add_line(0);
  std::uint64_t last = 0;
  for (int n = 0; n < 10; ++n) {
    const auto made = use("MPI_Send", read(0, 8));
    EXPECT_GT(made, last) << "each use has a number of its own";
    last = made;
    complete(made);
  }
  EXPECT_EQ(checker_.add_line(0), first + 2);
  const auto one = use("MPI_Isend", read(0, 8)), another = use("MPI_Isend", read(0, 8));
  EXPECT_EQ(checker_.add_line(0), first + 4) << "uses at the same time have different lines";
  complete(one);
  complete(one);
  complete(0);
  complete(use("MPI_Send", read(0, 8)));
  EXPECT_EQ(checker_.add_line(0), first + 5);
  complete(another);
}

TEST_F(MessageUses, AreNotCheckedWithoutTheChecker) {
  starts_ = false;
  EXPECT_EQ(use("MPI_Send", read(0, page)), 0U);
  EXPECT_EQ(protections(), "wwww");
}
