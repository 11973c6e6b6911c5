// A meeting is an instruction that lanes of a warp execute together: a shuffle, vote, match or reduction. Where
// possible, native code executes meetings without leaving its lanes. Random kernels with shuffles, votes, matches and
// reductions, with masks, clamps, segments, divergence, partial warps and ended lanes, return the same as in the
// interpreter.

#include <array>
#include <numeric>

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

class warp_generator {
 public:
  explicit warp_generator(unsigned seed) : random_(seed) {}

  std::string text() {
    for (unsigned n = 0; n < values; ++n)
      body_ += fmt::format("mad.lo.u32 %v{}, %r1, {}, {};\n", n, below(1000) * 2 + 1, below(1000));
    // These lanes end before the other lanes meet. Masks may name ended lanes.
    if (below(3) == 0) {
      body_ += fmt::format("rem.u32 %r6, %r1, {};\nsetp.eq.u32 %p1, %r6, {};\n@%p1 {};\n", 7 + below(20), below(7),
                           below(2) == 0 ? "exit" : "bra store");
      has_ended_lanes_ = true;
    }
    statements(6, 2);
    std::string all = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>, %q<64>;
  .reg .b32 %r<8>, %v<8>, %mask, %own, %tile, %lane, %warp, %n<64>;
  .reg .b64 %rd<8>;
  .shared .align 4 .b32 sums[4];
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %tid.y;
  mad.lo.u32 %r1, %r4, %r2, %r3;
  mov.u32 %lane, %laneid;
  shr.u32 %warp, %r1, 5;
  mov.u32 %mask, -1;
  and.b32 %r5, %lane, 24;
  mov.u32 %tile, 255;
  shl.b32 %tile, %tile, %r5;
)";
    all += body_;
    all += "store:\nld.param.u64 %rd1, [out];\nmul.wide.u32 %rd2, %r1, 32;\nadd.u64 %rd1, %rd1, %rd2;\n";
    for (unsigned n = 0; n < values; ++n) all += fmt::format("st.global.u32 [%rd1+{}], %v{};\n", 4 * n, n);
    return all + "ret;\n}\n";
  }

 private:
  static constexpr unsigned values = 8;

  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::string value() { return fmt::format("%v{}", below(values)); }
  unsigned label() { return labels_++; }

  void statements(unsigned count, unsigned depth) {
    for (unsigned n = 0; n < count; ++n) {
      switch (depth == 0 ? 0 : below(8)) {
        case 0:
        case 1:
        case 2:
        case 3: meeting("%mask"); break;
        case 4: branch(depth); break;
        case 5: loop(depth); break;
        case 6:  // the lanes of a tile of eight meet; each tile has all its lanes or none
          meeting(has_tiles_ ? "%tile" : "%mask");
          break;
        default:
          if (whole_ && !has_ended_lanes_) body_ += "bar.sync 0;\n";
          body_ += fmt::format("xor.b32 {0}, {0}, {1};\nadd.u32 {1}, {1}, {0};\n", value(), value());
          break;
      }
    }
  }

  // Lanes diverge by a bit of the lane number, or warps by a bit of the warp number, and then converge.
  void branch(unsigned depth) {
    const unsigned here = label(), bit = below(5);
    const bool by_lane = below(3) != 0;
    body_ += fmt::format("bfe.u32 %r6, {}, {}, 1;\nsetp.ne.u32 %q{}, %r6, 0;\n", by_lane ? "%lane" : "%warp",
                         by_lane ? bit : 0, here);
    const std::array<unsigned, 5> of_bit{0xaaaaaaaa, 0xcccccccc, 0xf0f0f0f0, 0xff00ff00, 0xffff0000};
    const bool before = std::exchange(whole_, false), had_tiles = has_tiles_;
    has_tiles_ &= !by_lane || bit >= 3;
    const std::string saved = fmt::format("%n{}", here);
    body_ += fmt::format("mov.u32 {}, %mask;\n@%q{} bra then{};\n", saved, here, here);
    if (by_lane) body_ += fmt::format("and.b32 %mask, {}, {};\n", saved, ~of_bit[bit]);
    statements(1 + below(2), depth - 1);
    body_ += fmt::format("bra join{0};\nthen{0}:\n", here);
    if (by_lane) body_ += fmt::format("and.b32 %mask, {}, {};\n", saved, of_bit[bit]);
    if (below(2) == 0) statements(1 + below(2), depth - 1);
    body_ += fmt::format("join{0}:\nmov.u32 %mask, %n{0};\n", here);
    whole_ = before;
    has_tiles_ = had_tiles;
  }

  void loop(unsigned depth) {
    const unsigned here = label();
    const bool before = std::exchange(whole_, false);
    body_ += fmt::format("mov.u32 %n{0}, {1};\nloop{0}:\n", here, 1 + below(4));
    statements(1 + below(2), depth - 1);
    body_ += fmt::format("sub.u32 %n{0}, %n{0}, 1;\nsetp.ne.u32 %q{0}, %n{0}, 0;\n@%q{0} bra loop{0};\n", here);
    whole_ = before;
  }

  std::string amount() {
    if (below(2) == 0) return std::to_string(below(40));
    if (below(2) == 0) return value();
    body_ += fmt::format("and.b32 %r7, %mask, 7;\nadd.u32 %r7, %r7, {};\n", below(30));  // the same in all lanes
    return "%r7";
  }

  std::string clamp(bool is_up) {
    const unsigned segment = std::array{0U, 16U, 24U, 28U, 30U}[below(5)] << 8;
    switch (below(3)) {
      case 0: return value();
      case 1: return std::to_string(segment | below(32));
      default: return std::to_string(segment | (is_up ? 0 : 31));
    }
  }

  void meeting(const std::string& mask) {
    const std::string d = value(), a = value();
    // The mask is an immediate in some cases in which it is known to be full.
    const std::string named = mask == "%mask" && whole_ && below(2) == 0 ? "-1" : mask;
    switch (below(9)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const char* const mode = std::array{"up", "down", "bfly", "idx"}[below(4)];
        const std::string by = amount();
        const std::string c = clamp(mode[0] == 'u');
        if (below(2) == 0) {
          body_ += fmt::format("shfl.sync.{}.b32 {}, {}, {}, {}, {};\n", mode, d, a, by, c, named);
        } else {
          body_ += fmt::format("shfl.sync.{}.b32 {}|%p2, {}, {}, {}, {};\n@%p2 add.u32 {}, {}, 77;\n", mode, d, a, by,
                               c, named, value(), a);
        }
        break;
      }
      case 4: {
        body_ += fmt::format("setp.gt.u32 %p1, {}, {};\n", a, value());
        const char* const mode = std::array{"all", "any", "uni"}[below(3)];
        body_ += fmt::format("vote.sync.{}.pred %p2, {}%p1, {};\n@%p2 xor.b32 {}, {}, 85;\n", mode,
                             below(2) == 0 ? "!" : "", named, d, a);
        break;
      }
      case 5:
        body_ += fmt::format("setp.gt.u32 %p1, {}, {};\nvote.sync.ballot.b32 {}, %p1, {};\n", a, value(), d, named);
        break;
      case 6:
        body_ += fmt::format("and.b32 %r7, {}, {};\n", a, below(8));
        if (below(2) == 0) {
          body_ += fmt::format("match.any.sync.b32 {}, %r7, {};\n", d, named);
        } else if (below(2) == 0) {
          body_ += fmt::format("mul.wide.u32 %rd3, %r7, %r7;\nmatch.all.sync.b64 {}|%p2, %rd3, {};\n", d, named);
          body_ += fmt::format("@%p2 add.u32 {0}, {0}, 3;\n", value());
        } else {
          body_ += fmt::format("mul.wide.u32 %rd3, %r7, 65537;\nmatch.any.sync.b64 {}, %rd3, {};\n", d, named);
        }
        break;
      case 7: {
        const std::array operations{"add.u32", "min.u32", "max.u32", "min.s32",
                                    "max.s32", "and.b32", "or.b32",  "xor.b32"};
        body_ += fmt::format("redux.sync.{} {}, {}, {};\n", operations[below(8)], d, a, named);
        break;
      }
      default:
        if (below(2) == 0) {
          body_ += fmt::format("bar.warp.sync {};\n", named);
        } else {
          body_ += fmt::format("elect.sync {}|%p2, {};\n@%p2 add.u32 {}, {}, 9;\n", d, named, value(), a);
        }
        break;
    }
    body_ += fmt::format("mad.lo.u32 {0}, {0}, 13, {1};\n", value(), d);
  }

  std::mt19937 random_;
  std::string body_;
  unsigned labels_ = 0;
  bool whole_ = true;      // all lanes of the warp are together
  bool has_tiles_ = true;  // in each tile of eight lanes, either all lanes run this code or none
  bool has_ended_lanes_ = false;
};

