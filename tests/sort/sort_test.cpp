// Compares sorts on the devices of HPE_DEVICES with the standard library's stable sort.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "apps/sort/sorter.h"
#include "tests/sort/descending.h"

namespace hpe::sort::testing {
namespace {

using kernels::by_key;
using kernels::sort_pair;

/// Returns an element whose key has one of `kinds` values, so that many keys are equal; the value of a pair is the
/// pair's original place.
template <class T>
T make(std::mt19937_64& random, std::uint64_t kinds, std::size_t /*place*/) {
  const auto value = static_cast<std::int64_t>(random() % kinds) - static_cast<std::int64_t>(kinds / 2);
  return static_cast<T>(value) + (std::is_floating_point_v<T> ? T(0.5) : T(0));
}
template <class T>
requires requires(T pair) { pair.key; }
T make(std::mt19937_64& random, std::uint64_t kinds, std::size_t place) {
  return {make<decltype(T::key)>(random, kinds, place), static_cast<decltype(T::value)>(place)};
}

bool same_bytes(const void* a, const void* b, std::size_t bytes) { return std::memcmp(a, b, bytes) == 0; }

hpeStatus status_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const error& e) {
    return e.status();
  }
  return HPE_SUCCESS;
}

constexpr method methods[] = {method::merge, method::radix};

template <class T>
void check_sort(method how, std::size_t count, std::uint64_t kinds, std::size_t shift = 0) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(std::string(name_of(how)) + ", " + name_of_type<T>::value + ", " + std::to_string(count) +
               " elements of " + std::to_string(kinds) + " kinds, seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<T> given(count);
  for (std::size_t i = 0; i < count; ++i) given[i] = make<T>(random, kinds, i);
  std::vector<T> wanted = given;
  std::stable_sort(wanted.begin(), wanted.end(), by_key{});
  sorter work(element_of<T>(), count, {}, how);
  constexpr std::size_t margin = 3;
  const array<T> data(shift + count + margin, work.where());
  T poison;
  std::memset(&poison, 0xA5, sizeof poison);
  for (int run = 0; run < 2; ++run) {
    std::fill(data.begin(), data.end(), poison);
    std::copy(given.begin(), given.end(), data.begin() + static_cast<std::ptrdiff_t>(shift));
    work.run(data.data() + shift);
    // Equal bits show that the result is sorted, a permutation of the input, and stable.
    ASSERT_TRUE(same_bytes(data.data() + shift, wanted.data(), count * sizeof(T))) << "run " << run;
    for (std::size_t i = 0; i < shift; ++i) ASSERT_TRUE(same_bytes(&data[i], &poison, sizeof(T))) << "before the data";
    for (std::size_t i = shift + count; i < data.size(); ++i)
      ASSERT_TRUE(same_bytes(&data[i], &poison, sizeof(T))) << "behind the data";
  }
}

template <class T>
class sorts : public ::testing::Test {};
using types = ::testing::Types<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double,
                               sort_pair<std::uint32_t, std::uint32_t>, sort_pair<std::uint64_t, std::uint64_t>,
                               sort_pair<float, std::uint32_t>>;
TYPED_TEST_SUITE(sorts, types);

TYPED_TEST(sorts, small_and_odd_sizes) {
  for (const method how : methods)
    for (const std::size_t count : {1, 2, 3, 4, 5, 7, 63, 64, 65, 2047, 2049})
      for (const std::uint64_t kinds : {1, 2, 1 << 20}) check_sort<TypeParam>(how, count, kinds);
}

TYPED_TEST(sorts, large_sizes) {
  for (const method how : methods) {
    for (const std::size_t count : {100003, 1 << 18}) {
      check_sort<TypeParam>(how, count, std::uint64_t{1} << 30);
      check_sort<TypeParam>(how, count, 5);
    }
    check_sort<TypeParam>(how, 50021, 1000, 1);
  }
}

TEST(sort, long_arrays_over_many_granules) {
  for (const method how : methods) check_sort<std::uint32_t>(how, (6U << 20) + 11, std::uint64_t{1} << 31);
}

/// Sorts `keys` by radix on the first one to four devices and compares the result with the standard library's sort.
template <class T>
void check_radix(const std::vector<T>& keys) {
  std::vector<T> wanted = keys;
  std::stable_sort(wanted.begin(), wanted.end(), by_key{});
  for (int count = 1; count <= std::min(device_count(), 4); ++count) {
    std::vector<int> chosen;
    for (int d = 0; d < count; ++d) chosen.push_back(d);
    sorter work(element_of<T>(), keys.size(), chosen, method::radix);
    const array<T> data(keys.size(), work.where());
    std::copy(keys.begin(), keys.end(), data.begin());
    work.run(data.data());
    ASSERT_TRUE(same_bytes(data.data(), wanted.data(), keys.size() * sizeof(T))) << count << " devices";
  }
}

