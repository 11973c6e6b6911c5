// Clusters, barriers in shared memory, and copies that signal these barriers: kernels that nvcc compiled, and a few in
// PTX. Their results are compared with expected results.

#include <fmt/core.h>

#include <numeric>

#include "runtime/base/error.h"
#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

using ClusterPrograms = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

std::vector<int> some_numbers(std::size_t count, std::mt19937& random) {
  std::vector<int> values(count);
  for (int& v : values) v = static_cast<int>(random() % 2000000) - 1000000;
  return values;
}

TEST_P(ClusterPrograms, BlocksReadEachOthersSharedMemory) {
  auto runner = load("clusters");
  EXPECT_EQ(runner.is_compiled("cluster_sum"), GetParam() == engine_kind::compiler);
  for (const bool together : {false, true}) {
    for (const unsigned size : {1U, 2U, 4U, 8U}) {
      constexpr unsigned blocks = 16, threads = 64;
      const std::vector<int> in = some_numbers(std::size_t{blocks} * threads, random_);
      auto* const out = runner.upload(std::vector<int>(in.size(), -1));
      EXPECT_RUNS(
          runner.launch("cluster_sum", {{blocks}, {threads}, 0, together, dimensions{size}}, runner.upload(in), out));
      for (unsigned b = 0; b < blocks; ++b) {
        for (unsigned t = 0; t < threads; ++t) {
          int sum = static_cast<int>(b % size) * 100000;
          for (unsigned r = 0; r < size; ++r) sum += in[(b / size * size + r) * threads + t];
          ASSERT_EQ(out[b * threads + t], sum) << "cluster of " << size << ", block " << b << ", thread " << t;
        }
      }
    }
  }
}

TEST_P(ClusterPrograms, PlacesInTheCluster) {
  auto runner = load("clusters");
  constexpr dimensions grid{4, 6, 2}, cluster{2, 3, 1};
  constexpr unsigned threads = 3;
  auto* const out = runner.upload(std::vector<unsigned>(grid.count() * threads * 8, ~0U));
  EXPECT_RUNS(runner.launch("cluster_places", {grid, {threads}, 0, false, cluster}, out));
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x)
        for (unsigned t = 0; t < threads; ++t) {
          const unsigned* const p = out + ((x + grid.x * (y + grid.y * z)) * threads + t) * 8;
          const unsigned rank = x % 2 + y % 3 * 2;
          const std::vector<unsigned> expected{rank,  6, rank * threads + t, 6 * threads, x % 2,
                                               y % 3, 2, (rank + 1) % 6};
          ASSERT_EQ(std::vector<unsigned>(p, p + 8), expected) << x << " " << y << " " << z;
        }
}

TEST_P(ClusterPrograms, HistogramOverAClusterThatTheKernelDeclares) {
  auto runner = load("clusters");
  std::vector<std::uint8_t> data(10007);
  for (std::uint8_t& d : data) d = static_cast<std::uint8_t>(random_());
  std::vector<unsigned> expected(256);
  for (const std::uint8_t d : data) ++expected[d];
  auto* const bins = runner.upload(std::vector<unsigned>(256));
  EXPECT_RUNS(runner.launch("cluster_histogram", {{4, 2}, {64}}, runner.upload(data), bins,
                            static_cast<unsigned>(data.size())));
  EXPECT_EQ(std::vector<unsigned>(bins, bins + 256), expected);
}

TEST_P(ClusterPrograms, AGridThatClustersDoNotFit) {
  auto runner = load("clusters");
  const auto stopped =
      runner.launch("cluster_places", {{5}, {1}, 0, false, dimensions{2}}, runner.upload(std::vector<unsigned>(40)));
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->why, trap::reason::illegal);
  EXPECT_NE(stopped->message().find("clusters of 2 x 1 x 1"), std::string::npos) << stopped->message();
}

