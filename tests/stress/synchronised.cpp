// Several threads use the same hpe memory in every possible way, synchronised as C++ requires. The test compares all
// data that they read with its own copy in ordinary memory.
//
// An object is one allocation, which is divided into stripes at odd offsets. Each stripe has its own lock. So threads
// use different bytes of one block, and small objects of one slab, at the same time.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "tests/stress/support.h"

namespace {

using stress::dice;
using stress::kernels;

struct stripe {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::shared_mutex lock;
};

// The last operations on an object, for the message about a difference.
class history {
 public:
  void note(const char* operation, std::size_t begin, std::size_t size) {
    const std::lock_guard lock(mutex_);
    entries_[count_++ % entries_.size()] = {operation, begin, size};
  }

  // Returns one line for each operation on a byte, the latest operation first.
  std::string on(std::size_t byte) {
    const std::lock_guard lock(mutex_);
    std::string lines;
    for (std::size_t back = 1; back <= std::min(count_, entries_.size()); ++back) {
      const entry& e = entries_[(count_ - back) % entries_.size()];
      if (byte < e.begin || byte - e.begin >= e.size) continue;
      lines += "\n  " + std::to_string(back) + " before: " + e.operation + " of " + std::to_string(e.size) +
               " bytes at " + std::to_string(e.begin);
    }
    return lines;
  }

 private:
  struct entry {
    const char* operation = "";
    std::size_t begin = 0;
    std::size_t size = 0;
  };
  std::mutex mutex_;
  std::array<entry, 64> entries_;
  std::size_t count_ = 0;
};

struct object {
  std::shared_mutex life;  // held shared to use the object, and exclusively to free it
  history past;
  std::uint8_t* data = nullptr;
  std::size_t size = 0;
  std::vector<std::uint8_t> expected;
  std::array<stripe, 4> stripes;
};

struct range {
  object& of;
  std::size_t begin;
  std::size_t size;

  [[nodiscard]] std::uint8_t* data() const { return of.data + begin; }
  [[nodiscard]] std::uint8_t* expected() const { return of.expected.data() + begin; }
};

class actor {
 public:
  actor(std::vector<object>& objects, stress::run_state& state, std::uint64_t seed)
      : objects_(objects), state_(state), random_(seed) {}

  void step() {
    static constexpr void (actor::*often[])() = {&actor::host_reads, &actor::host_reads, &actor::host_writes,
                                                 &actor::host_writes, &actor::host_touches};
    static constexpr void (actor::*sometimes[])() = {
        &actor::launch_pattern, &actor::launch_add,  &actor::launch_scatter, &actor::launch_combine,
        &actor::launch_digest,  &actor::copy_in,     &actor::copy_out,       &actor::copy_across,
        &actor::fill,           &actor::look_at_info};
    static constexpr void (actor::*seldom[])() = {&actor::prefetch,    &actor::advise,     &actor::migrate,
                                                  &actor::synchronise, &actor::reallocate, &actor::write_only};
    switch (random_.below(8)) {
      case 0: return (this->*seldom[random_.below(std::size(seldom))])();
      case 1:
      case 2:
      case 3: return (this->*often[random_.below(std::size(often))])();
      default: return (this->*sometimes[random_.below(std::size(sometimes))])();
    }
  }

  /// Replaces the memory of an object that no other thread uses.
  void renew(object& o) {
    o.data = stress::allocate_anywhere(random_, o.size);
    o.past.note("allocation", 0, o.size);
    o.expected.assign(o.size, 0);
    std::size_t at = 0;
    for (std::size_t i = 0; i < o.stripes.size(); ++i) {
      o.stripes[i].begin = at;
      at = i + 1 == o.stripes.size() ? o.size : o.size * (i + 1) / o.stripes.size() + random_.below(o.size / 8);
      o.stripes[i].end = at;
    }
  }

  void compare(const std::uint8_t* got, const range& with, const char* how) {
    with.of.past.note(how, with.begin, with.size);
    if (std::memcmp(got, with.expected(), with.size) == 0) return;
    std::size_t i = 0;
    while (got[i] == with.expected()[i]) ++i;
    std::size_t differing = 0;
    for (std::size_t j = i; j < with.size; ++j) differing += got[j] != with.expected()[j] ? 1 : 0;
    hpePointerInfo info{};
    static_cast<void>(hpeGetPointerInfo(with.data() + i, &info));
    char text[300];
    std::snprintf(text, sizeof text,
                  "%s: byte %zu of %zu in an object of %zu bytes is %d, not %d; %zu differ (kind %d, home %d, on host "
                  "%d, on device %d)",
                  how, with.begin + i, with.begin + with.size, with.of.size, got[i], with.expected()[i], differing,
                  info.kind, info.device, info.on_host, info.on_device);
    state_.fail(text + with.of.past.on(with.begin + i));
  }

 private:
  using life = std::shared_lock<std::shared_mutex>;
  using reading = std::shared_lock<std::shared_mutex>;
  using writing = std::unique_lock<std::shared_mutex>;

