// Tests the kernels that sort by radix over several GPUs: runs nvcc's PTX on the CPU, device by device, and compares
// the results with the standard library's stable sort.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "apps/sort/radix.h"
#include "apps/sort/sorter.h"
#include "kernels/radix_pass_parameters.h"
#include "tests/ptx/kernel_runner.h"

namespace {

using namespace hpe::kernels;  // NOLINT(google-build-using-namespace): the test is about these kernels
using hpe::ptx::test::engine_kind;
using hpe::ptx::test::kernel_runner;

/// The devices of a sort, with the memory of each device for all kernels.
class devices {
 public:
  template <class T>
  devices(kernel_runner& runner, const std::vector<T>& elements, const std::vector<std::uint64_t>& begins)
      : runner_(runner),
        name_(hpe::sort::name_of_type<T>::value),
        count_(static_cast<std::uint32_t>(begins.size()) - 1) {
    radix_pass_parameters p{};
    p.types = *hpe::sort::radix_types_of<T>();
    p.devices = count_;
    std::copy(begins.begin(), begins.end(), p.begins);
    data_ = runner.upload(elements);
    other_ = runner.allocate(elements.size() * sizeof(T) + 1);
    for (std::uint32_t d = 0; d < count_; ++d)
      p.counts[d] = static_cast<radix_pass_counts*>(runner.allocate(sizeof(radix_pass_counts)));
    for (p.device = 0; p.device < count_; ++p.device) {
      p.state = static_cast<radix_pass_state*>(runner.allocate(sizeof(radix_pass_state)));
      std::memset(p.state, 0xA5, sizeof *p.state);
      for (std::uint32_t*& sums : sums_[p.device]) {
        sums = static_cast<std::uint32_t*>(runner.allocate(4 * radix_sum_words(p)));
        std::memset(sums, 0xA5, 4 * radix_sum_words(p));
      }
      all_.push_back(p);
    }
  }

  void sort() {
    if (count_ > 1) run("radix_sample", count_ - 1, radix_sample_threads, 0);
    run("radix_count_" + name_, 2, radix_pass_threads, 0);
    run("radix_places", 1, radix_most_bins, 0);
    const radix_digits_of_passes digits = all_.front().digits();
    for (std::uint32_t pass = 0; pass < digits.passes(); ++pass) {
      const std::string kind = pass == 0 ? "first_" : digits.bins(pass) > 256 ? "wide_" : "";
      run("radix_pass_" + kind + name_, 3, radix_pass_threads, pass);
    }
  }
  [[nodiscard]] const void* data() const { return data_; }
  [[nodiscard]] radix_sequence range(std::size_t device) const { return all_.at(device).state->range; }

 private:
  void run(const std::string& kernel, std::uint32_t blocks, std::uint32_t threads, std::uint32_t pass) {
    for (std::uint32_t d = 0; d < count_; ++d) {
      radix_pass_parameters p = all_[d];
      p.from = pass % 2 == 0 ? data_ : other_;
      p.to = pass % 2 == 0 ? other_ : data_;
      p.pass = pass;
      p.sums = sums_[d][pass % 2];
      p.next_sums = pass + 1 < p.digits().passes() ? sums_[d][(pass + 1) % 2] : nullptr;
      const auto stopped = runner_.launch(kernel, {{blocks}, {threads}}, p);
      ASSERT_FALSE(stopped.has_value()) << kernel << ": " << stopped->message();
    }
  }