// Kernels whose native code runs in lanes of a whole warp; some blocks have a shape for which native code does not run
// in lanes of a whole warp.
TEST(WarpLanes, RandomKernelsGiveWhatTheInterpreterGives) {
  if (!has_compiler) GTEST_SKIP() << "built without LLVM: no native code";
  for (unsigned seed = 0; seed < 16; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::string text = warp_generator(seed).text();
    kernel_runner native({text}, engine_kind::compiler), interpreted({text}, engine_kind::interpreter);
    for (const dimensions block : {dimensions{64}, dimensions{32, 2}, dimensions{seed % 2 == 0 ? 40U : 72U}}) {
      const std::vector<std::uint32_t> zeros(block.count() * 8);
      auto *const got = native.upload(zeros), *const wanted = interpreted.upload(zeros);
      EXPECT_RUNS(native.launch("k", {{2}, block}, got));
      EXPECT_RUNS(interpreted.launch("k", {{2}, block}, wanted));
      for (std::size_t n = 0; n < zeros.size(); ++n)
        ASSERT_EQ(got[n], wanted[n]) << "value " << n % 8 << " of thread " << n / 8 << " in\n" << text;
    }
  }
}

using Warps = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

// Compares each mode with its definition in the PTX ISA, for all distances and widths.
TEST_P(Warps, ShufflesInSegments) {
  std::string body;
  unsigned count = 0;
  std::vector<std::array<unsigned, 3>> cases;  // mode, distance, width
  const std::array modes{"up", "down", "bfly", "idx"};
  for (unsigned mode = 0; mode < 4; ++mode)
    for (const unsigned width : {1U, 4U, 16U, 32U})
      for (const unsigned by : {0U, 1U, 3U, 15U, 31U}) {
        const unsigned c = (32 - width) << 8 | (mode == 0 ? 0 : 31);
        body += fmt::format("shfl.sync.{}.b32 %r2, %r1, {}, {}, -1;\nst.global.u32 [%rd1+{}], %r2;\n", modes[mode], by,
                            c, 128 * count++);
        cases.push_back({mode, by, width});
      }
  kernel_runner runner({".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
                        ".reg .b32 %r<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n"
                        "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\n" +
                        body + "ret;\n}\n"},
                       GetParam());
  auto* const out = runner.upload(std::vector<unsigned>(32 * cases.size()));
  EXPECT_RUNS(runner.launch("k", {{1}, {32}}, out));
  for (std::size_t n = 0; n < cases.size(); ++n) {
    const auto [mode, by, width] = cases[n];
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned first = lane / width * width, last = first + width - 1;
      unsigned from = lane;
      if (mode == 0 && lane >= first + by) from = lane - by;
      if (mode == 1 && lane + by <= last) from = lane + by;
      if (mode == 2 && (lane ^ by) <= last) from = lane ^ by;
      if (mode == 3) from = first + by % width;
      ASSERT_EQ(out[32 * n + lane], from) << modes[mode] << " by " << by << " in " << width << ", lane " << lane;
    }
  }
}

