// Warps, CUB, halves, matrices, mathematics, textures, asynchronous copies and faults, in programs that nvcc compiled.

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <numeric>

#include "runtime/ptx/execution/textures/texture.h"
#include "runtime/ptx/program/float_format.h"
#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

using WarpPrograms = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

TEST_P(WarpPrograms, ShufflesVotesAndDivergence) {
  auto runner = load("warps");
  constexpr int n = 64;
  std::vector<int> v(n);
  for (int& x : v) x = static_cast<int>(random_() % 50);
  auto* const out = runner.upload(std::vector<int>(n, -1));
  EXPECT_RUNS(runner.launch("warps", {{1}, {n}}, runner.upload(v), out));
  const auto total = [&](auto f, int from, int to) {
    int sum = 0;
    for (int i = from; i < to; ++i) sum += f(v[i]) ? 1 : 0;
    return sum;
  };
  for (int t = 0; t < n; ++t) {
    const int w = t / 32 * 32, lane = t % 32;
    const auto at = [&](int l) { return v[w + l]; };
    unsigned r = at(3) + 3 * at(lane ^ 5) + 5 * (lane % 8 + 2 < 8 ? at(lane + 2) : at(lane)) +
                 7 * (lane % 16 >= 1 ? at(lane - 1) : at(lane));
    unsigned ballot = 0, match = 0, exclusive = 0, sum = 0;
    int largest = at(0), smallest = at(0);
    for (int l = 0; l < 32; ++l) {
      ballot |= (at(l) > 0 ? 1U : 0U) << l;
      match += at(l) % 4 == at(lane) % 4;
      exclusive ^= static_cast<unsigned>(at(l));
      sum += static_cast<unsigned>(at(l));
      largest = std::max(largest, at(l));
      smallest = std::min(smallest, at(l));
    }
    r += ballot + (total([](int x) { return x == 1; }, w, w + 32) > 0) +
         2 * (total([](int x) { return x == 0; }, w, w + 32) == 0) + match;
    r += 0xffffffffU;
    r += 1;
    r ^= static_cast<unsigned>((static_cast<std::uint64_t>(at(lane ^ 1)) << 20) >> 18);
    r += static_cast<unsigned>(static_cast<int>((lane < 31 ? at(lane + 1) : at(lane)) * 0.5));
    r += sum + static_cast<unsigned>(largest) + exclusive + static_cast<unsigned>(smallest);
    if (lane < 10) {
      r += static_cast<unsigned>(lane + 1 < 10 ? at(lane + 1) : at(lane));
      // the value of the lane after the mask is undefined; __activemask names the lanes that run this code
      if (lane == 9) continue;
      r ^= 0x3ff;
    } else {
      r -= static_cast<unsigned>(at(lane ^ 1));
    }
    r += static_cast<unsigned>(total([](int x) { return (x & 1) != 0; }, 0, n)) + 0 + 1;
    ASSERT_EQ(static_cast<unsigned>(out[t]), r) << t;
  }
  auto* const named = runner.upload(std::vector<int>(128, -999));
  EXPECT_RUNS(runner.launch("named_barriers", {{1}, {128}}, named));
  for (int t = 0; t < 128; ++t) ASSERT_EQ(named[t], t < 64 ? 63 - t : -t);
  EXPECT_RUNS(runner.launch("leaves_early", {{1}, {100}}, named));
}

// Returns the finite values of an 8-bit format without sign, by code, computed from the definition of the format.
std::vector<double> values_of(int mantissa_bits, int bias, int codes) {
  std::vector<double> values;
  for (int code = 0; code < codes; ++code) {
    const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
    const int digits = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    values.push_back(std::ldexp(digits, std::max(exponent, 1) - bias - mantissa_bits));
  }
  return values;
}

unsigned nearest_code(const std::vector<double>& values, float x) {
  if (std::isnan(x)) return 0x7f;
  const double size = std::min<double>(std::fabs(x), values.back());
  std::size_t best = 0;
  for (std::size_t c = 1; c < values.size(); ++c) {
    const double before = std::fabs(values[best] - size), now = std::fabs(values[c] - size);
    if (now < before || (now == before && c % 2 == 0)) best = c;
  }
  return static_cast<unsigned>(best) | (std::signbit(x) ? 0x80U : 0U);
}