  object& any() { return objects_[random_.below(objects_.size())]; }
  stripe& any_stripe(object& o) { return o.stripes[random_.below(o.stripes.size())]; }
  range any_range(object& o, const stripe& s) {
    const std::size_t size = random_.length(s.end - s.begin);
    return {o, s.begin + random_.below(s.end - s.begin - size + 1), size};
  }

  // Chooses an object, locks one of its stripes, and calls the body with a range in the stripe.
  template <class Lock, class Body>
  void with_range(Body body) {
    object& o = any();
    const life alive(o.life);
    stripe& s = any_stripe(o);
    const Lock lock(s.lock);
    body(any_range(o, s));
  }

  // Calls the body with two ranges of the same size in different stripes; the first range is locked for reading.
  template <class Body>
  void with_two_ranges(Body body) {
    object& from = any();
    object& to = any();
    if (&from == &to) return;
    // Locks in the order of addresses, so that threads cannot deadlock.
    life first(std::min(&from, &to)->life);
    life second(std::max(&from, &to)->life);
    stripe& source = any_stripe(from);
    stripe& target = any_stripe(to);
    reading r(source.lock, std::defer_lock);
    writing w(target.lock, std::defer_lock);
    if (&source < &target) {
      r.lock();
      w.lock();
    } else {
      w.lock();
      r.lock();
    }
    const std::size_t size = random_.length(std::min(source.end - source.begin, target.end - target.begin));
    body(range{from, source.begin + random_.below(source.end - source.begin - size + 1), size},
         range{to, target.begin + random_.below(target.end - target.begin - size + 1), size});
  }

  void host_reads() {
    with_range<reading>([&](const range& r) { compare(r.data(), r, "host read"); });
  }

  void host_writes() {
    with_range<writing>([&](const range& r) {
      r.of.past.note("host write", r.begin, r.size);
      const std::uint8_t seed = random_.byte();
      for (std::size_t i = 0; i < r.size; ++i) r.data()[i] = r.expected()[i] = pattern_at(seed, i);
    });
  }

  // Reads and writes single bytes at random places.
  void host_touches() {
    with_range<writing>([&](const range& r) {
      r.of.past.note("host touches", r.begin, r.size);
      for (int i = 0; i < 20; ++i) {
        const range one{r.of, r.begin + random_.below(r.size), 1};
        compare(one.data(), one, "host touch");
        *one.data() = *one.expected() = random_.byte();
      }
    });
  }

  void launch_pattern() {
    with_range<writing>([&](const range& r) {
      r.of.past.note("kernel that writes", r.begin, r.size);
      const std::uint8_t seed = random_.byte();
      hpe::launch_on(random_.device(), kernels().pattern, hpe::grid(stress_tiles),
                     {r.data(), r.size, seed, random_.delay()}, hpe::out(std::span(r.data(), r.size)));
      for (std::size_t i = 0; i < r.size; ++i) r.expected()[i] = pattern_at(seed, i);
    });
  }

  void launch_add() {
    with_range<writing>([&](const range& r) {
      r.of.past.note("kernel that adds", r.begin, r.size);
      const std::uint8_t by = random_.byte();
      hpe::launch_on(random_.device(), kernels().add_bytes, hpe::grid(stress_tiles),
                     {r.data(), r.size, by, random_.delay()}, hpe::inout(std::span(r.data(), r.size)));
      for (std::size_t i = 0; i < r.size; ++i) r.expected()[i] = static_cast<std::uint8_t>(r.expected()[i] + by);
    });
  }

  void launch_scatter() {
    with_range<writing>([&](const range& r) {
      r.of.past.note("kernel that scatters", r.begin, r.size);
      const std::uint8_t value = random_.byte();
      const std::uint64_t stride = random_.length(10000);
      hpe::launch_on(random_.device(), kernels().scatter, hpe::grid(stress_tiles),
                     {r.data(), r.size, stride, value, random_.delay()}, hpe::inout(std::span(r.data(), r.size)));
      for (std::size_t i = 0; i < r.size; i += stride) r.expected()[i] = value;
    });
  }

  void launch_combine() {
    with_two_ranges([&](const range& from, const range& to) {
      from.of.past.note("kernel that combines from here", from.begin, from.size);
      to.of.past.note("kernel that combines to here", to.begin, to.size);
      const std::uint8_t key = random_.byte();
      hpe::launch_on(random_.device(), kernels().combine, hpe::grid(stress_tiles),
                     {to.data(), from.data(), from.size, key, random_.delay()}, hpe::out(std::span(to.data(), to.size)),
                     hpe::in(std::span(from.data(), from.size)));
      for (std::size_t i = 0; i < to.size; ++i) to.expected()[i] = combined(from.expected()[i], key);
    });
  }

  void launch_digest() {
    with_range<reading>([&](const range& r) {
      r.of.past.note("kernel that reads", r.begin, r.size);
      const hpe::array<std::uint64_t> result(1, hpe::on_device(random_.device()));
      hpe::launch_on(random_.device(), kernels().digest, hpe::grid(1),
                     {result.data(), r.data(), r.size, random_.delay()}, hpe::out(result),
                     hpe::in(std::span<const std::uint8_t>(r.data(), r.size)));
      if (result[0] != digest_of(r.expected(), r.size)) state_.fail("a kernel read other bytes than the threads wrote");
    });
  }