// Lanes only meet lanes with the same mask, even if all lanes that they name have arrived.
TEST_P(Warps, DoNotMeetIfTheirMasksDiffer) {
  const auto gives = [&](const std::vector<unsigned>& wanted, const std::string& masks) {
    kernel_runner runner(
        {".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
         ".reg .pred %p<3>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %laneid;\n"
         "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\nsetp.eq.u32 %p1, %r1, 1;\nsetp.gt.u32 %p2, %r1, 1;\n" +
         masks + "st.global.u32 [%rd1], %r3;\nret;\n}\n"},
        GetParam());
    auto* const out = runner.upload(std::vector<unsigned>(32));
    EXPECT_RUNS(runner.launch("k", {{1}, {32}}, out));
    EXPECT_EQ(std::vector<unsigned>(out, out + 32), wanted);
  };
  std::vector<unsigned> own(32);
  std::iota(own.begin(), own.end(), 0);
  // Lane 0 names lanes 0 and 1. Lane 1 names only itself, so it meets no other lane and ends, and lane 0 then meets no
  // other lane.
  gives(own, "mov.u32 %r2, 3;\n@%p1 mov.u32 %r2, 2;\n@%p2 mov.u32 %r2, -4;\nshfl.sync.idx.b32 %r3, %r1, 1, 31, %r2;\n");
  // All lanes from 2 on also name lane 0, which meets lane 1 and ends.
  own[1] = 0;
  gives(own, "mov.u32 %r2, 3;\n@%p2 mov.u32 %r2, -3;\nshfl.sync.idx.b32 %r3, %r1, 0, 31, %r2;\n");
}