TEST_P(WarpPrograms, ConversionsOfEightBitFloats) {
  kernel_runner runner({R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
  .reg .b16 %h<6>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd1, %rd1, %rd3;
  mul.wide.u32 %rd3, %r1, 16;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.f32 %f1, [%rd1];
  mov.f32 %f2, 0f3F800000;
  cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;
  cvt.rn.satfinite.e5m2x2.f32 %h2, %f1, %f2;
  cvt.rn.f16x2.e4m3x2 %r2, %h1;
  cvt.rn.f16x2.e5m2x2 %r3, %h2;
  cvt.rn.satfinite.e4m3x2.f16x2 %h3, %r2;
  cvt.rn.satfinite.relu.e5m2x2.f16x2 %h4, %r3;
  mov.b32 %r4, {%h1, %h2};
  mov.b32 %r5, {%h3, %h4};
  st.global.v4.u32 [%rd2], {%r2, %r3, %r4, %r5};
  ret;
})"},
                       GetParam());
  const std::vector<double> of_e4m3 = values_of(3, 7, 127), of_e5m2 = values_of(2, 15, 124);
  std::vector<float> in{0.0F, 1e-30F, 500.0F, 1e30F, HUGE_VALF, NAN};
  for (const auto* values : {&of_e4m3, &of_e5m2})
    for (std::size_t c = 1; c < values->size(); ++c) {
      const auto middle = static_cast<float>(((*values)[c - 1] + (*values)[c]) / 2);
      for (const float x :
           {static_cast<float>((*values)[c]), middle, std::nextafter(middle, 0.0F), std::nextafter(middle, HUGE_VALF)})
        in.push_back(x);
    }
  for (std::size_t n = in.size(); n-- > 0;)
    if (!std::isnan(in[n])) in.push_back(-in[n]);
  const auto threads = static_cast<std::uint32_t>(in.size());
  struct results {
    std::uint32_t half_of_e4m3, half_of_e5m2, codes, again;
  };
  auto* const out = runner.upload(std::vector<results>(threads));
  EXPECT_RUNS(runner.launch("k", {{1}, {threads}}, runner.upload(in), out));
  for (std::size_t n = 0; n < in.size(); ++n) {
    const unsigned e4m3 = nearest_code(of_e4m3, in[n]), e5m2 = nearest_code(of_e5m2, in[n]);
    ASSERT_EQ(out[n].codes, (e5m2 << 8 | 0x3c) << 16 | (e4m3 << 8 | 0x38)) << in[n];
    const unsigned relu = std::signbit(in[n]) && !std::isnan(in[n]) ? 0 : e5m2;
    ASSERT_EQ(out[n].again, (relu << 8 | 0x3c) << 16 | (e4m3 << 8 | 0x38)) << in[n];
    ASSERT_EQ(out[n].half_of_e5m2, (std::isnan(in[n]) ? 0x7fffU : e5m2 << 8) << 16 | 0x3c00) << in[n];
    if (std::isnan(in[n])) continue;
    const double exact = std::copysign(of_e4m3[e4m3 & 0x7f], in[n]);
    ASSERT_EQ(decode(out[n].half_of_e4m3 >> 16, half_format), exact) << in[n];
  }
}

TEST_P(WarpPrograms, CubInABlock) {
  auto runner = load("cub_kernels");
  std::vector<int> keys(1024);
  for (int& k : keys) k = static_cast<int>(random_());
  auto* const data = runner.upload(keys);
  EXPECT_RUNS(runner.launch("block_sort", {{2}, {128}}, data));
  std::sort(keys.begin(), keys.begin() + 512);
  std::sort(keys.begin() + 512, keys.end());
  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(data[i], keys[i]) << i;
  std::vector<int> in(256);
  for (int& x : in) x = static_cast<int>(random_() % 100);
  auto* const out = runner.upload(std::vector<int>(256, -1));
  auto* const totals = runner.upload(std::vector<int>(2, -1));
  EXPECT_RUNS(runner.launch("block_sums", {{2}, {128}}, runner.upload(in), out, totals));
  int sum = 0;
  for (int i = 0; i < 256; ++i) {
    if (i % 128 == 0) sum = 0;
    ASSERT_EQ(out[i], sum) << i;
    sum += in[i];
    if (i % 128 == 127) {
      ASSERT_EQ(totals[i / 128], sum);
    }
  }
}

