// The statistics of calls, and the errors of the calls for PTX and exports.

#include <gtest/gtest.h>

#include <string>

#include "hpe/hpe.hpp"
#include "hpe/node.h"
#include "hpe/placement.h"
#include "hpe/ptx.h"
#include "tests/core/kernels.h"
#include "tests/core/status.h"

namespace {

using hpe::out;
using numbers = hpe::array<std::uint32_t>;

constexpr std::size_t mebi = std::size_t{1} << 20;

TEST(calls, CallsOfPtxNeedAPlaceToo) {
  const hpeGrid shape{{1, 1, 1}, {1, 1, 1}, 0, 0, {}};
  hpeKernelInfo info{};
  EXPECT_TRUE(fails(hpeModuleLoadPtx(nullptr, nullptr, 0), HPE_ERROR_INVALID_ARGUMENT, {"place for the module"}));
  EXPECT_TRUE(fails(hpeModuleUnload(nullptr), HPE_ERROR_INVALID_ARGUMENT, {"no module"}));
  EXPECT_TRUE(fails(hpeModuleGetVariable(nullptr, nullptr, nullptr, "x", 0), HPE_ERROR_INVALID_ARGUMENT, {"a module"}));
  EXPECT_TRUE(fails(hpeKernelGetInfo(nullptr, &info), HPE_ERROR_INVALID_ARGUMENT, {"a kernel"}));
  EXPECT_TRUE(fails(hpeLaunchGrid(0, nullptr, &shape, nullptr, 0, nullptr, 0, nullptr), HPE_ERROR_INVALID_ARGUMENT,
                    {"a kernel"}));
  EXPECT_TRUE(fails(hpeLaunchGridAfter(0, nullptr, &shape, nullptr, 0, nullptr, 1, nullptr), HPE_ERROR_INVALID_ARGUMENT,
                    {"1 pieces of work"}));
  EXPECT_TRUE(fails(hpeWorkQuery({}, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeWorkQuery"}));
  EXPECT_TRUE(fails(hpeGetDeviceNumaNode(0, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeGetDeviceNumaNode"}));
}

TEST(calls, ExportsNeedAHandle) {
  const numbers a(1);
  hpeExport handle{};
  int reachable = 7;
  void* p = &p;
  const auto no_handle = {std::string("handle of exported memory")};
  EXPECT_TRUE(fails(hpeExportBegin(nullptr, a.data(), 4), HPE_ERROR_INVALID_ARGUMENT, no_handle));
  EXPECT_TRUE(fails(hpeExportEnd(nullptr), HPE_ERROR_INVALID_ARGUMENT, no_handle));
  EXPECT_TRUE(fails(hpeExportReachable(nullptr, &reachable), HPE_ERROR_INVALID_ARGUMENT, no_handle));
  EXPECT_TRUE(fails(hpeExportReachable(&handle, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeExportReachable"}));
  EXPECT_TRUE(fails(hpeExportCopy(a.data(), nullptr, 0, 4), HPE_ERROR_INVALID_ARGUMENT, no_handle));
  EXPECT_TRUE(fails(hpeExportOpen(&p, nullptr), HPE_ERROR_INVALID_ARGUMENT, no_handle));
  EXPECT_TRUE(fails(hpeExportOpen(nullptr, &handle), HPE_ERROR_INVALID_ARGUMENT, {"without a place"}));
  EXPECT_EQ(reachable, 7);
  EXPECT_EQ(p, &p);
}

TEST(calls, StatisticsCountEachTouchOnce) {
  const numbers a(mebi);
  hpe::check(hpeAdvise(a.data(), HPE_ADVISE_LAZY));
  hpe::launch(test_kernel().fill, hpe::grid(test_tiles), {a.data(), mebi, 0}, out(a));
  hpe::synchronize();
  hpe::check(hpeResetStatistics());
  EXPECT_EQ(a[0], 0U);
  EXPECT_EQ(hpe::statistics().faults_read, 1U);
  EXPECT_EQ(hpe::statistics().faults_write, 0U);
  a[0] = 1;
  EXPECT_EQ(hpe::statistics().faults_read, 1U);
  EXPECT_EQ(hpe::statistics().faults_write, 1U);
}

}  // namespace