TEST_P(ClusterPrograms, BarrierRounds) {
  auto runner = load("barriers");
  EXPECT_EQ(runner.is_compiled("barrier_rounds"), GetParam() == engine_kind::compiler);
  for (const unsigned threads : {1U, 31U, 96U, 128U}) {
    std::vector<int> values = some_numbers(2 * threads, random_);
    for (int& v : values) v %= 100;
    auto* const data = runner.upload(values);
    EXPECT_RUNS(runner.launch("barrier_rounds", {{2}, {threads}}, data, 7));
    for (int r = 0; r < 7; ++r) {
      const std::vector<int> before = values;
      for (unsigned b = 0; b < 2; ++b)
        for (unsigned t = 0; t < threads; ++t)
          values[b * threads + t] = before[b * threads + (t + 1) % threads] * 3 + r;
    }
    EXPECT_EQ(std::vector<int>(data, data + values.size()), values) << threads;
  }
}

// The scheduler also meets barriers out of turn after 256 rounds.
TEST_P(ClusterPrograms, ManyBarriersAfterSomeThreadsHaveEnded) {
  auto runner = load("barriers");
  auto* const out = runner.upload(std::vector<int>(64, -1));
  EXPECT_RUNS(runner.launch("rounds_of_some", {{1}, {64}}, out, 7, 600));
  for (int t = 0; t < 64; ++t) EXPECT_EQ(out[t], t < 7 ? (t + 600) % 7 : -1);
}

TEST_P(ClusterPrograms, CopiesThatABarrierCounts) {
  auto runner = load("barriers");
  const std::vector<int> in = some_numbers(512, random_);
  auto* const out = runner.upload(std::vector<int>(512, -1));
  EXPECT_RUNS(runner.launch("barrier_copy", {{2}, {64}}, runner.upload(in), out));
  for (unsigned i = 0; i < 512; ++i) ASSERT_EQ(out[i], in[i / 256 * 256 + 255 - i % 256]);
  EXPECT_RUNS(runner.launch("group_copy", {{1}, {128}}, runner.upload(in), out));
  for (unsigned i = 0; i < 128; ++i) ASSERT_EQ(out[i], in[127 - i]);
}

TEST_P(ClusterPrograms, PipelineOfTwoStages) {
  auto runner = load("barriers");
  for (const unsigned batches : {0U, 1U, 5U}) {
    const std::vector<int> in = some_numbers(std::size_t{batches} * 64, random_);
    auto* const out = runner.upload(std::vector<int>(64, -1));
    EXPECT_RUNS(runner.launch("pipeline_sum", {{1}, {64}}, runner.upload(in), out, batches));
    for (unsigned t = 0; t < 64; ++t) {
      int sum = 0;
      for (unsigned b = 0; b < batches; ++b) sum += in[b * 64 + (t + b) % 64];
      ASSERT_EQ(out[t], sum) << batches;
    }
  }
}

TEST_P(ClusterPrograms, BulkCopies) {
  auto runner = load("barriers");
  const std::vector<int> in = some_numbers(1536, random_);
  auto* const out = runner.upload(std::vector<int>(1536, -1));
  EXPECT_RUNS(runner.launch("bulk_copy", {{3}, {96}}, runner.upload(in), out));
  for (unsigned i = 0; i < 1536; ++i) ASSERT_EQ(out[i], in[i] * 2 + 1) << i;
  EXPECT_RUNS(runner.launch("ring", {{8}, {64}}, runner.upload(in), out));
  for (unsigned b = 0; b < 8; ++b)
    for (unsigned t = 0; t < 64; ++t)
      ASSERT_EQ(out[b * 64 + t], in[(b / 4 * 4 + (b + 3) % 4) * 64 + 63 - t] + 7) << b << " " << t;
  EXPECT_RUNS(runner.launch("remote", {{6}, {32}}, out));
  for (int b = 0; b < 6; ++b) ASSERT_EQ(out[b], (b ^ 1) * 1000 + 5);
}

std::string text_with(const std::string& body) {
  return ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data) {\n.shared .align 16 .b8 "
         "box[256];\n.shared .align 8 .b64 bar;\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<9>;\n.reg .b64 "
         "%rd<9>;\nld.param.u64 "
         "%rd0, [data];\nmov.u32 %r0, %tid.x;\n" +
         body + "ret;\n}\n";
}

