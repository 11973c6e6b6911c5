// memcpy, memmove, memset and memcmp.

#undef _FORTIFY_SOURCE

#include <cstring>

#include "tests/core/kernels.h"
#include "tests/io/support.h"

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names of libc
extern "C" {
void* __memcpy_chk(void*, const void*, std::size_t, std::size_t) noexcept;
void* __memmove_chk(void*, const void*, std::size_t, std::size_t) noexcept;
void* __memset_chk(void*, int, std::size_t, std::size_t) noexcept;
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {

using namespace io_test;

// Sizes above and below 1 MiB. From 1 MiB on, devices execute the copies.
constexpr std::size_t sizes[] = {0, 1, 100, 4099, (1 << 20) - 1, 1 << 20, (3 << 20) + 5};

// Pointers to the functions, because the compiler would inline direct calls.
void* (*volatile copies)(void*, const void*, std::size_t) = std::memcpy;
void* (*volatile moves)(void*, const void*, std::size_t) = std::memmove;
void* (*volatile sets)(void*, int, std::size_t) = std::memset;
int (*volatile compares)(const void*, const void*, std::size_t) = std::memcmp;

// Whether each function works before the constructors of libhpe.so and of all other libraries have run; hpe's functions
// then work without libc's.
struct {
  bool copy, move, set, compare;
} early;

bool begins(const char* text, const char* with) {
  while (*with != '\0' && *text == *with) ++text, ++with;
  return *with == '\0';
}

void call_early() {
  char text[] = "abcdefgh";
  early.copy = copies(text, "ABC", 3) == text && begins(text, "ABCdefgh");
  early.move = moves(text + 1, text, 6) == text + 1 && begins(text, "AABCdefh");
  early.move = early.move && moves(text, text + 1, 6) == text && begins(text, "ABCdeffh");
  early.set = sets(text + 1, 'x', 3) == text + 1 && begins(text, "Axxxeffh");
  early.compare = compares("abc", "abd", 3) < 0 && compares("abd", "abc", 3) > 0 && compares("abc", "abd", 2) == 0 &&
                  compares("\xff", "a", 1) > 0;
}

[[gnu::section(".preinit_array"), gnu::used]] void (*at_the_start)() = call_early;

TEST(early_calls, WorkBeforeConstructors) {
  EXPECT_TRUE(early.copy);
  EXPECT_TRUE(early.move);
  EXPECT_TRUE(early.set);
  EXPECT_TRUE(early.compare);
}

void* copy_checked(void* to, const void* from, std::size_t n) { return __memcpy_chk(to, from, n, n); }
void* move_checked(void* to, const void* from, std::size_t n) { return __memmove_chk(to, from, n, n); }
void* set_checked(void* to, int value, std::size_t n) { return __memset_chk(to, value, n, n); }

class memory_calls : public testing::TestWithParam<place> {};

TEST_P(memory_calls, CopiesBetweenAllKinds) {
  for (const place other : all_places) {
    SCOPED_TRACE(name_of(other));
    const std::size_t room =
        std::min(GetParam() == place::small ? 5000 : (3 << 20) + 100, other == place::small ? 5000 : (3 << 20) + 100);
    memory to(GetParam(), room);
    memory from(other, room);
    for (auto* copy : {static_cast<void* (*)(void*, const void*, std::size_t)>(copies), copy_checked,
                       static_cast<void* (*)(void*, const void*, std::size_t)>(moves), move_checked})
      for (const std::size_t n : sizes) {
        if (n + 20 > room) continue;
        from.renew();
        to.renew();
        ASSERT_EQ(copy(to.data() + 9, from.data() + 13, n), to.data() + 9);
        to.expect(9, from.part(13, n));
        to.check(std::to_string(n).c_str());
      }
    from.check("the source");
  }
}

TEST_P(memory_calls, MovesWithinOneAllocation) {
  const std::size_t room = GetParam() == place::small ? 5000 : 5 << 20;
  memory m(GetParam(), room);
  for (const std::size_t distance : {1UL, 1000UL, room / 2})
    for (const bool up : {true, false}) {
      m.renew();
      const std::size_t n = room - distance - 1;
      const std::size_t from = up ? 0 : distance;
      const std::size_t to = up ? distance : 0;
      const content moved = m.part(from, n);
      moves(m.data() + to, m.data() + from, n);
      m.expect(to, moved);
      m.check("after memmove");
    }
}

TEST_P(memory_calls, Sets) {
  const std::size_t room = GetParam() == place::small ? 5000 : (3 << 20) + 100;
  memory m(GetParam(), room);
  for (auto* set : {static_cast<void* (*)(void*, int, std::size_t)>(sets), set_checked})
    for (const std::size_t n : sizes) {
      if (n + 20 > room) continue;
      m.renew();
      ASSERT_EQ(set(m.data() + 11, 0x1a5, n), m.data() + 11);
      m.expect(11, content(n, std::byte{0xa5}));
      m.check(std::to_string(n).c_str());
    }
}

TEST_P(memory_calls, Compares) {
  const std::size_t room = GetParam() == place::small ? 5000 : (3 << 20) + 100;
  memory m(GetParam(), room);
  for (const std::size_t n : sizes) {
    if (n + 20 > room) continue;
    m.renew();
    content same = m.part(3, n);
    EXPECT_EQ(compares(m.data() + 3, same.data(), n), 0);
    EXPECT_EQ(compares(same.data(), m.data() + 3, n), 0);
    if (n == 0) continue;
    for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
      same = m.part(3, n);
      const bool less = same[at] < std::byte{255};
      same[at] = less ? std::byte(int(same[at]) + 1) : std::byte{0};
      const int result = compares(m.data() + 3, same.data(), n);
      EXPECT_TRUE(less ? result < 0 : result > 0) << result;
      EXPECT_EQ(result > 0, compares(same.data(), m.data() + 3, n) < 0);
    }
  }
  m.check("after comparing");
}

INSTANTIATE_TEST_SUITE_P(Places, memory_calls, testing::ValuesIn(all_places), name_of_parameter);

hpeStatistics statistics() {
  hpeStatistics result{};
  hpeGetStatistics(&result);
  return result;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers intercept memcpy and similar functions, so hpe's functions are not called.
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

TEST(large_copies, AreMadeByDevices) {
  if (sanitized) GTEST_SKIP() << "the sanitizer's memcpy is called";
  memory a(place::device, 8 << 20);
  memory b(place::device, 8 << 20);
  content plain = random_content(8 << 20);
  hpe::synchronize();
  hpeResetStatistics();
  copies(a.data(), plain.data(), plain.size());
  copies(b.data(), a.data(), plain.size());
  content back(8 << 20);
  copies(back.data(), b.data(), back.size());
  sets(a.data(), 1, 8 << 20);
  const hpeStatistics after = statistics();
  EXPECT_EQ(after.faults_read + after.faults_write, 0U);
  EXPECT_TRUE(back == plain);
}

TEST(large_copies, StayOnTheHostWhereItHasTheMemoryToItself) {
  const hpe::array<std::byte> a(8 << 20);
  hpe::advise(a.data(), HPE_ADVISE_LAZY);  // no uploads while the host writes
  for (std::size_t i = 0; i < a.size(); i += 4096) a[i] = std::byte{1};
  const content plain = random_content(8 << 20);
  hpeResetStatistics();
  copies(a.data(), plain.data(), plain.size());
  a[5] = std::byte{1};
  EXPECT_EQ(statistics().bytes_to_device, 0U);
  EXPECT_EQ(a[6], plain[6]);
}

TEST(large_copies, WaitForTheKernelThatWritesTheSource) {
  constexpr std::size_t n = 1 << 20;
  const hpe::array<std::uint32_t> a(n);
  hpe::launch(test_kernel().increment, hpe::grid(1), {a.data(), n, 3, 100000}, hpe::inout(a));
  std::vector<std::uint32_t> out(n);
  copies(out.data(), a.data(), n * 4);
  EXPECT_EQ(out, std::vector<std::uint32_t>(n, 3));
}

}  // namespace
