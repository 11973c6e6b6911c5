#include "apps/fdtd/boxes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hpe::fdtd {
namespace {

TEST(Boxes, DevicesAreArrangedAsEquallyAsTheyCanBe) {
  EXPECT_EQ(arrange(6, cut::slabs), (triple{6, 1, 1}));
  EXPECT_EQ(arrange(6, cut::pencils), (triple{3, 2, 1}));
  EXPECT_EQ(arrange(7, cut::pencils), (triple{7, 1, 1}));
  EXPECT_EQ(arrange(8, cut::boxes), (triple{2, 2, 2}));
  EXPECT_EQ(arrange(4, cut::boxes), (triple{2, 2, 1}));
  EXPECT_EQ(arrange(12, cut::boxes), (triple{3, 2, 2}));
  for (int n = 1; n <= 16; ++n)
    for (const cut how : {cut::slabs, cut::pencils, cut::boxes}) {
      const triple p = arrange(n, how);
      EXPECT_EQ(p[0] * p[1] * p[2], n);
    }
}

TEST(Boxes, CoverTheGridAndKnowTheirNeighbours) {
  const triple cells{19, 11, 40};
  const auto boxes = cut_grid(cells, 3, {3, 2, 2});
  ASSERT_EQ(boxes.size(), 12U);
  std::vector<int> seen(static_cast<std::size_t>(cells[0] * cells[1] * cells[2]));
  for (const box& b : boxes) {
    for (std::int64_t x = 0; x < b.cells[0]; ++x)
      for (std::int64_t y = 0; y < b.cells[1]; ++y)
        for (std::int64_t z = 0; z < b.cells[2]; ++z)
          ++seen[static_cast<std::size_t>(((b.origin[0] + x) * cells[1] + b.origin[1] + y) * cells[2] + b.origin[2] +
                                          z)];
    for (int side = 0; side < sides; ++side) {
      const int other = b.neighbour[static_cast<std::size_t>(side)];
      if (other < 0) continue;
      const box& n = boxes[static_cast<std::size_t>(other)];
      EXPECT_EQ(n.neighbour[static_cast<std::size_t>(opposite(side))], b.device);
      EXPECT_EQ(n.face(opposite(side)).count(), b.rim(side).count());
    }
  }
  for (const int times : seen) EXPECT_EQ(times, 1);
  EXPECT_THROW(static_cast<void>(cut_grid({8, 50, 50}, 3, {3, 1, 1})), bad_input);
  EXPECT_NO_THROW(static_cast<void>(cut_grid({2, 50, 50}, 3, {1, 2, 1})));
}

TEST(Boxes, WorkCoversABoxOnceAndEndsWithNoRims) {
  for (const triple& cells : {triple{60, 50, 150}, triple{9, 8, 20}, triple{33, 17, 64}})
    for (const std::int64_t radius : {1, 4, 8})
      for (const box& b : cut_grid(cells, radius, {1, 1, 1})) {
        for (int pattern = 0; pattern < 64; ++pattern) {
          box it = b;
          for (int side = 0; side < sides; ++side)
            it.neighbour[static_cast<std::size_t>(side)] = (pattern >> side & 1) != 0 ? 0 : -1;
          const order_of_work work = rims_first(it);
          std::vector<int> seen(static_cast<std::size_t>(cells[0] * cells[1] * cells[2]));
          const auto mark = [&](const kernels::cell_range& r, int by) {
            EXPECT_EQ(r.z0 % 4, 0);
            for (std::int64_t x = r.x0; x < r.x1; ++x)
              for (std::int64_t y = r.y0; y < r.y1; ++y)
                for (std::int64_t z = r.z0; z < r.z1; ++z)
                  seen[static_cast<std::size_t>((x * cells[1] + y) * cells[2] + z)] += by;
          };
          for (const auto& r : work.first) mark(r, 1);
          for (const auto& r : work.then) mark(r, 100);
          for (int side = 0; side < sides; ++side) {  // cells that are sent must be computed first
            if (it.neighbour[static_cast<std::size_t>(side)] < 0) continue;
            const kernels::cell_range f = it.face(side);
            for (std::int64_t x = f.x0; x < f.x1; ++x)
              for (std::int64_t y = f.y0; y < f.y1; ++y)
                for (std::int64_t z = f.z0; z < f.z1; ++z)
                  ASSERT_EQ(seen[static_cast<std::size_t>((x * cells[1] + y) * cells[2] + z)], 1);
          }
          for (const int n : seen) ASSERT_TRUE(n == 1 || n == 100) << n;
        }
      }
}

TEST(Weights, DifferentiateSquaresExactly) {
  EXPECT_DOUBLE_EQ(kernels::stencil_weight(4, 0), -205.0 / 72);
  EXPECT_DOUBLE_EQ(kernels::stencil_weight(4, 1), 8.0 / 5);
  EXPECT_DOUBLE_EQ(kernels::stencil_weight(4, 4), -1.0 / 560);
  for (std::int64_t radius = 1; radius <= kernels::most_radius; ++radius) {
    double zeroth = 0, second = 0, fourth = 0;
    for (std::int64_t k = -radius; k <= radius; ++k) {
      const double w = kernels::stencil_weight(radius, std::abs(k)), d = static_cast<double>(k);
      zeroth += w;
      second += w * d * d;
      fourth += w * d * d * d * d;
    }
    EXPECT_NEAR(zeroth, 0, 1e-13);
    EXPECT_NEAR(second, 2, 1e-12);
    if (radius > 1) {
      EXPECT_NEAR(fourth, 0, 1e-10);
    }
  }
}

}  // namespace
}  // namespace hpe::fdtd
