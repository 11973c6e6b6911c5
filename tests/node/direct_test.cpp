// Tests the parts of runtime/node directly, with exporter and importer in one process.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/node/exporter.h"
#include "runtime/node/openings.h"
#include "runtime/node/peer.h"

namespace {

// In threads other than the test's thread, the number of the allocation that fails; 0: no allocation fails.
std::atomic<int> fails_elsewhere{0};
thread_local bool is_the_test = false;

}  // namespace

void* operator new(std::size_t bytes) {
  if (!is_the_test && fails_elsewhere > 0 && --fails_elsewhere == 0) throw std::bad_alloc();
  void* const made = std::malloc(bytes);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t /*bytes*/) noexcept { std::free(p); }

namespace node_test {
namespace {

using hpe::node::export_table;
using hpe::node::export_view;
using hpe::node::exported;

// ---- the export table ------------------------------------------------------------------------------

// The test makes a page of the table read-only, so publish() stops between two of its stores.
const std::atomic<std::uint64_t>* watched_token = nullptr;
std::byte* closed_page = nullptr;
std::uint64_t token_at_stop = 0;
int stops = 0;

void stopped(int /*signal*/) {
  ++stops;
  token_at_stop = watched_token->load();
  if (::mprotect(closed_page, 4096, PROT_READ | PROT_WRITE) != 0) std::abort();
}

std::byte* mapping_of(const export_table& table) {
  // Finds the address at which the table is mapped, by the inode of its file.
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  std::byte* found = nullptr;
  const std::string inode = [&] {
    struct stat s {};
    ::fstat(table.file(), &s);
    return " " + std::to_string(s.st_ino) + " ";
  }();
  while (found == nullptr && std::fgets(line, sizeof line, maps) != nullptr)
    if (std::strstr(line, inode.c_str()) != nullptr && std::strstr(line, "rw-s") != nullptr)
      found = reinterpret_cast<std::byte*>(std::strtoull(line, nullptr, 16));
  std::fclose(maps);
  return found;
}

TEST(ExportTable, PublishesATokenAfterItsBytes) {
  export_table table;
  std::byte* const base = mapping_of(table);
  ASSERT_NE(base, nullptr);
  // The entries follow each other, so one entry extends over two pages.
  constexpr exported marked{0x1122334455667788, 0x99aabbccddeeff00, 0x1020304050607080};
  constexpr std::size_t searched = 64 << 10;
  const export_table::key first = table.publish(marked);
  auto* at = static_cast<std::byte*>(::memmem(base, searched, &first.token, sizeof first.token));
  ASSERT_NE(at, nullptr);
  constexpr std::size_t entry_size = 32;
  std::uint32_t entry = first.entry;
  while (reinterpret_cast<std::uintptr_t>(at) % 4096 + entry_size <= 4096) {
    const export_table::key next = table.publish(marked);
    ASSERT_EQ(next.entry, ++entry);
    at += entry_size;
    ASSERT_EQ(std::memcmp(at, &next.token, sizeof next.token), 0);
    ASSERT_TRUE(table.end(next));
    if (reinterpret_cast<std::uintptr_t>(at) % 4096 + entry_size > 4096) break;
    ASSERT_EQ(table.publish(marked).entry, entry) << "the entry of an ended export is reused";
  }
  watched_token = reinterpret_cast<const std::atomic<std::uint64_t>*>(at);
  closed_page = at + entry_size - reinterpret_cast<std::uintptr_t>(at + entry_size) % 4096;
  stops = 0;
  struct sigaction before {};
  struct sigaction now {};
  now.sa_handler = stopped;
  ASSERT_EQ(::sigaction(SIGSEGV, &now, &before), 0);
  ASSERT_EQ(::mprotect(closed_page, 4096, PROT_READ), 0);
  const export_table::key last = table.publish(marked);
  ASSERT_EQ(::sigaction(SIGSEGV, &before, nullptr), 0);
  EXPECT_EQ(last.entry, entry);
  EXPECT_EQ(stops, 1);
  EXPECT_EQ(token_at_stop, 0U) << "a reader finds an entry that is not completely written";
  EXPECT_EQ(table.find(last), marked);
}

TEST(ExportTable, TellsReadersWhatWasRetired) {
  export_table table;
  table.retire(1);
  export_view view{hpe::os::file_descriptor(::dup(table.file()))};
  EXPECT_TRUE(view.retired().memories.empty()) << "the exports had ended before the view was created";
  table.retire(7);
  table.retire(8);
  EXPECT_EQ(view.retired().memories, (std::vector<std::uint64_t>{7, 8}));
  EXPECT_TRUE(view.retired().memories.empty());
  for (std::uint64_t n = 0; n < 5000; ++n) table.retire(n);
  EXPECT_TRUE(view.retired().all);
  EXPECT_FALSE(view.retired().all);
}

// ---- exporter and neighbours -----------------------------------------------------------------------

struct source {
  hpe::os::file_descriptor file = hpe::os::create_memory_file("node-test", 4096);
  hpe::node::exporter exporter;
  const std::uint64_t memory = exporter.add({true, {{file.get(), 0, 4096}}});
  const hpe::node::handle handle = exporter.publish({memory, 16, 100});
};

TEST(Neighbours, AreConnectedToOnce) {
  constexpr int threads = 4;
  for (int round = 0; round < 50; ++round) {
    source from;
    hpe::node::neighbours others;
    std::barrier together(threads);
    std::set<std::shared_ptr<hpe::node::peer>> found;
    std::mutex mutex;
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&] {
        together.arrive_and_wait();
        auto p = others.find(from.handle);
        const std::lock_guard lock(mutex);
        found.insert(std::move(p));
      });
    for (std::thread& t : all) t.join();
    ASSERT_EQ(found.size(), 1U);
    ASSERT_NE(*found.begin(), nullptr);
    EXPECT_EQ((*found.begin())->find(from.handle), (exported{from.memory, 16, 100}));
  }
}