/// Tests splitters that are equal to each other, splitters that share their upper digits, and splitters that are the
/// smallest or the greatest key.
TEST(sort, by_radix_keys_of_any_distribution) {
  constexpr std::size_t count = 40009;
  using pair = sort_pair<std::uint64_t, std::uint64_t>;
  const auto with = [&](const auto& key_of) {
    std::vector<pair> keys(count);
    for (std::size_t i = 0; i < count; ++i) keys[i] = {static_cast<std::uint64_t>(key_of(i * 7919 % count)), i};
    SCOPED_TRACE(keys[1].key);
    check_radix(keys);
  };
  constexpr std::uint64_t most = ~std::uint64_t{0};
  with([](std::size_t) { return 0; });
  with([&](std::size_t) { return most; });
  with([](std::size_t i) { return i; });
  with([&](std::size_t i) { return most - i; });
  with([&](std::size_t i) { return i == 0 ? 0 : most; });            // all keys except one are the greatest key
  with([](std::size_t i) { return i < count / 2 ? 5 : 1000 + i; });  // half of the keys are equal
  with([](std::size_t i) { return std::uint64_t{1} << (i % 64); });  // digits that few keys share
  with([&](std::size_t i) { return (i % 3) << 40 | (i % 2) << 8 | i % 5; });  // gaps between digits
  with([&](std::size_t i) { return std::uint64_t{0x0102030405060708} + (i < count / 4 ? 0 : i); });
}

TEST(sort, by_radix_signs_zeros_and_infinities_as_by_comparison) {
  std::mt19937_64 random(5);
  const auto with = [&]<class T>(const std::vector<T>& special) {
    SCOPED_TRACE(name_of_type<T>::value);
    std::vector<T> keys(30011);
    for (T& key : keys) key = special[random() % special.size()];
    check_radix(keys);
  };
  constexpr float infinite = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
  with(std::vector<float>{-infinite, -1.5F, -tiny, -0.0F, 0.0F, tiny, 1, 1.5F, 3e38F, infinite});
  with(std::vector<double>{-infinite, -1e300, -5e-324, -0.0, 0.0, 5e-324, 1, infinite});
  with(std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), -256, -1, 0, 1, 255,
                                 std::numeric_limits<std::int32_t>::max()});
  with(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), -1, 0, 1,
                                 std::numeric_limits<std::int64_t>::max()});
}

TEST(sort, chooses_a_possible_method) {
  EXPECT_EQ(sorter(element_of<float>(), 1000).how(), method::merge);
  const bool soft = device_info(0).kind == HPE_DEVICE_SOFT;
  EXPECT_EQ(sorter(element_of<float>(), 1 << 20).how(), soft ? method::radix : method::merge);
  using pair = sort_pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(sorter(element_of<pair>(), 1 << 22).how(), method::radix);
  EXPECT_EQ(sorter(element_of<pair>(), 1 << 22, {0}).how(), method::radix);
  EXPECT_EQ(sorter(element_of<pair>(), 1 << 19).how(), method::merge);
  const element own{"measured", sizeof(measured), HPE_TEST_ORDER, descending_on_gpus()};
  EXPECT_EQ(sorter(own, 1 << 20).how(), method::merge);
  EXPECT_EQ(status_of([&] { sorter(own, 1 << 20, {}, method::radix); }), HPE_ERROR_NOT_SUPPORTED);
  sorter work(element_of<float>(), 100, {}, method::radix);
  const array<float> data(100, work.where());
  std::fill(data.begin(), data.end(), 1.0F);
  std::vector<std::string> names;
  for (const sorter::step& s : work.steps(data.data())) names.push_back(s.name);
  if (device_count() > 1) {
    using names_of_steps = std::vector<std::string>;
    EXPECT_EQ(names, soft ? names_of_steps({"splitters", "exchange", "local sorts"})
                          : names_of_steps({"splitters and counts", "exchange", "local passes"}));
  }
}

/// The array is so large that the devices' parts begin at granule boundaries. Two, three and four devices sort it.
TEST(sort, many_keys_in_one_round) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const int count : {2, 3, 4}) {
    std::vector<int> chosen;
    for (int d = 0; d < std::min(count, device_count()); ++d) chosen.push_back(d);
    for (const unsigned bits : {32U, 3U, 0U}) {
      const std::size_t size = (17U << 20) + 7;
      sorter work(element_of<std::uint32_t>(), size, chosen, method::merge);
      if (chosen.size() > 1) {
        EXPECT_NE(work.explain().find("merged in 1 round;"), std::string::npos);
      }
      const array<std::uint32_t> data(size, work.where());
      // Many different keys, few different keys, and sorted keys.
      for (std::uint32_t i = 0; i < size; ++i)
        data[i] = bits == 0 ? i : static_cast<std::uint32_t>(random() & ((std::uint64_t{1} << bits) - 1));
      std::vector<std::uint32_t> wanted(data.begin(), data.end());
      std::sort(wanted.begin(), wanted.end());
      work.run(data.data());
      ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), data.begin())) << chosen.size() << " devices, " << bits;
    }
  }
}

