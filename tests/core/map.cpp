// Files of memory at addresses that the program chooses (hpe/map.h).

#include "hpe/map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "hpe/announce.h"
#include "hpe/hpe.hpp"
#include "hpe/node.h"
#include "tests/core/kernels.h"
#include "tests/core/status.h"

namespace {

constexpr std::size_t piece = std::size_t{2} << 20;
constexpr std::size_t words = piece / sizeof(std::uint32_t);

using words_of = std::span<std::uint32_t>;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    file_ = ::memfd_create("test", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file_, 4 * piece), 0);
    void* made = nullptr;
    hpe::check(hpeReserve(&made, 6 * piece));
    base_ = static_cast<std::byte*>(made);
  }
  void TearDown() override {
    hpe::check(hpeFree(base_));
    ::close(file_);
  }

  [[nodiscard]] words_of at(std::size_t place, std::size_t pieces = 1) const {
    return {reinterpret_cast<std::uint32_t*>(base_ + place * piece), pieces * words};
  }
  void map(std::size_t place, std::size_t pieces, std::size_t of_file) const {
    hpe::check(hpeMapFile(base_ + place * piece, pieces * piece, file_, of_file * piece));
  }
  static void fill(words_of what, std::uint32_t first, int device = 0) {
    hpe::launch_on(device, test_kernel().fill, hpe::grid(4), {what.data(), what.size(), first}, hpe::out(what));
  }
  [[nodiscard]] std::uint32_t in_file(std::size_t word) const {
    std::uint32_t value = 0;
    EXPECT_EQ(::pread(file_, &value, sizeof value, static_cast<off_t>(word * sizeof value)), 4);
    return value;
  }

  int file_ = -1;
  std::byte* base_ = nullptr;
};

TEST_F(Files, HaveOneCopyForKernelsAndCpuCode) {
  map(0, 2, 0);
  map(4, 1, 1);  // the second piece again
  fill(at(0, 2), 100);
  EXPECT_EQ(at(0)[7], 107U);  // waits for the kernel
  EXPECT_EQ(at(4)[7], 107U + words);
  EXPECT_EQ(in_file(7), 107U);
  at(4)[7] = 5;
  EXPECT_EQ(at(1)[7], 5U);
  fill(at(4), 1, 1);
  hpe::check(hpeSynchronize());
  EXPECT_EQ(at(1)[7], 8U);
  std::vector<std::uint32_t> copied(2 * words);
  hpe::check(hpeMemcpy(copied.data(), base_, 2 * piece));
  EXPECT_EQ(copied[words + 9], 10U);
  hpe::check(hpeMemset(base_ + piece, 0, piece));
  EXPECT_EQ(at(4)[words - 1], 0U);
}

TEST_F(Files, KeepTheirBytesAtOtherAddresses) {
  map(1, 1, 2);
  fill(at(1), 30);
  EXPECT_EQ(at(1)[1], 31U);  // opens the view
  hpe::check(hpeUnmapFile(base_ + piece, piece));
  EXPECT_TRUE(fails(hpeMemset(base_ + piece, 0, 4), HPE_ERROR_NOT_A_REGION));
  map(1, 1, 3);
  EXPECT_EQ(at(1)[1], 0U);
  map(3, 1, 2);
  EXPECT_EQ(at(3)[1], 31U);
}

TEST_F(Files, HaveNoMemoryBetweenMappings) {
  map(0, 1, 0);
  map(2, 2, 2);
  std::vector<std::byte> copied(4 * piece);
  EXPECT_TRUE(fails(hpeMemcpy(copied.data(), base_, piece + 1), HPE_ERROR_NOT_A_REGION, {"where no file is mapped"}));
  EXPECT_TRUE(fails(hpeMemcpy(copied.data(), base_ + piece, 1), HPE_ERROR_NOT_A_REGION));
  EXPECT_EQ(hpeMemcpy(copied.data(), base_ + 2 * piece, 2 * piece), HPE_SUCCESS);
  hpePointerInfo info{};
  hpe::check(hpeGetPointerInfo(base_ + piece, &info));
  EXPECT_EQ(info.kind, HPE_MEMORY_ORDINARY);
  hpe::check(hpeGetPointerInfo(base_, &info));
  EXPECT_EQ(info.kind, HPE_MEMORY_HOST);
  hpeExport handle{};
  EXPECT_TRUE(fails(hpeExportBegin(&handle, base_, 1), HPE_ERROR_NOT_SUPPORTED, {"mapped file"}));
  // A kernel that leaves the mapped bytes fails; a launch names only these bytes.
  hpe::launch(test_kernel().crash, hpe::grid(1), {at(1).data()}, hpe::out(at(0)));
  EXPECT_TRUE(fails(hpeSynchronize(), HPE_ERROR_LAUNCH_FAILED));
}