// One thread executes all arrivals. The kernel writes the results as words at %rd0.
TEST_P(ClusterPrograms, EachOperationOfABarrier) {
  kernel_runner runner({text_with("mbarrier.init.shared.b64 [bar], 3;\n"
                                  "mbarrier.arrive.shared.b64 %rd1, [bar];\n"
                                  "mbarrier.pending_count.b64 %r1, %rd1;\nst.global.u32 [%rd0], %r1;\n"
                                  "mbarrier.arrive.noComplete.shared.b64 %rd2, [bar], 1;\n"
                                  "mbarrier.pending_count.b64 %r1, %rd2;\nst.global.u32 [%rd0+4], %r1;\n"
                                  "mbarrier.test_wait.shared.b64 %p1, [bar], %rd1;\n"
                                  "selp.u32 %r1, 1, 0, %p1;\nst.global.u32 [%rd0+8], %r1;\n"
                                  "mbarrier.arrive_drop.shared.b64 %rd3, [bar];\n"
                                  "mbarrier.test_wait.shared.b64 %p1, [bar], %rd1;\n"
                                  "selp.u32 %r1, 1, 0, %p1;\nst.global.u32 [%rd0+12], %r1;\n"
                                  // the second phase expects two arrivals
                                  "mbarrier.arrive.shared.b64 %rd4, [bar];\n"
                                  "mbarrier.pending_count.b64 %r1, %rd4;\nst.global.u32 [%rd0+16], %r1;\n"
                                  "mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 48;\n"
                                  "mbarrier.arrive.shared.b64 %rd5, [bar];\n"
                                  "mbarrier.try_wait.parity.shared.b64 %p1, [bar], 1;\n"
                                  "selp.u32 %r1, 1, 0, %p1;\nst.global.u32 [%rd0+20], %r1;\n"
                                  "mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 48;\n"
                                  "mbarrier.try_wait.parity.shared.b64 %p1, [bar], 1, 100;\n"
                                  "selp.u32 %r1, 1, 0, %p1;\nst.global.u32 [%rd0+24], %r1;\n"
                                  // arrivals of copies: the first increments the pending count, the second (noinc) does
                                  // not
                                  "cp.async.mbarrier.arrive.shared.b64 [bar];\n"
                                  "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n"
                                  "mbarrier.arrive.shared.b64 %rd6, [bar];\n"
                                  "mbarrier.pending_count.b64 %r1, %rd6;\nst.global.u32 [%rd0+28], %r1;\n"
                                  "mbarrier.test_wait.shared.b64 %p1, [bar], %rd6;\n"
                                  "selp.u32 %r1, 1, 0, %p1;\nst.global.u32 [%rd0+32], %r1;\n"
                                  "mbarrier.inval.shared.b64 [bar];\n")},
                       GetParam());
  auto* const out = runner.upload(std::vector<unsigned>(9, 77));
  EXPECT_RUNS(runner.launch("k", {{1}, {1}}, out));
  EXPECT_EQ(std::vector<unsigned>(out, out + 9), (std::vector<unsigned>{3, 2, 0, 1, 2, 0, 1, 1, 1}));
}