  kernel_runner& runner_;
  const std::string name_;
  const std::uint32_t count_;
  void *data_ = nullptr, *other_ = nullptr;
  std::vector<radix_pass_parameters> all_;
  std::uint32_t* sums_[radix_most_devices][2]{};
};

kernel_runner load() {
  const auto engine = hpe::ptx::test::has_compiler ? engine_kind::compiler : engine_kind::interpreter;
  return kernel_runner({hpe::ptx::test::read_file(std::string(HPE_MERGE_PTX) + "/radix.ptx")}, engine);
}

/// Returns the index at which each device's part begins, if the parts are equal, and then the end of the last part.
std::vector<std::uint64_t> even(std::uint64_t count, std::uint32_t devices) {
  std::vector<std::uint64_t> begins;
  for (std::uint32_t d = 0; d <= devices; ++d) begins.push_back(count * d / devices);
  return begins;
}

template <class T>
void check(kernel_runner& runner, const std::vector<T>& elements, const std::vector<std::uint64_t>& begins) {
  SCOPED_TRACE(std::string(hpe::sort::name_of_type<T>::value) + ", " + std::to_string(elements.size()) + " elements, " +
               std::to_string(begins.size() - 1) + " devices");
  devices all(runner, elements, begins);
  all.sort();
  std::vector<T> wanted = elements;
  std::stable_sort(wanted.begin(), wanted.end(), by_key{});
  ASSERT_EQ(std::memcmp(all.data(), wanted.data(), wanted.size() * sizeof(T)), 0);
}

template <class T>
T make(std::uint64_t bits, std::size_t place) {
  if constexpr (requires(T t) { t.key; })
    return {make<decltype(T::key)>(bits, place), static_cast<decltype(T::value)>(place)};
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(static_cast<std::int64_t>(bits)) / 16;
  else
    return static_cast<T>(bits);
}

template <class T>
std::vector<T> random_elements(std::size_t count, std::uint64_t kinds) {
  std::mt19937_64 random(count + kinds);
  std::vector<T> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = make<T>(kinds == 0 ? random() : random() % kinds - kinds / 2, i);
  return all;
}

// Each test runs in a separate process, which compiles its kernels. The compilation of a kernel takes some seconds, so
// each test uses few types of elements.
TEST(radix_passes, on_one_to_sixteen_devices) {
  kernel_runner runner = load();
  using type = std::uint32_t;
  for (const std::uint64_t kinds : {0, 7})
    for (const std::uint32_t devices : {1U, 2U, 3U, 5U, 16U})
      check(runner, random_elements<type>(50021, kinds), even(50021, devices));
  for (const std::uint64_t count : {1, 2, 31, 33, 7297})
    for (const std::uint32_t devices : {1U, 2U, 4U})
      check(runner, random_elements<type>(count, 0), even(count, devices));
  check(runner, random_elements<type>(5000, 0), {0, 0, 5000});
  check(runner, random_elements<type>(5000, 0), {0, 5000, 5000, 5000});
}

TEST(radix_passes, pairs_of_floats_and_values) {
  kernel_runner runner = load();
  using pair = sort_pair<float, std::uint32_t>;
  check(runner, random_elements<pair>(50021, 0), even(50021, 2));
  check(runner, random_elements<pair>(50021, 7), even(50021, 2));
}

/// Whatever the keys are, the devices' ranges must have about the same length, except for the range of the greatest
/// key.
TEST(radix_passes, keys_of_any_distribution) {
  kernel_runner runner = load();
  using pair = sort_pair<std::uint64_t, std::uint64_t>;
  constexpr std::size_t count = 60013;
  const auto with = [&](const auto& key_of, double share) {
    std::vector<pair> elements(count);
    for (std::size_t i = 0; i < count; ++i) elements[i] = {static_cast<std::uint64_t>(key_of(i * 7919 % count)), i};
    SCOPED_TRACE(elements[1].key);
    check(runner, elements, even(count, 2));
    devices all(runner, elements, even(count, 2));
    all.sort();
    for (std::size_t d = 0; d < 2; ++d)
      EXPECT_LE(static_cast<double>(all.range(d).end - all.range(d).begin), share * count);
  };
  constexpr std::uint64_t most = ~std::uint64_t{0};
  with([](std::size_t) { return 0; }, 0.55);
  with([](std::size_t i) { return i; }, 0.55);
  with([&](std::size_t i) { return most - i; }, 0.55);
  with([](std::size_t i) { return i < count / 2 ? 5 : 1000 + i; }, 0.55);
  with([](std::size_t i) { return std::uint64_t{1} << (i % 64); }, 0.55);
  with([&](std::size_t i) { return (i % 3) << 40 | (i % 2) << 8 | i % 5; }, 0.55);
  with([&](std::size_t) { return most; }, 1);
  with([&](std::size_t i) { return i == 0 ? 0 : most; }, 1);
}

TEST(radix_passes, signs_zeros_and_infinities) {
  kernel_runner runner = load();
  std::mt19937_64 random(5);
  const auto with = [&]<class T>(const std::vector<T>& special) {
    std::vector<T> keys(30011);
    for (T& key : keys) key = special[random() % special.size()];
    check(runner, keys, even(keys.size(), 2));
  };
  constexpr float infinite = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
  with(std::vector<float>{-infinite, -1.5F, -tiny, -0.0F, 0.0F, tiny, 1, 1.5F, 3e38F, infinite});
  with(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), -1, 0,
                                 std::numeric_limits<std::int64_t>::max()});
}

TEST(radix_passes, every_bit_of_a_key_is_in_one_pass) {
  for (const std::uint32_t bytes : {4U, 8U})
    for (std::uint32_t devices = 1; devices <= radix_most_devices; ++devices) {
      const radix_digits_of_passes digits{bytes, devices};
      std::uint32_t bits = 0;
      for (std::uint32_t pass = 0; pass < digits.passes(); ++pass) {
        EXPECT_EQ(digits.shift(pass), bits);
        EXPECT_LE(1U << digits.bits(pass), digits.bins(pass));
        bits += digits.bits(pass);
      }
      EXPECT_EQ(bits, 8 * bytes);
      EXPECT_EQ(digits.passes() % 2, 0);
      EXPECT_LE(devices << digits.low_bits(), radix_most_bins);
    }
}

TEST(radix_passes, tiles_cover_a_sequence) {
  for (const std::uint64_t begin : {0, 1, 31, 32, 100})
    for (const std::uint64_t length : {0, 1, 31, 64, 95, 96, 97, 500}) {
      const radix_sequence all{begin, begin + length};
      std::uint64_t next = begin;
      for (std::uint32_t t = 0; t < all.tiles(96); ++t) {
        const radix_sequence part = all.part(t, 96);
        EXPECT_EQ(part.begin, next);
        EXPECT_GT(part.end, part.begin);
        EXPECT_LE(part.end - part.begin, 96U);
        next = part.end;
      }
      EXPECT_EQ(next, all.end);
    }
}

}  // namespace
