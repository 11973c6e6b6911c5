// Kernels that nvcc compiled, run by the interpreter and as native code. Their results are compared with expected
// results.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/ptx/programs_fixture.h"
#include "tests/ptx/waiting_blocks.h"

namespace hpe::ptx::test {
namespace {

using Programs = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

template <class T>
std::vector<T> copy_of(const T* from, std::size_t count) {
  return {from, from + count};
}

TEST_P(Programs, VectorAdd) {
  auto runner = load("vector_add");
  for (const unsigned n : {0U, 1U, 33U, 1000U}) {
    std::vector<float> a(n), b(n);
    for (float& x : a) x = std::uniform_real_distribution<float>(-1, 1)(random_);
    for (float& x : b) x = std::uniform_real_distribution<float>(-1, 1)(random_);
    auto* const c = runner.upload(std::vector<float>(n, NAN));
    EXPECT_RUNS(runner.launch("vector_add", {{(n + 127) / 128 + 1}, {128}}, runner.upload(a), runner.upload(b), c, n));
    for (unsigned i = 0; i < n; ++i) ASSERT_EQ(c[i], a[i] + b[i]);
  }
}

TEST_P(Programs, VectorsAndNarrowTypes) {
  auto runner = load("vector_add");
  constexpr unsigned n = 501;
  std::vector<float> a(4 * n), b(4 * n);
  std::iota(a.begin(), a.end(), 0.5F);
  std::iota(b.begin(), b.end(), -700.25F);
  auto* const c = runner.upload(std::vector<float>(4 * n, NAN));
  EXPECT_RUNS(runner.launch("vector_add4", {{3}, {64}}, runner.upload(a), runner.upload(b), c, n));
  for (unsigned i = 0; i < 4 * n; ++i) ASSERT_EQ(c[i], a[i] + b[i]);

  const auto narrow = [&]<class T>(const char* kernel, T) {
    std::vector<T> x(n), y(n);
    for (T& v : x) v = static_cast<T>(random_());
    for (T& v : y) v = static_cast<T>(random_());
    auto* const z = runner.upload(std::vector<T>(n, T(77)));
    EXPECT_RUNS(runner.launch(kernel, {{4}, {128}}, runner.upload(x), runner.upload(y), z, n));
    for (unsigned i = 0; i < n; ++i) ASSERT_EQ(z[i], static_cast<T>(x[i] + y[i])) << kernel << " " << i;
  };
  narrow("add_u8", std::uint8_t{});
  narrow("add_s8", std::int8_t{});
  narrow("add_u16", std::uint16_t{});
  narrow("add_u64", std::uint64_t{});
  narrow("add_f64", double{});
}

TEST_P(Programs, Polynomial) {
  auto runner = load("vector_add");
  constexpr unsigned n = 77;
  std::vector<double> x(n);
  for (double& v : x) v = std::uniform_real_distribution<double>(-1, 1)(random_);
  auto* const y = runner.upload(std::vector<double>(n, NAN));
  EXPECT_RUNS(runner.launch("polynomial", {{2}, {64}}, runner.upload(x), y, n));
  for (unsigned i = 0; i < n; ++i) {
    double sum = 0;
    for (int k = 0; k < 32; ++k) sum = std::fma(sum, x[i], 1.0 / (1 + k));
    ASSERT_EQ(y[i], sum);
  }
}

TEST_P(Programs, TiledMatrixProduct) {
  auto runner = load("matmul");
  for (const int n : {1, 16, 45}) {
    const auto size = static_cast<std::size_t>(n) * n;
    std::vector<float> a(size), b(size);
    for (float& x : a) x = std::uniform_real_distribution<float>(-1, 1)(random_);
    for (float& x : b) x = std::uniform_real_distribution<float>(-1, 1)(random_);
    auto* const c = runner.upload(std::vector<float>(size, NAN));
    const auto blocks = static_cast<std::uint32_t>(n + 15) / 16;
    EXPECT_RUNS(runner.launch("matmul", {{blocks, blocks}, {16, 16}}, runner.upload(a), runner.upload(b), c, n));
    for (int row = 0; row < n; ++row) {
      for (int column = 0; column < n; ++column) {
        float sum = 0;
        for (int k = 0; k < n; ++k) sum = std::fma(a[row * n + k], b[k * n + column], sum);
        ASSERT_EQ(c[row * n + column], sum) << row << " " << column;
      }
    }
  }
}

TEST_P(Programs, SharedAddressesWrapIn32Bits) {
  const auto run = [&](const std::string& access, std::uint32_t first) {
    kernel_runner runner({".version 8.6\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 data) {\n"
                          ".shared .align 4 .b32 box[32];\n.reg .b32 %r<4>;\n.reg .b64 %rd<3>;\n"
                          "ld.param.u64 %rd1, [data];\nmov.u32 %r1, 41;\nst.shared.u32 [box+8], %r1;\n"
                          "ld.global.u32 %r2, [%rd1];\ncvt.u64.u32 %rd2, %r2;\n" +
                          access + "\nst.global.u32 [%rd1], %r3;\nret;\n}\n"},
                         GetParam());
    auto* const data = runner.upload(std::vector<std::uint32_t>{first});
    const auto stopped = runner.launch("k", {{1}, {1}}, data);
    return stopped ? stopped->message() : std::to_string(*data);
  };
  const auto minus = [](std::uint32_t n) { return ~n + 1; };
  EXPECT_EQ(run("ld.shared.u32 %r3, [%r2+64];", minus(56)), "41");
  EXPECT_EQ(run("ld.shared.u32 %r3, [%rd2+64];", minus(56)), "41");
  EXPECT_EQ(run("ld.shared.u32 %r3, [%r2+-64];", 72), "41");
  EXPECT_EQ(run("ld.shared.u32 %r3, [%r2+2147483640];", 0x80000010), "41");
  EXPECT_EQ(run("ld.shared.u32 %r3, [%r2+-2147483640];", 0x80000000), "41");
  EXPECT_EQ(run("atom.shared.add.u32 %r3, [%r2+64], 1;", minus(56)), "41");
  // Native code causes a page fault instead of this message; tests/device/ptx_test.cpp tests the page fault.
  if (GetParam() != engine_kind::interpreter) return;
  EXPECT_NE(
      run("ld.shared.u32 %r3, [%r2+64];", minus(68)).find("(shared memory, offset -4, where the block has 128 bytes)"),
      std::string::npos);
}

// Each block waits for the block after it. All blocks run in one CPU thread.
TEST_P(Programs, BlocksThatWaitForLaterOnes) {
  kernel_runner runner({waiting_blocks}, GetParam());
  constexpr unsigned blocks = 70;
  auto* const flags = runner.upload(std::vector<unsigned>(blocks));
  EXPECT_RUNS(runner.launch("chain", {{blocks}, {32}}, flags));
  EXPECT_EQ(copy_of(flags, blocks), std::vector<unsigned>(blocks, blocks));
}

TEST_P(Programs, Stencil) {
  auto runner = load("stencil");
  constexpr int nx = 21, ny = 18, nz = 13;
  constexpr std::size_t size = std::size_t{nx} * ny * nz;
  const std::vector<float> coefficients{-2.5F, 1.6F, -0.2F, 0.025F, -0.0017F};
  std::memcpy(runner.address_of("coefficients"), coefficients.data(), 20);
  std::vector<float> now(size), before(size), velocity(size);
  for (auto* v : {&now, &before, &velocity})
    for (float& x : *v) x = std::uniform_real_distribution<float>(-1, 1)(random_);
  auto* const next = runner.upload(before);
  EXPECT_RUNS(
      runner.launch("stencil", {{2, 2}, {16, 8}}, runner.upload(now), next, runner.upload(velocity), nx, ny, nz));
  std::size_t changed = 0;
  for (int z = 0; z < nz; ++z) {
    for (int y = 0; y < ny; ++y) {
      for (int x = 0; x < nx; ++x) {
        const auto at = [&](int i, int j, int k) {
          return static_cast<double>(now[(static_cast<std::size_t>(k) * ny + j) * nx + i]);
        };
        const std::size_t i = (static_cast<std::size_t>(z) * ny + y) * nx + x;
        if (x < 4 || x >= nx - 4 || y < 4 || y >= ny - 4 || z < 4 || z >= nz - 4) {
          ASSERT_EQ(next[i], before[i]);
          continue;
        }
        double sum = 3.0 * coefficients[0] * now[i];
        for (int r = 1; r <= 4; ++r)
          sum += coefficients[r] * (at(x - r, y, z) + at(x + r, y, z) + at(x, y - r, z) + at(x, y + r, z) +
                                    at(x, y, z - r) + at(x, y, z + r));
        ASSERT_NEAR(next[i], 2.0 * now[i] - before[i] + velocity[i] * sum, 1e-4);
        ++changed;
      }
    }
  }
  EXPECT_EQ(changed, 13U * 10U * 5U);
}

TEST_P(Programs, BlockScanWithShuffles) {
  auto runner = load("scan");
  for (const unsigned threads : {32U, 64U, 256U, 1024U}) {
    const unsigned n = 3 * threads - 5;
    std::vector<int> in(n);
    for (int& x : in) x = static_cast<int>(random_() % 1000) - 500;
    auto* const out = runner.upload(std::vector<int>(n, -1));
    EXPECT_RUNS(runner.launch("block_scan", {{3}, {threads}}, runner.upload(in), out, n));
    int sum = 0;
    for (unsigned i = 0; i < n; ++i) {
      sum = (i % threads == 0 ? 0 : sum) + in[i];
      ASSERT_EQ(out[i], sum) << i << " of blocks of " << threads;
    }
  }
}

TEST_P(Programs, Histogram) {
  auto runner = load("histogram");
  constexpr unsigned n = 10007;
  std::vector<std::uint8_t> data(n);
  for (auto& x : data) x = static_cast<std::uint8_t>(random_() & random_());
  auto* const bins = runner.upload(std::vector<unsigned>(256, 0));
  EXPECT_RUNS(runner.launch("histogram", {{5}, {96}}, runner.upload(data), bins, n));
  for (unsigned b = 0; b < 256; ++b) ASSERT_EQ(bins[b], static_cast<unsigned>(std::count(data.begin(), data.end(), b)));
}

TEST_P(Programs, BitonicSort) {
  auto runner = load("bitonic");
  for (const unsigned threads : {1U, 2U, 128U, 512U}) {
    std::vector<int> keys(2 * threads);
    for (int& x : keys) x = static_cast<int>(random_());
    auto* const data = runner.upload(keys);
    EXPECT_RUNS(runner.launch("bitonic", {{2}, {threads}, threads * 4}, data));
    for (unsigned b = 0; b < 2; ++b) std::sort(keys.begin() + b * threads, keys.begin() + (b + 1) * threads);
    ASSERT_EQ(copy_of(data, keys.size()), keys);
  }
}

TEST_P(Programs, CooperativeGroups) {
  auto runner = load("groups");
  constexpr unsigned n = 5000;
  std::vector<float> data(n);
  std::iota(data.begin(), data.end(), 1.0F);
  auto* const sum = runner.upload(std::vector<float>(1, 0));
  EXPECT_RUNS(runner.launch("group_sum", {{3}, {128}}, runner.upload(data), sum, n));
  EXPECT_EQ(*sum, 12502500.0F);

  std::vector<int> v(64);
  for (int& x : v) x = static_cast<int>(random_() % 9);
  auto* const out = runner.upload(std::vector<int>(64, -1));
  EXPECT_RUNS(runner.launch("group_int", {{1}, {64}}, runner.upload(v), out));
  for (int i = 0; i < 64; ++i) {
    const int tile = i / 8 * 8, warp = i / 32 * 32;
    int expected = 0, largest = v[tile], odd = 0, odd_before = 0, same = 0, ballot = 0, match = 0;
    bool three = false;
    for (int j = tile; j < tile + 8; ++j) {
      expected += v[j];
      largest = std::max(largest, v[j]);
      three |= v[j] == 3;
      ballot |= (v[j] & 1) << (j - tile);
      match |= (v[j] == v[i]) << (j - tile);
    }
    for (int j = warp; j < warp + 32; ++j) {
      odd += v[j] & 1;
      odd_before += j < i ? v[j] & 1 : 0;
      same += v[j] % 3 == v[i] % 3;
    }
    expected += largest;
    if (v[i] & 1) expected += odd * 1000 + odd_before + odd_before + 1;
    expected += same * 100000 + three + 2 + ballot + match;
    ASSERT_EQ(out[i], expected) << i;
  }
}

TEST_P(Programs, GridSync) {
  auto runner = load("groups");
  constexpr unsigned n = 4 * 64;
  std::vector<int> expected(n);
  for (int& x : expected) x = static_cast<int>(random_() % 10);
  auto* const data = runner.upload(expected);
  // A cooperative launch. grid.sync counts in word 1 of the grid's workspace.
  EXPECT_RUNS(runner.launch("grid_stages", {{4}, {64}, 0, true}, data, n, 5));
  for (int r = 0; r < 5; ++r)
    for (unsigned i = n; i-- > 1;) expected[i] += expected[i - 1];
  EXPECT_EQ(copy_of(data, n), expected);
}

TEST_P(Programs, RecursionAndIndirectCalls) {
  auto runner = load("calls");
  auto* const out = runner.upload(std::vector<unsigned>(32, 0));
  EXPECT_RUNS(runner.launch("recursion", {{1}, {32}}, out));
  const auto fibonacci = [](unsigned n) {
    unsigned a = 0, b = 1;
    for (; n > 0; --n) b = std::exchange(a, b) + b;
    return a;
  };
  for (unsigned t = 0; t < 32; ++t) ASSERT_EQ(out[t], fibonacci(t % 20)) << t;

  auto* const results = runner.upload(std::vector<int>(32, 0));
  EXPECT_RUNS(runner.launch("indirect", {{1}, {32}}, results, 1));
  for (int t = 0; t < 32; ++t) ASSERT_EQ(results[t], (t % 2 ? t * t : -7) + ((t + 1) % 2 ? t * 5 : t + 5)) << t;
  EXPECT_EQ(runner.blocks_on_heap(), 0U);
}

TEST_P(Programs, StructuresAndLocalArrays) {
  auto runner = load("calls");
  struct triple {
    double x;
    int y;
    char z;
  };
  auto* const out = runner.upload(std::vector<triple>(40));
  EXPECT_RUNS(runner.launch("structures", {{1}, {40}}, triple{1.5, 10, 'a'}, out));
  for (int t = 0; t < 40; ++t) {
    ASSERT_EQ(out[t].x, 1.5 * t);
    ASSERT_EQ(out[t].y, 10 + t);
    ASSERT_EQ(out[t].z, static_cast<char>('a' ^ t));
  }
  std::vector<int> index(64);
  for (int& x : index) x = static_cast<int>(random_() % 1000);
  auto* const sums = runner.upload(std::vector<int>(64, 0));
  EXPECT_RUNS(runner.launch("local_arrays", {{1}, {64}}, runner.upload(index), sums));
  for (int t = 0; t < 64; ++t) {
    int squares[64], sum = 0;
    for (int i = 0; i < 64; ++i) squares[i] = i * i + t;
    squares[index[t] % 64] = -1;
    for (int i = 0; i < 64; ++i) sum += squares[(i * index[t]) % 64];
    ASSERT_EQ(sums[t], sum) << t;
  }
}

TEST_P(Programs, PrintfAndHeap) {
  auto runner = load("calls");
  const std::string name = "name";
  auto* const text = runner.upload(std::vector<char>(name.c_str(), name.c_str() + name.size() + 1));
  EXPECT_RUNS(runner.launch("printing", {{1}, {32}}, text, 2.25));
  EXPECT_EQ(runner.printed(), "name 0 0  2.25 a 123456789abc (nil)%\nname -16 16 18.25 b 123456789acc (nil)%\n");
  auto* const kept = runner.upload(std::vector<std::int64_t>(32, 0));
  EXPECT_RUNS(runner.launch("heap", {{1}, {32}}, kept, 10));
  for (int t = 0; t < 32; ++t) ASSERT_EQ(kept[t], 45 * t);
  EXPECT_EQ(runner.blocks_on_heap(), 0U);
}

TEST_P(Programs, FaultsNameKernelBlockThreadAndPlace) {
  auto runner = load("calls");
  const auto asserted = runner.launch("asserting", {{1}, {32}}, 7);
  ASSERT_TRUE(asserted.has_value());
  EXPECT_EQ(asserted->why, trap::reason::assertion);
  EXPECT_NE(asserted->message().find("thread (7, 0, 0) of block (0, 0, 0)"), std::string::npos) << asserted->message();
  EXPECT_NE(asserted->message().find("too many"), std::string::npos) << asserted->message();
  const auto trapped = runner.launch("trapping", {{3}, {32}}, 5);
  ASSERT_TRUE(trapped.has_value());
  EXPECT_EQ(trapped->why, trap::reason::trap);
  EXPECT_NE(trapped->message().find("kernel trapping: thread (5, 0, 0)"), std::string::npos) << trapped->message();
  EXPECT_NE(trapped->message().find("PTX line"), std::string::npos) << trapped->message();
}

TEST_P(Programs, Atomics) {
  auto runner = load("atomics");
  constexpr int n = 96;
  std::vector<int> i(16, 0);
  i[2] = 5;
  std::vector<unsigned> u(8 + n, 0);
  u[1] = 3;
  u[2] = 9;
  u[3] = ~0U;
  std::vector<std::uint64_t> l(8, 0);
  l[1] = 1000;
  l[6] = ~0ULL;
  auto *const di = runner.upload(i), *const dh = runner.upload(std::vector<int>(2, 0)),
              *const db = runner.upload(std::vector<int>(1, 0));
  auto* const du = runner.upload(u);
  auto* const dl = runner.upload(l);
  auto* const df = runner.upload(std::vector<float>(2, 0));
  auto* const dd = runner.upload(std::vector<double>(1, 0));
  auto* const ds = runner.upload(std::vector<std::int64_t>(2, 0));
  EXPECT_RUNS(runner.launch("atomics", {{3}, {32}}, di, du, dl, df, dd, dh, db, ds));
  const int total = n * (n - 1) / 2;
  EXPECT_EQ(di[0], total);
  EXPECT_EQ(di[1], -total);
  EXPECT_EQ(di[2], 1 - n);
  EXPECT_EQ(di[3], n - 1);
  EXPECT_GT(di[5], 0);
  EXPECT_EQ(di[6], n);
  EXPECT_EQ(di[7], n);
  EXPECT_EQ(di[8], 1);
  EXPECT_EQ(du[0], static_cast<unsigned>(total));
  unsigned up = 3, down = 9;
  for (int t = 0; t < n; ++t) {
    up = up >= 17 ? 0 : up + 1;
    down = down == 0 || down > 17 ? 17 : down - 1;
  }
  EXPECT_EQ(du[1], up);
  EXPECT_EQ(du[2], down);
  EXPECT_EQ(du[3], 0U);
  EXPECT_EQ(du[4], ~0U);
  EXPECT_EQ(dl[0], static_cast<std::uint64_t>(total));
  EXPECT_EQ(dl[1], 1U);
  EXPECT_EQ(dl[2], static_cast<std::uint64_t>(n - 1));
  EXPECT_EQ(dl[5], ~0ULL);
  EXPECT_EQ(dl[6], 0U);
  EXPECT_EQ(df[0], 1.5F * n);
  EXPECT_EQ(df[1], 2.0F);
  EXPECT_EQ(dd[0], 0.5 * n);
  EXPECT_EQ(dh[0], 0x56005600);  // 96, in each of the two halves
  EXPECT_EQ(dh[1], 0x5600);
  EXPECT_EQ(db[0], 0x42c042c0);
  EXPECT_EQ(ds[0], 1 - n);
  EXPECT_EQ(ds[1], n - 1);
}

TEST_P(Programs, WaitingLoops) {
  auto runner = load("atomics");
  auto* const data = runner.upload(std::vector<int>(1, 0));
  auto* const flag = runner.upload(std::vector<int>(1, 0));
  auto* const out = runner.upload(std::vector<int>(4, 0));
  EXPECT_RUNS(runner.launch("ordered", {{4}, {32}}, data, flag, out));
  EXPECT_EQ(copy_of(out, 4), std::vector<int>(4, 42));
  EXPECT_EQ(*flag, 5);
  auto* const count = runner.upload(std::vector<int>(1, 0));
  EXPECT_RUNS(runner.launch("lock", {{3}, {64}}, count));
  EXPECT_EQ(*count, 192);
  auto* const turn = runner.upload(std::vector<int>(1, 0));
  auto* const order = runner.upload(std::vector<int>(40, -1));
  EXPECT_RUNS(runner.launch("spin", {{1}, {40}}, turn, order, 40));
  for (int t = 0; t < 40; ++t) ASSERT_EQ(order[t], 39 - t);
}

INSTANTIATE_FOR_ENGINES_AND_PARTS(Programs);

}  // namespace
}  // namespace hpe::ptx::test