// The recorded sort of one array is not used for another array.
TEST(sort, one_sorter_and_several_arrays) {
  const std::size_t count = 100003;
  sorter work(element_of<std::uint32_t>(), count);
  const array<std::uint32_t> first(count, work.where()), second(count, work.where());
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int run = 0;
  for (const auto* const data : {&first, &first, &first, &second, &first, &second, &second, &second}) {
    for (std::uint32_t& key : data->span()) key = static_cast<std::uint32_t>(random());
    std::vector<std::uint32_t> wanted(data->begin(), data->end());
    std::sort(wanted.begin(), wanted.end());
    work.run(data->data());
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), data->begin())) << "run " << run;
    ++run;
  }
}

TEST(sort, sorted_and_reversed_elements) {
  const std::size_t count = 200001;
  sorter work(element_of<std::int64_t>(), count);
  const array<std::int64_t> data(count, work.where());
  for (const bool reversed : {false, true}) {
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::int64_t>(reversed ? count - 1 - i : i);
    work.run(data.data());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data[i], static_cast<std::int64_t>(i));
  }
}

TEST(sort, on_some_devices_in_any_order) {
  const int devices = device_count();
  for (int count = 1; count <= devices; ++count) {
    std::vector<int> chosen;
    for (int d = 0; d < count; ++d) chosen.push_back(devices - 1 - d);
    std::mt19937 random(7);
    const std::size_t size = 30011;
    sorter work(element_of<std::uint32_t>(), size, chosen);
    const array<std::uint32_t> data(size, work.where());
    for (std::uint32_t& v : data) v = static_cast<std::uint32_t>(random());
    std::vector<std::uint32_t> wanted(data.begin(), data.end());
    std::sort(wanted.begin(), wanted.end());
    work.run(data.data());
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), data.begin())) << count << " devices";
  }
}

TEST(sort, an_order_of_a_program) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const std::size_t count : {1, 777, 60013}) {
    std::vector<measured> wanted(count);
    for (std::uint32_t i = 0; i < count; ++i) wanted[i] = {static_cast<std::int32_t>(random() % 401) - 200, i, 0.5F};
    sorter work({"measured", sizeof(measured), HPE_TEST_ORDER, descending_on_gpus()}, count);
    const array<measured> data(count, work.where());
    std::copy(wanted.begin(), wanted.end(), data.begin());
    work.run(data.data());
    std::stable_sort(wanted.begin(), wanted.end(), by_size_descending{});
    ASSERT_EQ(std::memcmp(data.data(), wanted.data(), count * sizeof(measured)), 0) << count;
  }
}

TEST(sort, explains_its_steps) {
  const element what = element_of<float>();
  EXPECT_EQ(sorter(what, 100, {0}).explain(), "one device sorts everything");
  if (device_count() == 1) return;
  sorter two(what, 100, {0, 1});
  EXPECT_NE(two.explain().find("2 parts, merged in 1 round"), std::string::npos);
  const array<float> data(100, two.where());
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>((i * 37) % 100);
  std::vector<std::string> names;
  for (const sorter::step& s : two.steps(data.data())) {
    names.push_back(s.name);
    s.queue();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"local sorts", "merges of 2 x 1"}));
  EXPECT_TRUE(std::is_sorted(data.begin(), data.end()));
}

TEST(sort, nothing_to_sort_and_bad_arguments) {
  sorter nothing(element_of<float>(), 0);
  nothing.run(nullptr);
  sorter work(element_of<float>(), 100);
  EXPECT_EQ(status_of([&] { work.run(nullptr); }), HPE_ERROR_INVALID_ARGUMENT);
  std::vector<float> ordinary(100);
  EXPECT_EQ(status_of([&] { work.run(ordinary.data()); }), HPE_ERROR_NOT_A_REGION);
  EXPECT_EQ(status_of([&] { sorter(element_of<float>(), ~0ULL); }), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { sorter({"f16", 2, ""}, 1); }), HPE_ERROR_NOT_FOUND);
  EXPECT_EQ(status_of([&] { sorter(element_of<float>(), 1, {0, 0}); }), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { sorter(element_of<float>(), 1, {99}); }), HPE_ERROR_INVALID_DEVICE);
  EXPECT_EQ(status_of([&] { sorter({"f32", 4, "/no/such.so"}, 1); }), HPE_ERROR_NOT_FOUND);
}

/// Compares the pivot with a complete merge.
TEST(sort, pivots_split_a_merge_anywhere) {
  std::mt19937 random(std::random_device{}());
  for (int round = 0; round < 200; ++round) {
    std::vector<int> left(random() % 20), right(random() % 20);
    for (auto* side : {&left, &right}) {
      for (int& v : *side) v = static_cast<int>(random() % 10);
      std::sort(side->begin(), side->end());
    }
    // Merges element by element, and counts the elements from each side.
    std::size_t l = 0, r = 0;
    for (std::size_t place = 0; place <= left.size() + right.size(); ++place) {
      ASSERT_EQ(kernels::pivot(left.data(), left.size(), right.data(), right.size(), place, by_key{}), l);
      if (l < left.size() && (r == right.size() || left[l] <= right[r]))
        ++l;
      else
        ++r;
    }
  }
}

}  // namespace
}  // namespace hpe::sort::testing