TEST_P(WarpPrograms, MatrixProducts) {
  auto runner = load("halves");
  // Small integers are exact in halves.
  const auto half = [](int x) {
    if (x == 0) return std::uint16_t{0};
    const int magnitude = std::abs(x), top = static_cast<int>(std::bit_width(static_cast<unsigned>(magnitude))) - 1;
    return static_cast<std::uint16_t>((x < 0 ? 0x8000 : 0) | (15 + top) << 10 | ((magnitude << (10 - top)) & 0x3ff));
  };
  std::vector<int> a(512), b(256);
  for (int& x : a) x = static_cast<int>(random_() % 7) - 3;
  for (int& x : b) x = static_cast<int>(random_() % 7) - 3;
  std::vector<std::uint16_t> ha(512), hb(256);
  std::transform(a.begin(), a.end(), ha.begin(), half);
  std::transform(b.begin(), b.end(), hb.begin(), half);
  auto *const da = runner.upload(ha), *const db = runner.upload(hb);
  auto* const c = runner.upload(std::vector<float>(256, NAN));
  EXPECT_RUNS(runner.launch("tensor", {{1}, {32}}, da, db, c));
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      int sum = 1;
      for (int k = 0; k < 16; ++k) sum += a[i * 16 + k] * b[j * 16 + k];
      ASSERT_EQ(c[i * 16 + j], static_cast<float>(sum)) << i << " " << j;
    }
  auto* const h = runner.upload(std::vector<std::uint16_t>(256, 0xffff));
  EXPECT_RUNS(runner.launch("tensor_half", {{1}, {32}}, da, db, h));
  for (int i = 0; i < 32; ++i)
    for (int j = 0; j < 8; ++j) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) sum += a[k * 32 + i] * b[k * 8 + j];
      ASSERT_EQ(h[j * 32 + i], half(sum)) << i << " " << j;
    }
  std::vector<std::int8_t> ia(256), ib(256);
  for (auto& x : ia) x = static_cast<std::int8_t>(random_());
  for (auto& x : ib) x = static_cast<std::int8_t>(random_());
  auto* const whole = runner.upload(std::vector<int>(256, -1));
  EXPECT_RUNS(runner.launch("tensor_int", {{1}, {32}}, runner.upload(ia), runner.upload(ib), whole));
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      int sum = 5;
      for (int k = 0; k < 16; ++k) sum += ia[i * 16 + k] * ib[j * 16 + k];
      ASSERT_EQ(whole[i * 16 + j], sum);
    }
}

TEST_P(WarpPrograms, LockstepForCodeWithoutWarpBarriers) {
  auto runner = load("warps", warp_order::lockstep);
  constexpr int blocks = 3;
  std::vector<int> in(64 * blocks);
  for (int& x : in) x = static_cast<int>(random_() % 1000);
  auto* const sums = runner.upload(std::vector<int>(blocks, -1));
  EXPECT_RUNS(runner.launch("lockstep_reduce", {{blocks}, {64}}, runner.upload(in), sums));
  for (int b = 0; b < blocks; ++b)
    EXPECT_EQ(sums[b], std::accumulate(in.begin() + 64 * b, in.begin() + 64 * (b + 1), 0));
  auto* const scanned = runner.upload(std::vector<int>(64, -1));
  EXPECT_RUNS(runner.launch("lockstep_scan", {{1}, {64}}, scanned));
  for (int t = 0; t < 64; ++t) EXPECT_EQ(scanned[t], 528 * 1000 + (t % 32 + 1) * (t % 32 + 2) / 2) << t;
  if (GetParam() == engine_kind::compiler) {
    EXPECT_TRUE(runner.is_compiled("lockstep_reduce"));
    EXPECT_TRUE(runner.is_compiled("lockstep_scan"));
  }
}