// A process that accepts connections and answers nothing.
class silent_process {
 public:
  silent_process() : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    handle.process = {{hpe::node::random_number(), hpe::node::random_number()}};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = hpe::node::address_of(handle.process);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
  }
  /// Accepts a connection, and returns when the client waits for an answer.
  void accept() {
    connection_ = hpe::os::file_descriptor(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    pollfd asked{connection_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&asked, 1, -1), 1);
  }
  void end() { connection_.reset(); }

  hpe::node::handle handle;

 private:
  hpe::os::file_descriptor socket_;
  hpe::os::file_descriptor connection_;
};

TEST(Neighbours, ThatDoNotAnswerHoldUpNobodyElse) {
  silent_process silent;
  source from;
  hpe::node::neighbours others;
  std::atomic<bool> given_up{false};
  std::thread asking([&] {
    EXPECT_EQ(others.find(silent.handle), nullptr);
    given_up = true;
  });
  silent.accept();
  EXPECT_NE(others.find(from.handle), nullptr);
  EXPECT_EQ(others.all().size(), 1U);
  EXPECT_FALSE(given_up);
  silent.end();
  asking.join();
}

TEST(Neighbours, CanBeListedWhileMoreAreFound) {
  std::vector<std::unique_ptr<source>> sources;
  for (int i = 0; i < 60; ++i) sources.push_back(std::make_unique<source>());
  hpe::node::neighbours others;
  std::atomic<bool> done{false};
  std::thread listing([&] {
    std::size_t last = 0;
    while (!done) {
      const auto all = others.all();
      EXPECT_GE(all.size(), last);
      for (const auto& [key, process] : all) EXPECT_TRUE(process->alive());
      EXPECT_TRUE(others.forget_dead().empty());
      last = all.size();
    }
  });
  for (const auto& from : sources) EXPECT_NE(others.find(from->handle), nullptr);
  done = true;
  listing.join();
  EXPECT_EQ(others.all().size(), sources.size());
}