// The masks must be the same even in the bits of ended lanes.
TEST_P(Warps, DoNotMeetIfTheirMasksDifferInLanesThatHaveEnded) {
  kernel_runner runner(
      {".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) {\n"
       ".reg .pred %p<3>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %laneid;\n"
       "setp.gt.u32 %p2, %r1, 1;\n@%p2 ret;\nsetp.eq.u32 %p1, %r1, 1;\nmov.u32 %r2, 0x80000003;\n"
       "@%p1 mov.u32 %r2, 3;\nshfl.sync.bfly.b32 %r3, %r1, 1, 31, %r2;\nst.global.u32 [%rd1], %r3;\nret;\n}\n"},
      GetParam());
  auto* const out = runner.upload(std::vector<unsigned>(32));
  EXPECT_TRUE(runner.launch("k", {{1}, {32}}, out));
}

// A warp waits without atomic operations for a value that another warp writes, so its native code must return from time
// to time to let the other warp run.
TEST_P(Warps, WaitForAnotherWarpAtTheirOwnBarrier) {
  kernel_runner runner({R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b32 flag[1];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra start;
  st.shared.u32 [flag], %r2;
start:
  bar.sync 0;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra writer;
again:
  bar.warp.sync -1;
  ld.shared.u32 %r3, [flag];
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra again;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r3;
  ret;
writer:
  mov.u32 %r4, 5;
  st.shared.u32 [flag], %r4;
  ret;
})"},
                       GetParam());
  runner.allow_races();
  auto* const out = runner.upload(std::vector<unsigned>(32));
  EXPECT_RUNS(runner.launch("k", {{1}, {64}}, out));
  for (unsigned n = 0; n < 32; ++n) EXPECT_EQ(out[n], 5) << n;
}

// The message must name the thread, although native code runs the thread's warp as a whole and has executed meetings of
// the warp before the error.
TEST_P(Warps, TellWhichThreadTouchedAWrongAddress) {
  kernel_runner runner({R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;
  shfl.sync.bfly.b32 %r3, %r2, 2, 31, -1;
  setp.eq.u32 %p1, %r3, 40;
  selp.u32 %r4, 1, 0, %p1;
  cvt.u64.u32 %rd2, %r4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r3;
  ret;
})"},
                       GetParam());
  const auto stopped = runner.launch("k", {{1}, {64}}, runner.upload(std::vector<unsigned>(2)));
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->why, trap::reason::misaligned);
  EXPECT_EQ(stopped->thread.x, 43);
}

INSTANTIATE_FOR_ENGINES_AND_HANDOVER(Warps);

}  // namespace
}  // namespace hpe::ptx::test
