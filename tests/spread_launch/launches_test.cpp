// Typical kernels of programs for one GPU, spread over all devices: they print, compute and count the same as on one
// device. Runs on 1 to 4 soft devices, and on GPUs with HPE_DEVICES=cuda.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>

#include "hpe/ndarray.hpp"

namespace {

using hpe::launch_over;
using hpe::ndarray;

const hpe::ptx_module& kernels() {
  static const hpe::ptx_module all(std::string(
#include "kernels_ptx.h"
      ));
  return all;
}

class OnDevices : public ::testing::Test {
 protected:
  /// Returns whether the launch had as many parts as there are devices. Always true if predicted times decide about the
  /// launch.
  static testing::AssertionResult is_spread(const hpeSpread& how) {
    const char* const cut = std::getenv("HPE_SPREAD_CUT");
    if (cut == nullptr || std::string(cut) != "even") return testing::AssertionSuccess();
    if (static_cast<int>(how.parts) == hpe::device_count()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << how.parts << " parts: " << how.reason;
  }

  std::vector<float> random(std::size_t n) {
    std::vector<float> values(n);
    for (float& x : values) x = std::uniform_real_distribution<float>(-1, 1)(random_);
    return values;
  }

  template <class Array>
  static void put(Array& to, const std::vector<typename Array::value_type>& values) {
    hpe::copy(to.data(), values.data(), values.size() * sizeof values[0]);
  }

  /// Expects that work(devices) has the same result, bit for bit, on one device and on all devices.
  template <class Work>
  static void expect_same(const Work& work) {
    const auto one = work(std::vector<int>{0});
    hpe::synchronize();
    const auto all = work(std::vector<int>{});
    hpe::synchronize();
    ASSERT_EQ(one.size(), all.size());
    EXPECT_EQ(std::memcmp(one.data(), all.data(), one.size() * sizeof one[0]), 0);
  }

  std::mt19937 random_{std::random_device{}()};
};

template <class T, std::size_t D>
std::vector<T> contents(const ndarray<T, D>& of) {
  return {of.begin(), of.end()};
}

TEST_F(OnDevices, AddVectors) {
  constexpr std::size_t n = (6 << 20) + 77;
  const auto left = random(n), right = random(n);
  ndarray<float, 1> a({n}), b({n}), c({n});
  put(a, left);
  put(b, right);
  EXPECT_TRUE(is_spread(launch_over(kernels()["vecadd"], {(n + 255) / 256}, {256}, c, a, b, n)));
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(c(i), left[i] + right[i]) << i;
}

TEST_F(OnDevices, LaunchesFollowEachOtherAndTheHost) {
  constexpr std::size_t n = 3 << 20;
  ndarray<float, 1> x({n}), y({n});
  x.fill(1);
  for (int round = 0; round < 5; ++round) {
    x(n - 1) += 1;  // the host writes between launches
    launch_over(kernels()["saxpy"], {n / 256}, {256}, y, x, 2.0F, n);
  }
  EXPECT_EQ(y(0), 10);
  EXPECT_EQ(y(n / 2), 10);
  EXPECT_EQ(y(n - 1), 2 * (2 + 3 + 4 + 5 + 6));
  EXPECT_EQ(x(n - 1), 6);
}

TEST_F(OnDevices, StencilsWithHalos) {
  constexpr int nx = 1100, ny = 900;
  const auto start = random(std::size_t{nx} * ny);
  expect_same([&](const std::vector<int>& devices) {
    ndarray<float, 2> a({ny, nx}), b({ny, nx});
    put(a, start);
    for (int step = 0; step < 6; ++step)
      launch_over(devices, kernels()["stencil2d"], {(nx + 31) / 32, (ny + 7) / 8}, {32, 8}, step % 2 == 0 ? b : a,
                  step % 2 == 0 ? a : b, nx, ny);
    return contents(a);
  });
}

TEST_F(OnDevices, StencilWithConstants) {
  constexpr int nx = 130, ny = 70, nz = 90;
  const auto start = random(std::size_t{nx} * ny * nz);
  if (hpe::device_info(0).kind == HPE_DEVICE_CUDA) GTEST_SKIP() << "on GPUs the driver places variables";
  void* weights = nullptr;
  ASSERT_EQ(hpeModuleGetVariable(&weights, nullptr, kernels().get(), "weights", 0), HPE_SUCCESS)
      << hpeGetLastErrorMessage();
  expect_same([&](const std::vector<int>& devices) {
    ndarray<float, 3> a({nz, ny, nx}), b({nz, ny, nx});
    put(a, start);
    for (int step = 0; step < 4; ++step) {
      const float now[] = {0.4F, 0.1F, 0.12F, 0.08F + 0.01F * static_cast<float>(step), 0};
      hpe::copy(weights, now, sizeof now);
      launch_over(devices, kernels()["stencil3d"], {(nx + 15) / 16, (ny + 7) / 8, (nz + 3) / 4}, {16, 8, 4},
                  step % 2 == 0 ? b : a, step % 2 == 0 ? a : b, nx, ny, nz);
    }
    return contents(a);
  });
}

TEST_F(OnDevices, MatrixProduct) {
  constexpr int n = 256;
  const auto left = random(std::size_t{n} * n), right = random(std::size_t{n} * n);
  expect_same([&](const std::vector<int>& devices) {
    ndarray<float, 2> a({n, n}), b({n, n}), c({n, n});
    put(a, left);
    put(b, right);
    launch_over(devices, kernels()["product"], {n / 16, n / 16}, {16, 16}, c, a, b, n);
    return contents(c);
  });
}

TEST_F(OnDevices, Transpose) {
  constexpr int n = 1536;
  const auto values = random(std::size_t{n} * n);
  ndarray<float, 2> in({n, n}), out({n, n});
  put(in, values);
  EXPECT_TRUE(is_spread(launch_over(kernels()["transpose"], {n / 32, n / 32}, {32, 8}, out, in, n)));
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x) ASSERT_EQ(out(y, x), values[static_cast<std::size_t>(x) * n + y]) << y << " " << x;
}

TEST_F(OnDevices, HistogramWithAtomics) {
  constexpr std::size_t n = 5 << 20;
  std::vector<unsigned> input(n), counts(256);
  for (unsigned& x : input) ++counts[(x = static_cast<unsigned>(random_())) >> 24];
  ndarray<unsigned, 1> values({n}), bins({256});
  put(values, input);
  EXPECT_TRUE(is_spread(launch_over(kernels()["histogram"], {97}, {256}, bins, values, n)));
  EXPECT_EQ(contents(bins), counts);
}

TEST_F(OnDevices, LastBlockAddsTheSumsOfAll) {
  constexpr std::size_t n = 4 << 20;
  constexpr unsigned blocks = 203;
  std::vector<unsigned> input(n);
  for (unsigned& x : input) x = static_cast<unsigned>(random_());
  const unsigned sum = std::accumulate(input.begin(), input.end(), 0U);
  ndarray<unsigned, 1> values({n}), parts({blocks}), counter({1}), result({1});
  put(values, input);
  for (int round = 0; round < 20; ++round) {
    result(0) = 0;
    EXPECT_TRUE(is_spread(launch_over(kernels()["reduce_last"], {blocks}, {256}, result, parts, counter, values, n)));
    ASSERT_EQ(result(0), sum) << round;
  }
}

TEST_F(OnDevices, VariablesAreThoseOfTheFirstDevice) {
  constexpr std::size_t n = 4 << 20;
  constexpr unsigned blocks = 203;
  ndarray<unsigned, 1> values({n}), parts({blocks}), result({1});
  std::fill(values.begin(), values.end(), 3U);
  ndarray<float, 1> data({1000});
  std::vector<int> devices(static_cast<std::size_t>(hpe::device_count()));
  std::iota(devices.begin(), devices.end(), 0);
  for (int round = 0; round < 3; ++round) {
    result(0) = 0;
    launch_over(devices, kernels()["reduce_with_variable"], {blocks}, {256}, result, parts, values, n);
    ASSERT_EQ(result(0), 3U * n);
    void* factor = nullptr;
    if (hpeModuleGetVariable(&factor, nullptr, kernels().get(), "factor", devices[0]) == HPE_SUCCESS) {
      const float five = 5;
      hpe::copy(factor, &five, sizeof five);
      data.fill(1);
      launch_over(devices, kernels()["scale"], {40}, {25}, data, data.size());
      EXPECT_EQ(data(0), 5);
      EXPECT_EQ(data(999), 5);
    }
    std::rotate(devices.begin(), devices.begin() + 1, devices.end());
  }
}

TEST_F(OnDevices, ArraysThatAreFoundInMemory) {
  constexpr std::size_t n = 1 << 20;
  ndarray<float, 1> first({n}), second({n}), third({n});
  second.fill(0);
  std::fill(first.begin(), first.end(), 1.0F);
  std::fill(third.begin(), third.end(), 3.0F);
  ndarray<float*, 1> rows({3});
  rows(0) = first.data();
  rows(1) = second.data();
  rows(2) = third.data();
  EXPECT_TRUE(is_spread(launch_over(kernels()["add_rows"], {n / 256}, {256}, rows, 3, n)));
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(first(i), 4) << i;
}

TEST_F(OnDevices, HostMemoryAndMemoryOfOthers) {
  constexpr std::size_t n = 1 << 16;
  ndarray<float, 1> x({n}, hpe::on_host()), y({n});
  std::fill(x.begin(), x.end(), 2.0F);
  launch_over(kernels()["saxpy"], {n / 256}, {256}, y, x, 3.0F, n);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(y(i), 6) << i;
  ndarray<unsigned, 1> values({n}), bins({256}, hpe::on_host());
  launch_over(kernels()["histogram"], {64}, {256}, bins, values, n);
  hpe::synchronize();
  EXPECT_EQ(bins(0), n);
  if (hpe::device_count() == 1 || hpe::device_info(0).kind == HPE_DEVICE_CUDA) return;
  std::vector<float> own(n);
  const hpeSpread how = launch_over(kernels()["saxpy"], {n / 256}, {256}, y, own.data(), 3.0F, std::size_t{0});
  EXPECT_EQ(how.parts, 1U);
  EXPECT_NE(std::string(how.reason).find("hpe did not allocate"), std::string::npos) << how.reason;
  hpe::synchronize();
}

TEST_F(OnDevices, PrintsOneLineForEachBlock) {
  testing::internal::CaptureStdout();
  launch_over(kernels()["print_block"], {5}, {1});
  hpe::synchronize();
  std::fflush(stdout);
  const std::string text = testing::internal::GetCapturedStdout();
  for (int block = 0; block < 5; ++block)
    EXPECT_NE(text.find("block " + std::to_string(block) + " of 5\n"), std::string::npos) << text;
}

TEST_F(OnDevices, KernelsWhoseBlocksWaitStayOnOne) {
  ndarray<unsigned, 1> flag({1}), out({64});
  for (const char* const name : {"spin", "grid_sync"}) {
    const char* reason = nullptr;
    ASSERT_EQ(hpeKernelGetObstacle(kernels()[name], &reason), HPE_SUCCESS);
    ASSERT_NE(reason, nullptr) << name;
    EXPECT_NE(std::string(reason).find("wait for each other"), std::string::npos) << reason;
  }
  const hpeSpread how = launch_over(kernels()["spin"], {8}, {1}, flag, out);
  EXPECT_EQ(how.parts, 1U);
  EXPECT_NE(std::string(how.reason).find("wait for each other"), std::string::npos) << how.reason;
  for (unsigned b = 0; b < 8; ++b) EXPECT_EQ(out(b), 1U);

  const hpePart part{0, {0, 0, 0}, {8, 1, 1}};
  const hpeGrid shape{{8, 1, 1}, {1, 1, 1}, 0, 0, {}};
  unsigned* const parameters[] = {flag.data(), out.data()};
  EXPECT_EQ(hpeLaunchParts(&part, 1, kernels()["spin"], &shape, parameters, sizeof parameters),
            HPE_ERROR_NOT_SUPPORTED);
  EXPECT_NE(std::string(hpeGetLastErrorMessage()).find("wait for each other"), std::string::npos);
}

TEST_F(OnDevices, ChosenParts) {
  constexpr int n = 256;
  const auto values = random(std::size_t{n} * n);
  ndarray<float, 2> in({n, n}), out({n, n});
  put(in, values);
  const int last = hpe::device_count() - 1;
  // Device 0 runs columns 0 to 2 of blocks, device `last` columns 3 to 7 without rows 5 to 7, and device 0 the rest.
  const hpePart parts[] = {{0, {0, 0, 0}, {3, 8, 1}}, {last, {3, 0, 0}, {5, 5, 1}}, {0, {3, 5, 0}, {5, 3, 1}}};
  const hpeGrid shape{{8, 8, 1}, {32, 8, 1}, 0, 0, {}};
  const struct {
    float *out, *in;
    int n;
  } parameters{out.data(), in.data(), n};
  ASSERT_EQ(hpeLaunchParts(parts, 3, kernels()["transpose"], &shape, &parameters, sizeof parameters), HPE_SUCCESS)
      << hpeGetLastErrorMessage();
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x) ASSERT_EQ(out(y, x), values[static_cast<std::size_t>(x) * n + y]) << y << " " << x;

