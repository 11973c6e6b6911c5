// The statistics of calls, the errors of the functions for PTX and exports, and structs of other versions of the
// headers.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
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

TEST(calls, CallsOfPtxRefuseNullPointers) {
  const hpeGrid shape{{1, 1, 1}, {1, 1, 1}, 0, 0, {}};
  hpeKernelInfo info{};
  EXPECT_TRUE(fails(hpeModuleLoadPtx(nullptr, nullptr, 0), HPE_ERROR_INVALID_ARGUMENT, {"pointer for the module"}));
  EXPECT_TRUE(fails(hpeModuleUnload(nullptr), HPE_ERROR_INVALID_ARGUMENT, {"module is null"}));
  EXPECT_TRUE(fails(hpeModuleGetVariable(nullptr, nullptr, nullptr, "x", 0), HPE_ERROR_INVALID_ARGUMENT, {"a module"}));
  EXPECT_TRUE(fails(hpeKernelGetInfo(nullptr, &info), HPE_ERROR_INVALID_ARGUMENT, {"a kernel"}));
  EXPECT_TRUE(fails(hpeLaunchGrid(0, nullptr, &shape, nullptr, 0, nullptr, 0, nullptr), HPE_ERROR_INVALID_ARGUMENT,
                    {"a kernel"}));
  EXPECT_TRUE(fails(hpeLaunchGridAfter(0, nullptr, &shape, nullptr, 0, nullptr, 1, nullptr), HPE_ERROR_INVALID_ARGUMENT,
                    {"1 pieces of work"}));
  EXPECT_TRUE(fails(hpeWorkQuery({}, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeWorkQuery"}));
  EXPECT_TRUE(fails(hpeGetDeviceNumaNode(0, nullptr), HPE_ERROR_INVALID_ARGUMENT, {"hpeGetDeviceNumaNode"}));
  int node = 0;
  EXPECT_TRUE(fails(hpeGetDeviceNumaNode(-3, &node), HPE_ERROR_INVALID_DEVICE, {"-3", "0 to"}));
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
  EXPECT_TRUE(fails(hpeExportOpen(nullptr, &handle), HPE_ERROR_INVALID_ARGUMENT, {"hpeExportOpen", "is null"}));
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

/// A struct as in a program that was compiled with another version of the header: it is `bytes` bytes long, and bytes
/// of 0xAB follow.
template <class Struct>
struct of_another_version {
  explicit of_another_version(std::size_t bytes) {
    memory.fill(std::byte{0xAB});
    std::memcpy(memory.data(), &bytes, sizeof bytes);
  }
  [[nodiscard]] Struct* get() { return reinterpret_cast<Struct*>(memory.data()); }
  [[nodiscard]] std::byte at(std::size_t offset) const { return memory[offset]; }
  alignas(Struct) std::array<std::byte, sizeof(Struct) + 64> memory;
};

TEST(calls, AStructOfAnOlderHeaderIsFilledAsFarAsItGoes) {
  const hpe::array<char> a(5000);
  of_another_version<hpePointerInfo> older(offsetof(hpePointerInfo, device));
  ASSERT_EQ(hpeGetPointerInfo(a.data(), older.get()), HPE_SUCCESS);
  EXPECT_EQ(older.get()->struct_size, offsetof(hpePointerInfo, device));
  EXPECT_EQ(older.get()->size, 5000U);
  EXPECT_EQ(older.at(offsetof(hpePointerInfo, device)), std::byte{0xAB});
}

TEST(calls, AStructOfANewerHeaderGetsZerosWhereTheLibraryKnowsNothing) {
  of_another_version<hpeDeviceInfo> newer(sizeof(hpeDeviceInfo) + 16);
  ASSERT_EQ(hpeGetDeviceInfo(0, newer.get()), HPE_SUCCESS);
  EXPECT_EQ(newer.get()->struct_size, sizeof(hpeDeviceInfo) + 16);
  EXPECT_GT(newer.get()->memory_total, 0U);
  EXPECT_EQ(newer.at(sizeof(hpeDeviceInfo)), std::byte{0});
  EXPECT_EQ(newer.at(sizeof(hpeDeviceInfo) + 15), std::byte{0});
  EXPECT_EQ(newer.at(sizeof(hpeDeviceInfo) + 16), std::byte{0xAB});
}

TEST(calls, AStructSizeThatCannotBeMeantIsRefused) {
  for (const std::size_t wrong : {std::size_t{0}, sizeof(std::size_t), std::size_t{1} << 20}) {
    hpeStatistics statistics{};
    statistics.struct_size = wrong;
    statistics.launches = 77;
    EXPECT_TRUE(fails(hpeGetStatistics(&statistics), HPE_ERROR_INVALID_ARGUMENT,
                      {"hpeGetStatistics", "struct_size is " + std::to_string(wrong)}));
    EXPECT_EQ(statistics.launches, 77U);
  }
}

}  // namespace