TEST_F(Files, AreOrderedLikeDeviceMemory) {
  map(0, 2, 0);
  at(0)[3] = 0;  // opens the view before the work is announced
  for (const bool named : {false, true}) {
    const hpeAccess bytes{base_, piece, HPE_OUT};
    hpeAnnouncement announced = nullptr;
    hpe::check(hpeAnnounce(&announced, named ? 0 : 1, &bytes, named ? 1 : 0));
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_EQ(hpeAnnouncedBegin(announced), HPE_SUCCESS);
      fill(at(0), named ? 500 : 400);
      EXPECT_EQ(hpeAnnouncedEnd(announced), HPE_SUCCESS);
    });
    EXPECT_EQ(at(0)[3], named ? 503U : 403U);
    later.join();
  }
}

TEST_F(Files, AreRefusedAtWrongPlaces) {
  void* made = nullptr;
  EXPECT_TRUE(fails(hpeReserve(&made, piece + 1), HPE_ERROR_INVALID_ARGUMENT, {"2097153", "multiple of 2097152"}));
  EXPECT_TRUE(fails(hpeReserve(&made, 0), HPE_ERROR_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(hpeReserve(nullptr, piece), HPE_ERROR_INVALID_ARGUMENT));
  EXPECT_TRUE(fails(hpeReserve(&made, std::size_t{1} << 60), HPE_ERROR_OUT_OF_MEMORY));
  const auto refused = [&](std::byte* to, std::size_t bytes, int file, std::uint64_t offset, const char* why) {
    EXPECT_TRUE(fails(hpeMapFile(to, bytes, file, offset), HPE_ERROR_INVALID_ARGUMENT, {why}));
  };
  map(2, 2, 0);
  refused(base_ + 1, piece, file_, 0, "multiple of");
  refused(base_, piece + 1, file_, 0, "multiple of");
  refused(base_, 0, file_, 0, "0 bytes");
  refused(base_, piece, file_, 7, "not a multiple of");
  refused(base_, piece, -1, 0, "not an open file");
  refused(base_, 2 * piece, file_, 3 * piece, "has 8388608 bytes");
  refused(base_ + 2 * piece, piece, file_, 0, "is mapped in this range already");
  refused(base_ + piece, 2 * piece, file_, 0, "is mapped in this range already");
  EXPECT_TRUE(fails(hpeMapFile(base_ + 5 * piece, 2 * piece, file_, 0), HPE_ERROR_NOT_A_REGION, {"not inside"}));
  std::uint32_t ordinary = 0;
  EXPECT_TRUE(fails(hpeMapFile(&ordinary, piece, file_, 0), HPE_ERROR_NOT_A_REGION));
  EXPECT_TRUE(fails(hpeUnmapFile(base_ + 2 * piece, piece), HPE_ERROR_INVALID_ARGUMENT, {"whole mappings"}));
  EXPECT_TRUE(fails(hpeUnmapFile(base_, piece), HPE_ERROR_INVALID_ARGUMENT, {"whole mappings"}));
  EXPECT_TRUE(fails(hpeUnmapFile(base_ + 5 * piece, 2 * piece), HPE_ERROR_NOT_A_REGION));
  EXPECT_TRUE(fails(hpeMapFile(base_ + piece, piece, STDIN_FILENO + 1000, 0), HPE_ERROR_INVALID_ARGUMENT));
  hpe::check(hpeUnmapFile(base_ + 2 * piece, 2 * piece));
  map(1, 2, 0);
}

TEST_F(Files, AreUnmappedAfterTheWorkThatUsesThem) {
  map(0, 1, 0);
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {at(0).data(), words, 1, 20000}, hpe::inout(at(0)));
  hpe::check(hpeUnmapFile(base_, piece));
  EXPECT_EQ(in_file(words - 1), 1U);
  map(0, 1, 0);
  hpe::launch(test_kernel().increment, hpe::grid(test_tiles), {at(0).data(), words, 1, 20000}, hpe::inout(at(0)));
  hpe::check(hpeFree(base_));
  EXPECT_EQ(in_file(words - 1), 2U);
  EXPECT_TRUE(fails(hpeFree(base_), HPE_ERROR_NOT_A_REGION));
  void* made = nullptr;
  hpe::check(hpeReserve(&made, 6 * piece));
  base_ = static_cast<std::byte*>(made);
}

}  // namespace