  const hpePart outside{0, {3, 0, 0}, {6, 8, 1}};
  EXPECT_EQ(hpeLaunchParts(&outside, 1, kernels()["transpose"], &shape, &parameters, sizeof parameters),
            HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(hpeGetLastErrorMessage()).find("blocks 3 to 9 in dimension 0, where the grid has 8"),
            std::string::npos)
      << hpeGetLastErrorMessage();
}

TEST_F(OnDevices, FaultyLaunchesAreRefusedOrReported) {
  ndarray<float, 1> x({64});
  const int twice[] = {0, 0};
  const hpeGrid shape{{2, 1, 1}, {32, 1, 1}, 0, 0, {}};
  EXPECT_EQ(hpeLaunchOver(twice, 2, kernels()["scale"], &shape, nullptr, 0, nullptr), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(hpeLaunchOver(twice, 0, kernels()["scale"], &shape, nullptr, 0, nullptr), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(hpeLaunchOver(nullptr, 0, kernels()["scale"], &shape, nullptr, 0, nullptr), HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_THROW(launch_over(kernels()["scale"], {1}, {32}, x), hpe::error);
  EXPECT_THROW(launch_over(kernels()["scale"], {1}, {32}, x, 64), hpe::error);  // an int instead of a size_t
  EXPECT_THROW(launch_over(kernels()["scale"], {1}, {2048}, x, x.size()), hpe::error);
  if (hpe::device_info(0).kind == HPE_DEVICE_CUDA) return;  // a fault makes all GPUs unusable
  launch_over(kernels()["scale"], {2}, {32}, static_cast<float*>(nullptr), std::size_t{64});
  EXPECT_THROW(hpe::synchronize(), hpe::error);
  while (hpeSynchronize() != HPE_SUCCESS) {
  }
  x.fill(2);
  launch_over(kernels()["scale"], {2}, {32}, x, x.size());
  hpe::synchronize();
}

}  // namespace