TEST(Neighbours, AreAskedForMemoryAndGiveItBackLast) {
  source from;
  hpe::node::neighbours others;
  const auto peer = others.find(from.handle);
  ASSERT_NE(peer, nullptr);
  EXPECT_EQ(peer->describe(from.handle).what, (exported{from.memory, 16, 100}));
  const hpe::node::answer opened = peer->open(from.handle);
  ASSERT_EQ(opened.memory.parts.size(), 1U);
  EXPECT_TRUE(opened.memory.host);
  EXPECT_TRUE(from.exporter.is_open(from.memory));
  EXPECT_EQ(from.exporter.end(from.handle), (exported{from.memory, 16, 100}));
  EXPECT_FALSE(from.exporter.end(from.handle));
  EXPECT_THROW((void)peer->describe(from.handle), hpe::error);
  std::atomic<bool> given_back{false};
  from.exporter.retire(from.memory, [&] { given_back = true; });
  EXPECT_FALSE(given_back);
  peer->close(opened.what);
  for (int i = 0; i < 1000 && !given_back; ++i) ::usleep(5000);
  EXPECT_TRUE(given_back);
  EXPECT_EQ(peer->retired().memories, std::vector<std::uint64_t>{from.memory});
}

bool soon(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000; ++i) {
    if (holds()) return true;
    ::usleep(1000);
  }
  return false;
}

TEST(Exporter, TellsWhatOthersMayHaveWrittenAfterTheyClosedIt) {
  source from;
  hpe::node::neighbours others;
  const auto peer = others.find(from.handle);
  ASSERT_NE(peer, nullptr);
  const exported bytes = peer->open(from.handle).what;
  const exported behind{from.memory, 116, 100};
  EXPECT_FALSE(from.exporter.written(behind));
  EXPECT_TRUE(from.exporter.take_written(bytes));
  EXPECT_TRUE(from.exporter.written(bytes)) << "the exporter may write the bytes again";
  peer->close(bytes);
  ASSERT_TRUE(soon([&] { return !from.exporter.is_open(from.memory); }));
  EXPECT_TRUE(from.exporter.take_written(bytes));
  EXPECT_FALSE(from.exporter.take_written(bytes));
  from.exporter.untake(from.memory);
  EXPECT_TRUE(from.exporter.take_written(bytes));
}

TEST(Exporter, CallsWhenBytesAreClosedAndNotBefore) {
  source from;
  const hpe::node::handle second = from.exporter.publish({from.memory, 2000, 50});
  hpe::node::neighbours others;
  const auto peer = others.find(from.handle);
  ASSERT_NE(peer, nullptr);
  const exported first_bytes = peer->open(from.handle).what;
  const exported second_bytes = peer->open(second).what;
  std::atomic<int> called{0};
  from.exporter.when_closed({from.memory, 0, 10}, [&] { ++called; });
  EXPECT_EQ(called, 1) << "no other process has these bytes open";
  from.exporter.when_closed({from.memory, 100, 1950}, [&] { ++called; });
  peer->close(first_bytes);
  peer->close(peer->open(second).what);  // the answer shows that the close before it has been processed
  EXPECT_EQ(called, 1) << "another part of the bytes is open";
  peer->close(second_bytes);
  EXPECT_TRUE(soon([&] { return called == 2; }));
}

// A client that asks for memory and does not read the answers.
class mute_process {
 public:
  explicit mute_process(const hpe::node::handle& h)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = hpe::node::address_of(h.process);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    question_.what = hpe::node::question::kind::describe;
    question_.which = {h.entry, h.token};
  }
  /// Asks for memory; returns false if the exporter has closed the connection.
  bool ask() {
    pollfd other{socket_.get(), POLLOUT, 0};
    if (::poll(&other, 1, 0) == 1 && (other.revents & (POLLHUP | POLLERR)) != 0) return false;
    return ::send(socket_.get(), &question_, sizeof question_, MSG_NOSIGNAL) >= 0 || errno == EAGAIN;
  }

 private:
  hpe::os::file_descriptor socket_;
  hpe::node::question question_;
};