TEST_P(WarpPrograms, Mathematics) {
  auto runner = load("mathematics");
  const std::vector<double> x{0.3, 1.25, 2.5, 0.001, 7.75, 0.99, 3.14159, 0.5};
  const std::vector<float> f(x.begin(), x.end());
  auto* const y = runner.upload(std::vector<float>(40 * f.size(), NAN));
  EXPECT_RUNS(runner.launch("math32", {{1}, {32}}, runner.upload(f), y, static_cast<int>(f.size())));
  const auto near = [](double got, double want, double bound, int i, int n) {
    ASSERT_NEAR(got, want, bound * std::max(1.0, std::fabs(want))) << "function " << n << " of number " << i;
  };
  for (int i = 0; i < static_cast<int>(f.size()); ++i) {
    const double v = f[static_cast<std::size_t>(i)];
    const float* const r = y + 40 * i;
    const double want[] = {std::sin(v),  std::cos(v),      std::tan(v),
                           std::exp(v),  std::log(v),      std::pow(v, static_cast<double>(1.7F)),
                           std::sqrt(v), 1 / std::sqrt(v), std::cbrt(v),
                           std::erf(v),  std::tgamma(v)};
    for (int n = 0; n < 11; ++n) near(r[n], want[n], 3e-6, i, n);
    near(r[14], std::fmod(v, static_cast<double>(0.7F)), 1e-6, i, 14);
    near(r[16], std::floor(v), 0, i, 16);
    near(r[17], std::nearbyint(v), 0, i, 17);
    near(r[20], std::sin(v), 1e-5, i, 20);
    near(r[37], std::lgamma(v), 1e-5, i, 37);
  }
  auto* const z = runner.upload(std::vector<double>(24 * x.size(), NAN));
  EXPECT_RUNS(runner.launch("math64", {{1}, {32}}, runner.upload(x), z, static_cast<int>(x.size())));
  for (int i = 0; i < static_cast<int>(x.size()); ++i) {
    const double v = x[static_cast<std::size_t>(i)];
    const double* const r = z + 24 * i;
    const double want[] = {std::sin(v),       std::cos(v),   std::tan(v),      std::exp(v),  std::log(v),
                           std::pow(v, 1.7),  std::sqrt(v),  1 / std::sqrt(v), std::cbrt(v), std::erf(v),
                           std::fmod(v, 0.7), std::floor(v), std::nearbyint(v)};
    for (int n = 0; n < 13; ++n) near(r[n], want[n], 1e-14, i, n);
    near(r[18], std::atan(v), 1e-14, i, 18);
    near(r[23], 1 / v, 0, i, 23);
  }
}

TEST_P(WarpPrograms, TexturesAndAsynchronousCopies) {
  auto runner = load("mathematics");
  std::vector<float> values(64);
  std::iota(values.begin(), values.end(), 10.0F);
  texture line;
  line.data = runner.upload(values);
  line.width = 64;
  texture plane = line;
  plane.width = 8;
  plane.height = 8;
  plane.pitch = 32;
  plane.linear = true;
  auto* const objects = runner.upload(std::vector<texture>{line, plane, line});
  auto* const out = runner.upload(std::vector<float>(4 * 8, NAN));
  EXPECT_RUNS(runner.launch("textures", {{1}, {8}}, objects, objects + 1, objects + 2, out));
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(out[4 * i], values[static_cast<std::size_t>(i)]);
    const double column = std::clamp(i * 0.5 - 0.5, 0.0, 7.0), row = std::clamp(i * 0.25 - 0.5, 0.0, 7.0);
    ASSERT_NEAR(out[4 * i + 1], 10 + row * 8 + column, 0.05) << i;
    ASSERT_EQ(out[4 * i + 2], values[static_cast<std::size_t>(i)]);
    ASSERT_NEAR(out[4 * i + 3], 10 + std::max(i - 0.5, 0.0) * 8 + 1, 0.05) << i;
  }
  std::vector<float> in(4 * 256);
  std::iota(in.begin(), in.end(), 0.0F);
  auto* const turned = runner.upload(std::vector<float>(in.size(), NAN));
  EXPECT_RUNS(runner.launch("copies", {{2}, {128}}, runner.upload(in), turned));
  for (int t = 0; t < 256; ++t)
    for (int c = 0; c < 4; ++c)
      ASSERT_EQ(turned[4 * t + c], in[static_cast<std::size_t>(4 * (t / 128 * 128 + 127 - t % 128) + c)]);
}