TEST_P(ClusterPrograms, MulticastAndAddressesInSharedCluster) {
  // Rank 1 of 3 copies 32 bytes to ranks 0 and 2. Each block adds to a word of the next block, and asks for the rank of
  // that word's address.
  kernel_runner runner(
      {text_with("mbarrier.init.shared.b64 [bar], 1;\nmov.u32 %r1, 0;\nst.shared.v4.u32 [box], {%r1, %r1, %r1, %r1};\n"
                 "st.shared.v4.u32 [box+16], {%r1, %r1, %r1, %r1};\nst.shared.u32 [box+64], %r1;\n"
                 "barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;\n"
                 "mov.u32 %r2, %cluster_ctarank;\nmov.u32 %r3, box;\nmov.u32 %r4, bar;\nsetp.eq.u32 %p1, %r2, 1;\n"
                 "@!%p1 mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd1, [bar], 32;\n"
                 "mov.b16 %h1, 5;\n"
                 "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3], "
                 "[%rd0], 32, [%r4], %h1;\n"
                 "add.u32 %r5, %r2, 1;\nrem.u32 %r5, %r5, 3;\nmapa.shared::cluster.u32 %r6, %r3, %r5;\n"
                 "add.u32 %r7, %r2, 10;\nred.shared::cluster.add.u32 [%r6+64], %r7;\n"
                 "getctarank.shared::cluster.u32 %r8, %r6;\n"
                 "ld.shared::cluster.u32 %r5, [%r6+64];\n"
                 "WAIT:\n@%p1 bra DONE;\nmbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra WAIT;\nDONE:\n"
                 "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
                 "mul.wide.u32 %rd4, %r2, 16;\nadd.u64 %rd4, %rd4, %rd0;\n"
                 "ld.shared.u32 %r1, [box+28];\nst.global.u32 [%rd4+32], %r1;\nld.shared.u32 %r1, [box+64];\n"
                 "st.global.u32 [%rd4+36], %r1;\nst.global.u32 [%rd4+40], %r8;\nst.global.u32 [%rd4+44], %r5;\n")},
      GetParam());
  std::vector<unsigned> data(20);
  std::iota(data.begin(), data.end(), 100U);
  auto* const memory = runner.upload(data);
  EXPECT_RUNS(runner.launch("k", {{3}, {1}, 0, false, dimensions{3}}, memory));
  EXPECT_EQ(std::vector<unsigned>(memory + 8, memory + 20),
            (std::vector<unsigned>{107, 12, 1, 10, 0, 10, 2, 11, 107, 11, 0, 12}));
}

TEST_P(ClusterPrograms, InvalidAccessesStopTheKernel) {
  struct wrong {
    const char* body;
    trap::reason why;
    const char* text;
  };
  for (const wrong& w : {
           wrong{"mbarrier.init.shared.b64 [bar], 0;\n", trap::reason::illegal, "mbarrier.init"},
           wrong{"mbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.shared.b64 %rd1, [bar], 2;\n",
                 trap::reason::illegal, "mbarrier.arrive"},
           wrong{"mbarrier.init.shared.b64 [bar+4], 1;\n", trap::reason::misaligned, "mbarrier.init"},
           wrong{"mov.u32 %r1, 100000;\nmbarrier.init.shared.b64 [%r1], 1;\n", trap::reason::address, "mbarrier.init"},
           wrong{"mapa.u64 %rd1, %rd0, 0;\n", trap::reason::address, "mapa"},
           wrong{"mapa.shared::cluster.u32 %r1, %r0, 1;\n", trap::reason::illegal, "mapa"},
           wrong{"cp.async.bulk.global.shared::cta.bulk_group [%rd0], [box], 24;\n", trap::reason::illegal, "cp.async"},
           wrong{"mov.u32 %r1, 0x05000000;\nld.shared::cluster.u32 %r2, [%r1];\n", trap::reason::address,
                 "ld.shared::cluster"},
           wrong{"setp.eq.u32 %p1, %r0, 0;\n@%p1 bar.sync 1, 64;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n",
                 trap::reason::deadlock, "bar"},
       }) {
    kernel_runner runner({text_with(w.body)}, GetParam());
    const auto stopped = runner.launch("k", {{2}, {64}}, runner.allocate(256));
    ASSERT_TRUE(stopped.has_value()) << w.body;
    EXPECT_EQ(stopped->why, w.why) << w.body << stopped->message();
    EXPECT_NE(stopped->message().find(w.text), std::string::npos) << stopped->message();
  }
}

TEST(Clusters, UnsupportedInstructionsAreRefusedAtLoading) {
  for (const char* const body :
       {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%rd0, {%r0, %r0}], [bar];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd0], [box], 16;",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r0], %r0, [%r0];",
        "fence.proxy.tensormap::generic.release.gpu;", "cp.async.bulk.shared::cluster.global [box], [%rd0], 16;"}) {
    try {
      static_cast<void>(parse({text_with(std::string(body) + "\n")}));
      ADD_FAILURE() << body;
    } catch (const error& e) {
      EXPECT_EQ(e.status(), HPE_ERROR_NOT_SUPPORTED) << e.what();
      EXPECT_NE(std::string(e.what()).find("PTX line 13"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(std::string(body).substr(0, 12)), std::string::npos) << e.what();
    }
  }
}

INSTANTIATE_FOR_ENGINES(ClusterPrograms);

}  // namespace
}  // namespace hpe::ptx::test
