// Launches in clusters: sizes that the launch requests, sizes that kernels declare, and combinations that are refused.

#include "tests/ptx_launch/support.h"

namespace ptx_launch {
namespace {

// Each block writes a number to its shared memory, and reads the number of the next block of its cluster. For block b,
// out[4 b] is the number that it read. The next elements are the block's rank, the size of the cluster, and whether
// clusters were requested.
std::string kernel_text(const std::string& name, const std::string& directives) {
  return ".visible .entry " + name + "(.param .u64 out)\n" + directives + R"({
  .shared .align 4 .u32 mine;
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<4>;
  mov.u32 %r1, %ctaid.y;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  add.u32 %r4, %r1, 100;
  st.shared.u32 [mine], %r4;
  barrier.cluster.arrive.release;
  barrier.cluster.wait.acquire;
  mov.u32 %r5, %cluster_ctarank;
  mov.u32 %r6, %cluster_nctarank;
  add.u32 %r7, %r5, 1;
  rem.u32 %r7, %r7, %r6;
  mov.u32 %r8, mine;
  mapa.shared::cluster.u32 %r9, %r8, %r7;
  ld.shared::cluster.u32 %r10, [%r9];
  mov.pred %p1, %is_explicit_cluster;
  selp.u32 %r11, 1, 0, %p1;
  ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %r1, 16;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r10;
  st.global.u32 [%rd1+4], %r5;
  st.global.u32 [%rd1+8], %r6;
  st.global.u32 [%rd1+12], %r11;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ret;
}
)";
}

std::string all_kernels() {
  return ".version 8.6\n.target sm_90\n.address_size 64\n" + kernel_text("plain", "") +
         kernel_text("two", ".explicitcluster\n.reqnctapercluster 2, 1, 1\n") +
         kernel_text("some", ".explicitcluster\n") +
         kernel_text("up_to_four", ".maxntid 32, 1, 1\n.maxclusterrank 4\n");
}

class Clusters : public random_numbers {
 protected:
  // Launches the kernel on each device, and compares the results.
  void runs(const std::string& kernel, const hpeGrid& shape, std::uint32_t width, std::uint32_t height, bool is_asked) {
    const std::uint32_t columns = shape.grid[0], rows = shape.grid[1];
    for (int device = 0; device < device_count(); ++device) {
      hpe::array<std::uint32_t> out(std::size_t{4} * columns * rows);
      std::fill(out.begin(), out.end(), 77U);
      EXPECT_TRUE(works(hpeWorkWait(m_.launch(device, kernel, shape, out.data()), nullptr))) << kernel;
      for (std::uint32_t y = 0; y < rows; ++y)
        for (std::uint32_t x = 0; x < columns; ++x) {
          const std::uint32_t rank = x % width + y % height * width, next = (rank + 1) % (width * height);
          const std::uint32_t from = (y / height * height + next / width) * columns + x / width * width + next % width;
          const std::uint32_t* const got = out.data() + std::size_t{4} * (y * columns + x);
          ASSERT_EQ(std::vector<std::uint32_t>(got, got + 4),
                    (std::vector<std::uint32_t>{from + 100, rank, width * height, is_asked ? 1U : 0U}))
              << kernel << ", block " << x << ", " << y;
        }
    }
  }
  void refused(const std::string& kernel, const hpeGrid& shape, std::initializer_list<std::string> words) {
    hpeWork work{};
    std::uint32_t* const nowhere = nullptr;
    EXPECT_TRUE(fails(m_.try_launch(&work, 0, kernel, shape, nowhere), HPE_ERROR_INVALID_ARGUMENT, words)) << kernel;
  }

  const module m_{{all_kernels()}};
};

hpeGrid in_clusters(std::uint32_t columns, std::uint32_t rows, std::uint32_t width, std::uint32_t height,
                    int cooperative = 0) {
  return {{columns, rows, 1}, {1, 1, 1}, 0, cooperative, {width, height, width == 0 ? 0U : 1U}};
}

TEST_F(Clusters, ThatALaunchAsksFor) {
  for (const int cooperative : {0, 1}) {
    runs("plain", in_clusters(7, 3, 0, 0, cooperative), 1, 1, false);
    runs("plain", in_clusters(7, 3, 1, 1, cooperative), 1, 1, true);
    runs("plain", in_clusters(16, 1, 16, 1, cooperative), 16, 1, true);
    const std::uint32_t width = 1 + random() % 4, height = 1 + random() % 4;
    runs("plain", in_clusters(width * 3, height * 5, width, height, cooperative), width, height, true);
  }
  runs("some", in_clusters(6, 1, 3, 1), 3, 1, true);
  runs("up_to_four", in_clusters(4, 4, 2, 2), 2, 2, true);
}

TEST_F(Clusters, ThatAKernelDeclares) {
  runs("two", in_clusters(6, 2, 0, 0), 2, 1, true);
  runs("two", in_clusters(6, 2, 2, 1), 2, 1, true);
}

TEST_F(Clusters, ThatCannotBe) {
  refused("plain", in_clusters(7, 1, 2, 1), {"plain", "clusters of 2 x 1 x 1", "7 blocks in dimension 0"});
  refused("plain", in_clusters(4, 3, 2, 2), {"3 blocks in dimension 1"});
  refused("plain", in_clusters(17, 1, 17, 1), {"clusters of 17", "16 blocks are possible"});
  refused("plain", in_clusters(64, 64, 8, 4), {"clusters of 8 x 4", "16 blocks are possible"});
  refused("plain", {{4, 1, 1}, {1, 1, 1}, 0, 0, {2, 0, 1}}, {"clusters of 2 x 0 x 1"});
  refused("plain", {{4, 1, 1}, {1, 1, 1}, 0, 0, {0, 1, 1}}, {"clusters of 0 x 1 x 1"});
  refused("plain", {{1U << 31U, 1, 1}, {1, 1, 1}, 0, 0, {1U << 31U, 2, 1}}, {"plain"});
  refused("two", in_clusters(4, 1, 4, 1), {"clusters of 4 x 1 x 1", "it demands 2 x 1 x 1"});
  refused("two", in_clusters(3, 1, 0, 0), {"clusters of 2 x 1 x 1", "3 blocks"});
  refused("some", in_clusters(4, 1, 0, 0), {"some", "must be launched with clusters"});
  refused("up_to_four", in_clusters(5, 1, 5, 1), {"clusters of 5", "4 blocks are possible"});
  EXPECT_TRUE(works(hpeSynchronize()));
}

TEST_F(Clusters, AreDescribed) {
  hpeKernelInfo info{};
  ASSERT_TRUE(works(hpeKernelGetInfo(m_.kernel("plain"), &info)));
  EXPECT_EQ(info.required_cluster[0], 0U);
  EXPECT_EQ(info.max_cluster, 16U);
  EXPECT_EQ(info.needs_cluster, 0);
  ASSERT_TRUE(works(hpeKernelGetInfo(m_.kernel("two"), &info)));
  EXPECT_EQ(std::vector<std::uint32_t>(info.required_cluster, info.required_cluster + 3),
            (std::vector<std::uint32_t>{2, 1, 1}));
  EXPECT_EQ(info.needs_cluster, 1);
  ASSERT_TRUE(works(hpeKernelGetInfo(m_.kernel("up_to_four"), &info)));
  EXPECT_EQ(info.max_cluster, 4U);
  EXPECT_EQ(info.needs_cluster, 0);
}

}  // namespace
}  // namespace ptx_launch