  void copy_in() {
    with_range<writing>([&](const range& r) {
      r.of.past.note("copy from ordinary memory", r.begin, r.size);
      const std::uint8_t seed = random_.byte();
      for (std::size_t i = 0; i < r.size; ++i) r.expected()[i] = pattern_at(seed, i);
      hpe::copy(r.data(), r.expected(), r.size);
    });
  }

  void copy_out() {
    with_range<reading>([&](const range& r) {
      std::vector<std::uint8_t> got(r.size);
      hpe::copy(got.data(), r.data(), r.size);
      compare(got.data(), r, "copy to ordinary memory");
    });
  }

  void copy_across() {
    with_two_ranges([&](const range& from, const range& to) {
      from.of.past.note("copy from here", from.begin, from.size);
      to.of.past.note("copy to here", to.begin, to.size);
      hpe::copy(to.data(), from.data(), from.size);
      std::memcpy(to.expected(), from.expected(), from.size);
    });
  }

  void fill() {
    with_range<writing>([&](const range& r) {
      r.of.past.note("fill", r.begin, r.size);
      const std::uint8_t value = random_.byte();
      hpe::fill(r.data(), value, r.size);
      std::memset(r.expected(), value, r.size);
    });
  }

  // The remaining operations change no bytes, so they need only the lock that prevents the freeing of the object.

  void look_at_info() {
    object& o = any();
    const life alive(o.life);
    const std::size_t at = random_.below(o.size);
    const hpePointerInfo info = hpe::pointer_info(o.data + at);
    if (info.base != o.data || info.size != o.size) state_.fail("pointer info names another allocation");
  }

  void prefetch() {
    object& o = any();
    const life alive(o.life);
    const range r = any_range(o, any_stripe(o));
    o.past.note("prefetch", r.begin, r.size);
    hpe::prefetch(r.data(), random_.one_in(4) ? 0 : r.size, random_.one_in(2) ? HPE_HOST : random_.device());
  }

  void advise() {
    static constexpr hpeAdvice advices[] = {HPE_ADVISE_DEFAULT, HPE_ADVISE_LAZY, HPE_ADVISE_ROLLING,
                                            HPE_ADVISE_READ_MOSTLY};
    object& o = any();
    const life alive(o.life);
    o.past.note("advice", 0, o.size);
    hpe::advise(o.data, advices[random_.below(std::size(advices))]);
  }

  void migrate() {
    object& o = any();
    const life alive(o.life);
    o.past.note("migration", 0, o.size);
    const hpeStatus status = hpeMigrate(o.data, random_.device());
    const bool host = hpe::pointer_info(o.data).kind == HPE_MEMORY_HOST;
    if (status != (host ? HPE_ERROR_NOT_SUPPORTED : HPE_SUCCESS)) state_.fail(hpeGetLastErrorMessage());
  }

  void synchronise() { hpe::synchronize(); }

  void reallocate() {
    object& o = any();
    const std::unique_lock alone(o.life);
    hpe::check(hpeFree(o.data));
    renew(o);
  }

  // Tells hpe that the host will write every byte, and then writes every byte.
  void write_only() {
    object& o = any();
    const std::unique_lock alone(o.life);
    o.past.note("host writes all", 0, o.size);
    hpe::advise(o.data, HPE_ADVISE_WRITE_ONLY);
    const std::uint8_t seed = random_.byte();
    for (std::size_t i = 0; i < o.size; ++i) o.data[i] = o.expected[i] = pattern_at(seed, i);
    hpe::advise(o.data, HPE_ADVISE_DEFAULT);
  }

  std::vector<object>& objects_;
  stress::run_state& state_;
  dice random_;
};

TEST(stress, EveryReadSeesTheLastWriteInTheOrder) {
  static_cast<void>(kernels());
  const auto before = stress::memory_in_use();
  stress::run_state state;
  std::vector<object> objects(20);
  actor maker(objects, state, 1);
  for (object& o : objects) maker.renew(o);

  stress::run_threads(8, state, [&](unsigned, std::uint64_t seed) {
    try {
      for (actor it(objects, state, seed); state.going_on(); state.step_done()) it.step();
    } catch (const hpe::error& e) {
      state.fail(e.what());
    }
  });
  EXPECT_FALSE(state.failed());

  EXPECT_EQ(hpeSynchronize(), HPE_SUCCESS) << hpeGetLastErrorMessage();
  for (object& o : objects) {
    if (!state.failed()) maker.compare(o.data, {o, 0, o.size}, "last look");
    EXPECT_EQ(hpeFree(o.data), HPE_SUCCESS) << hpeGetLastErrorMessage();
  }
  EXPECT_FALSE(state.failed());
  EXPECT_TRUE(stress::no_more_in_use_than(before));
}

}  // namespace