TEST(ExporterClock, IsNotHeldUpByAProcessThatReadsNoAnswers) {
  source from;
  mute_process mute(from.handle);
  std::chrono::steady_clock::duration longest{};
  for (bool connected = true; connected;) {
    connected = mute.ask();
    const auto before = std::chrono::steady_clock::now();
    EXPECT_FALSE(from.exporter.is_open(from.memory));
    longest = std::max(longest, std::chrono::steady_clock::now() - before);
  }
  EXPECT_LT(longest, std::chrono::milliseconds(500));
}

TEST(Exporter, GivesMemoryBackWhateverItCouldNotAllocate) {
  is_the_test = true;
  for (int n = 1; n < 30; ++n) {
    source from;
    std::atomic<bool> given_back{false};
    {
      hpe::node::neighbours others;
      const auto peer = others.find(from.handle);
      ASSERT_NE(peer, nullptr);
      fails_elsewhere = n;
      try {
        static_cast<void>(peer->open(from.handle));
      } catch (const hpe::error&) {  // the exporter has closed the connection
      }
      fails_elsewhere = 0;
    }
    ASSERT_TRUE(from.exporter.end(from.handle));
    from.exporter.retire(from.memory, [&] { given_back = true; });
    EXPECT_TRUE(soon([&] { return given_back.load(); })) << "allocation " << n << " failed";
  }
}

// ---- openings --------------------------------------------------------------------------------------

TEST(Openings, AgreeWithABookThatHasALineForEachByte) {
  constexpr std::uint64_t size = 40;
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  hpe::node::openings tested;
  std::array<unsigned, size> open{};
  std::array<bool, size> written{};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (int step = 0; step < 100000; ++step) {
    std::uint64_t begin = random() % size;
    std::uint64_t end = begin + 1 + random() % (size - begin);
    const auto any = [&](const auto& lines) {
      return std::any_of(lines.begin() + static_cast<std::ptrdiff_t>(begin),
                         lines.begin() + static_cast<std::ptrdiff_t>(end), [](auto line) { return line != 0; });
    };
    switch (random() % 16) {
      case 0:
      case 1:
      case 2:
        if (ranges.size() > 4) break;
        tested.open(begin, end);
        ranges.emplace_back(begin, end);
        for (std::uint64_t n = begin; n < end; ++n) ++open[n], written[n] = true;
        break;
      case 3:
      case 4:
      case 5:
      case 6: {
        if (ranges.empty()) break;
        const auto which = ranges.begin() + static_cast<std::ptrdiff_t>(random() % ranges.size());
        tested.close(which->first, which->second);
        for (std::uint64_t n = which->first; n < which->second; ++n) --open[n];
        ranges.erase(which);
        break;
      }
      case 7:
        if (random() % 20 != 0) break;
        tested.untake();
        written.fill(true);
        break;
      case 8:
      case 9:
      case 10:
        ASSERT_EQ(tested.take_written(begin, end), any(written)) << "step " << step << ", seed " << seed;
        for (std::uint64_t n = begin; n < end; ++n) written[n] = open[n] != 0;
        break;
      default: break;
    }
    begin = random() % size;
    end = begin + 1 + random() % (size - begin);
    ASSERT_EQ(tested.written(begin, end), any(written)) << "step " << step << ", seed " << seed;
    ASSERT_EQ(tested.any(begin, end), any(open)) << "step " << step << ", seed " << seed;
    ASSERT_EQ(tested.any(), !ranges.empty()) << "step " << step << ", seed " << seed;
  }
}

TEST(Neighbours, ThatDoNotExistAreNotFound) {
  hpe::node::neighbours others;
  hpe::node::handle h;
  h.process = {{hpe::node::random_number(), hpe::node::random_number()}};
  EXPECT_EQ(others.find(h), nullptr);
  EXPECT_TRUE(others.all().empty());
}

}  // namespace
}  // namespace node_test
