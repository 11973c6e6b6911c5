// Several threads make all kinds of calls on the same allocations at the same time without synchronisation, even on
// freed allocations. The threads may read any values, and calls may fail. But no thread may crash or hang, and after
// the run the runtime must have the same state as before.

#include <gtest/gtest.h>

#include <array>
#include <csetjmp>
#include <csignal>
#include <cstring>

#include "tests/stress/support.h"

namespace {

using stress::dice;
using stress::kernels;

thread_local sigjmp_buf after_fault;

// A signal handler that leaves, by a long jump, an access to memory that another thread has freed.
void leave(int /*signal*/) { siglongjmp(after_fault, 1); }

class handler {
 public:
  handler() {
    struct sigaction action {};
    action.sa_handler = leave;
    ::sigaction(SIGSEGV, &action, &before_);
  }
  handler(const handler&) = delete;
  handler& operator=(const handler&) = delete;
  ~handler() { ::sigaction(SIGSEGV, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

// An allocation's address and size in one word, so that other threads never see an address with the size of another
// allocation.
class slot {
 public:
  struct content {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
  };

  [[nodiscard]] content look() const { return unpack(word_.load(std::memory_order_relaxed)); }
  content exchange(content c) {
    // Allocations are aligned to 256 bytes, so the low 8 bits of the address are free. They store the size, rounded
    // down to a power of two, as its logarithm.
    std::uint64_t bits = 0;
    while ((c.size >> (bits + 1)) != 0) ++bits;
    return unpack(word_.exchange(c.data == nullptr ? 0 : reinterpret_cast<std::uint64_t>(c.data) | bits));
  }

 private:
  static content unpack(std::uint64_t word) {
    return {reinterpret_cast<std::uint8_t*>(word & ~std::uint64_t{255}), std::size_t{1} << (word & 255)};
  }
  std::atomic<std::uint64_t> word_{0};
};

class vandal {
 public:
  vandal(std::array<slot, 12>& slots, std::uint64_t seed) : slots_(slots), random_(seed) {}

  void step() {
    if (random_.one_in(10)) return replace();
    const auto [data, size] = any().look();
    const auto [other, other_size] = any().look();
    const std::size_t at = random_.below(size);
    const std::size_t n = random_.length(size - at);
    const std::size_t both = random_.length(std::min(size, other_size));
    const std::uint8_t value = random_.byte();
    switch (random_.below(14)) {
      case 0:
      case 1: return host_writes(data + at, n, value);
      case 2:
      case 3: return host_reads(data + at, n);
      case 4:
        return launch(kernels().pattern, pattern_parameters{data + at, n, value, random_.delay()},
                      {{data + at, n, HPE_OUT}});
      case 5:
        return launch(kernels().add_bytes, add_bytes_parameters{data + at, n, value, random_.delay()},
                      {{data + at, n, HPE_INOUT}});
      case 6:
        return launch(kernels().combine, combine_parameters{other, data, both, value, random_.delay()},
                      {{other, both, HPE_OUT}, {data, both, HPE_IN}});
      case 7: return static_cast<void>(hpeMemcpy(data + at, buffer(n), n));
      case 8: return static_cast<void>(hpeMemcpy(buffer(n), data + at, n));
      case 9: return static_cast<void>(hpeMemcpy(other, data, both));
      case 10: return static_cast<void>(hpeMemset(data + at, value, n));
      case 11: return static_cast<void>(hpePrefetch(data + at, n, random_.one_in(2) ? HPE_HOST : random_.device()));
      case 12: return static_cast<void>(hpeAdvise(data, static_cast<hpeAdvice>(random_.below(5))));
      default: return seldom(data + at);
    }
  }

  void replace() {
    slot::content fresh;
    fresh.data = stress::allocate_anywhere(random_, fresh.size);
    hpeFree(any().exchange(fresh).data);
  }

 private:
  slot& any() { return slots_[random_.below(slots_.size())]; }

  std::uint8_t* buffer(std::size_t size) {
    if (buffer_.size() < size) buffer_.resize(size);
    return buffer_.data();
  }

  // These two functions have no objects with destructors, because a fault leaves them by a long jump.
  static void host_writes(volatile std::uint8_t* to, std::size_t n, std::uint8_t value) {
    if (sigsetjmp(after_fault, 1) != 0) return;
    for (std::size_t i = 0; i < n; i += 1 + n / 1000) to[i] = value;
  }

  static void host_reads(const volatile std::uint8_t* from, std::size_t n) {
    if (sigsetjmp(after_fault, 1) != 0) return;
    for (std::size_t i = 0; i < n; i += 1 + n / 1000) static_cast<void>(from[i]);
  }

  template <class Parameters>
  void launch(const hpe::kernel<Parameters>& what, const Parameters& parameters,
              std::initializer_list<hpeAccess> accesses) {
    const hpeShape shape = hpe::grid(stress_tiles);
    // An undeclared access may use freed memory, which would make a GPU unusable.
    const bool undeclared = random_.one_in(20) && hpe::device_info(0).kind == HPE_DEVICE_SOFT;
    static_cast<void>(hpeLaunch(random_.device(), what.get(), &shape, &parameters, sizeof parameters, accesses.begin(),
                                undeclared ? HPE_ALL : accesses.size()));
  }

  void seldom(std::uint8_t* p) {
    hpePointerInfo info{};
    switch (random_.below(4)) {
      case 0: return static_cast<void>(hpeSynchronize());
      case 1: return static_cast<void>(hpeMigrate(p, random_.device()));
      case 2: return static_cast<void>(hpeGetPointerInfo(p, &info));
      default: return static_cast<void>(hpeFree(p + 1));
    }
  }

  std::array<slot, 12>& slots_;
  dice random_;
  std::vector<std::uint8_t> buffer_;
};

TEST(stress, WithoutOrderTheRuntimeStaysWhole) {
  static_cast<void>(kernels());
  const auto before = stress::memory_in_use();
  {
    const handler installed;
    std::array<slot, 12> slots;
    dice random(1);
    for (slot& s : slots) {
      slot::content fresh;
      fresh.data = stress::allocate_anywhere(random, fresh.size);
      s.exchange(fresh);
    }
    stress::run_state state;
    stress::run_threads(8, state, [&](unsigned, std::uint64_t seed) {
      for (vandal it(slots, seed); state.going_on(); state.step_done()) {
        try {
          it.step();
        } catch (const hpe::error& e) {
          // Memory may run out for a moment.
          if (e.status() != HPE_ERROR_OUT_OF_MEMORY) state.fail(e.what());
        }
      }
    });
    EXPECT_FALSE(state.failed());
    for (slot& s : slots) EXPECT_EQ(hpeFree(s.exchange({}).data), HPE_SUCCESS) << hpeGetLastErrorMessage();
  }
  for (int tries = 0; hpeSynchronize() != HPE_SUCCESS && tries < 100000; ++tries)
    ;
  EXPECT_EQ(hpeSynchronize(), HPE_SUCCESS) << hpeGetLastErrorMessage();
  EXPECT_TRUE(stress::no_more_in_use_than(before));

  // After the run, the runtime must work as if it were new.
  for (int d = 0; d < hpe::device_count(); ++d)
    for (const std::size_t n : {100U, 100000U, 5000000U}) {
      const hpe::array<std::uint8_t> a(n, hpe::on_device(d));
      const hpePointerInfo info = hpe::pointer_info(a.data() + n / 2);
      EXPECT_EQ(info.base, a.data());
      EXPECT_EQ(info.size, n);
      EXPECT_EQ(info.device, d);
      for (const std::uint8_t x : a.span()) ASSERT_EQ(x, 0);
      hpe::launch_on(d, kernels().pattern, hpe::grid(stress_tiles), {a.data(), n, 3, 0}, hpe::out(a));
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(a[i], pattern_at(3, i));
    }
  EXPECT_TRUE(stress::no_more_in_use_than(before));
}

}  // namespace