void land(int, siginfo_t* info, void*) {
  land_page_fault(reinterpret_cast<std::uint64_t>(info->si_addr));
  std::signal(SIGSEGV, SIG_DFL);
}

TEST_P(WarpPrograms, AnAccessOutOfBoundsIsReportedWithItsPlace) {
  struct sigaction action {
  }, before{};
  action.sa_sigaction = land;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before);
  auto runner = load("calls");
  void* const closed = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(closed, MAP_FAILED);
  for (int again = 0; again < 3; ++again) {
    const auto stopped = runner.launch("beyond", {{3}, {32}}, closed, std::int64_t{10});
    ASSERT_TRUE(stopped.has_value());
    EXPECT_EQ(stopped->why, trap::reason::address);
    EXPECT_EQ(stopped->kernel, "beyond");
    EXPECT_EQ(stopped->address, reinterpret_cast<std::uint64_t>(closed) + 40);
    EXPECT_EQ(stopped->block.x, 1U);
    EXPECT_EQ(stopped->thread.x, 3U);
  }
  sigaction(SIGSEGV, &before, nullptr);
  ::munmap(closed, 4096);
}

// The result registers may also be operands.
TEST_P(WarpPrograms, VectorsOfAtomics) {
  kernel_runner runner(
      {".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data) {\n.reg .b32 "
       "%r<9>;\n.reg .b64 %d<9>;\nld.param.u64 %d0, [data];\nmov.f32 %r1, 0f3F800000;\nmov.f32 %r2, "
       "0f40000000;\natom.global.add.v2.f32 {%r2, %r1}, [%d0+8], {%r1, %r2};\nst.global.v2.u32 [%d0], "
       "{%r2, %r1};\nred.global.add.v4.f32 [%d0+16], {%r1, %r1, %r1, %r2};\nret;\n}\n"},
      GetParam());
  auto* const data = runner.upload(std::vector<float>{-1, -1, 10, 20, 1, 2, 3, 4});
  EXPECT_RUNS(runner.launch("k", {{1}, {1}}, data));
  EXPECT_EQ(std::vector<float>(data, data + 8), (std::vector<float>{10, 20, 11, 22, 21, 22, 23, 14}));
}

// These instructions only affect speed on a GPU.
TEST_P(WarpPrograms, CachesRegistersAndLaunches) {
  kernel_runner runner(
      {".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 data) {\n.reg .b32 %r<9>;\n.reg "
       ".b64 "
       "%d<9>;\n.reg .pred %p;\nld.param.u64 %d0, [data];\ngriddepcontrol.wait;\nsetmaxnreg.inc.sync.aligned.u32 "
       "40;\ncreatepolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d1, 1.0;\ncreatepolicy.range.global.L2::"
       "evict_last.L2::evict_first.b64 %d2, [%d0], 64, 128;\nld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.u32 "
       "%r1, "
       "[%d0], %d1;\nst.global.L1::evict_last.L2::cache_hint.u32 [%d0+4], %r1, %d2;\nred.global.add.L2::cache_hint.u32 "
       "[%d0+8], %r1, %d1;\natom.global.add.L2::cache_hint.u32 %r2, [%d0+12], %r1, "
       "%d1;\napplypriority.global.L2::evict_normal [%d0], 128;\nprefetch.global.L2::evict_last "
       "[%d0];\ncp.async.bulk.prefetch.L2.global [%d0], "
       "64;\nfence.proxy.async;\nfence.proxy.alias;\nfence.mbarrier_init.release.cluster;\nelect.sync %r3|%p, "
       "-1;\n@%p st.global.u32 [%d0+16], %r3;\ngriddepcontrol.launch_dependents;\ndiscard.global.L2 [%d0+128], "
       "128;\nret;\n}\n"},
      GetParam());
  auto* const data = runner.upload(std::vector<unsigned>{5, 0, 1, 2, 77, 0, 0, 0});
  EXPECT_RUNS(runner.launch("k", {{1}, {1}}, data));
  EXPECT_EQ(std::vector<unsigned>(data, data + 5), (std::vector<unsigned>{5, 5, 6, 7, 0}));
}

INSTANTIATE_FOR_ENGINES_AND_PARTS(WarpPrograms);

}  // namespace
}  // namespace hpe::ptx::test
