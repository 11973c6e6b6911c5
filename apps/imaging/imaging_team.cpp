// Members that are threads share host memory, so arrays in host memory need no copies. Bytes in device memory are
// copied by the receiver: each member publishes the address of its bytes, all members wait at a barrier, each member
// copies bytes of other members, and all members wait at the barrier again.
//
// A member that fails leaves the barrier for good, so no other member waits for it. The other members see the failure
// at the next barrier and end.

#include "apps/imaging/imaging_team.h"

#include <algorithm>
#include <barrier>
#include <exception>
#include <mutex>
#include <thread>

#include "apps/command_line/program.h"
#include "hpe/hpe.hpp"

namespace hpe::imaging {

namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }

/// The state that the threads of a team share.
struct meeting {
  explicit meeting(int members) : all(members), places(static_cast<std::size_t>(members)) {}
  std::barrier<> all;
  std::vector<const std::byte*> places;
  std::atomic<bool> failed = false;
};

struct other_member_failed {};

class thread_member final : public member {
 public:
  thread_member(int rank, int size, meeting& with) : member(rank, size, rank), with_(with) {}

  void wait_for_all() override {
    with_.all.arrive_and_wait();
    if (with_.failed) throw other_member_failed{};
  }
  const std::byte* fetch(const void* all, const division& parts) override {
    return static_cast<const std::byte*>(all) + mine(parts).begin;
  }
  std::byte* room(void* all, const division& parts) override {
    return static_cast<std::byte*>(all) + mine(parts).begin;
  }
  void deliver(void* /*all*/, const division& /*parts*/) override { wait_for_all(); }
  const std::byte* broadcast_host(const void* data, std::size_t /*bytes*/) override {
    wait_for_all();
    return static_cast<const std::byte*>(data);
  }

  void all_gather(std::byte* array, const division& parts) override {
    pull(array, [&] {
      // Each member begins with its right neighbour, so that the members do not all read from the same member.
      for (int n = 1; n < size(); ++n) {
        const int other = (rank() + n) % size();
        const part& p = parts[static_cast<std::size_t>(other)];
        if (p.bytes != 0) hpe::copy(array + p.begin, place_of(other) + p.begin, p.bytes);
      }
    });
  }
  void broadcast(std::byte* data, std::size_t bytes, int root, int /*first*/, int /*count*/) override {
    pull(data, [&] {
      if (rank() != root) hpe::copy(data, place_of(root), bytes);
    });
  }
  void shift(const std::byte* out, int /*to*/, std::byte* in, int from, std::size_t bytes) override {
    pull(out, [&] { hpe::copy(in, place_of(from), bytes); });
  }

 private:
  void wait_before_exchange() override { wait_for_all(); }
  [[nodiscard]] const part& mine(const division& parts) const { return parts[static_cast<std::size_t>(rank())]; }
  [[nodiscard]] const std::byte* place_of(int other) const { return with_.places[static_cast<std::size_t>(other)]; }

  template <class Copies>
  void pull(const std::byte* mine, const Copies& copies) {
    with_.places[static_cast<std::size_t>(rank())] = mine;
    wait_for_all();
    copies();
    hpe::synchronize();
    wait_for_all();
  }

  meeting& with_;
};

class threads final : public team {
 public:
  explicit threads(int size) : size_(size) {}
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int devices_here() const override { return size_; }
  [[nodiscard]] bool leads() const override { return true; }

  times run(const std::function<void(member&)>& work) override {
    meeting with(size_);
    std::vector<std::vector<times>> measured(static_cast<std::size_t>(size_));
    std::exception_ptr failure;
    std::mutex guards_failure;
    const auto one = [&](int rank) {
      try {
        thread_member me(rank, size_, with);
        work(me);
        measured[static_cast<std::size_t>(rank)] = me.measured();
      } catch (const other_member_failed&) {
        with.all.arrive_and_drop();
      } catch (...) {
        const std::lock_guard guard(guards_failure);
        if (!failure) failure = std::current_exception();
        with.failed = true;
        with.all.arrive_and_drop();
      }
    };
    {
      std::vector<std::jthread> members;
      for (int rank = 0; rank < size_; ++rank) members.emplace_back(one, rank);
    }
    if (failure) std::rethrow_exception(failure);
    return fastest(measured);
  }

 private:
  const int size_;
};

}  // namespace

division divide(std::int64_t count, int members, std::size_t unit) {
  division parts;
  for (int r = 0; r < members; ++r) {
    const std::int64_t from = count * r / members, to = count * (r + 1) / members;
    parts.push_back({static_cast<std::size_t>(from) * unit, static_cast<std::size_t>(to - from) * unit});
  }
  return parts;
}

void member::in(phase which, const std::function<void()>& work) {
  const auto add_time = [&](phase to, const std::function<void()>& what) {
    const auto begin = clock::now();
    what();
    current_.phases[static_cast<std::size_t>(to)] += seconds_since(begin);
  };
  if (which == phase::exchange) add_time(phase::waiting, [&] { wait_before_exchange(); });
  add_time(which, [&] {
    work();
    hpe::synchronize(device_);
  });
}

void member::measure(std::int64_t repeats, const std::function<void()>& run) {
  for (std::int64_t i = 0; i < repeats; ++i) {
    current_ = {};
    wait_for_all();
    const auto begin = clock::now();
    run();
    wait_for_all();
    current_.seconds = seconds_since(begin);
    measured_.push_back(current_);
  }
}

std::unique_ptr<team> make_threads(std::int64_t devices) {
  return std::make_unique<threads>(command_line::devices_of(devices));
}

times fastest(const std::vector<std::vector<times>>& of_members) {
  times best;
  for (std::size_t i = 0; i < of_members.front().size(); ++i) {
    if (i > 0 && of_members.front()[i].seconds >= best.seconds) continue;
    best = of_members.front()[i];
    for (const auto& runs : of_members)
      for (std::size_t p = 0; p < best.phases.size(); ++p) best.phases[p] = std::max(best.phases[p], runs[i].phases[p]);
  }
  return best;
}

}  // namespace hpe::imaging
