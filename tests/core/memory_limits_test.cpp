// Tests operations during which memory runs out, and the limit on the memory that the runtime keeps for reuse.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/core/memory/loan_pool.h"
#include "runtime/core/runtime.h"

namespace hpe::core {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t mib = std::size_t{1} << 20;

// Variables that the runtime reads when it starts. With these values, a migration of 16 MiB takes a quarter of a
// second: the devices do not reach each other, so the data passes through the host.
[[maybe_unused]] const bool environment_is_set = [] {
  ::setenv("HPE_DEVICES", "soft:2x1", 1);
  ::setenv("HPE_SOFT_MEMORY", "32M", 1);
  ::setenv("HPE_OVERSUBSCRIBE", "off", 1);
  ::setenv("HPE_SOFT_HOST_LINK", "64M:1", 1);
  return true;
}();

bool all_are(const void* p, std::size_t bytes, std::uint8_t value) {
  std::vector<std::uint8_t> found(bytes);
  if (hpeMemcpy(found.data(), p, bytes) != HPE_SUCCESS) return false;
  return found == std::vector<std::uint8_t>(bytes, value);
}

TEST(migration, a_failed_migration_leaves_the_allocation_at_its_old_home) {
  constexpr std::size_t size = 16 * mib;
  bool lost_its_room = false;
  for (int attempt = 0; attempt < 20 && !lost_its_room; ++attempt) {
    void* p = nullptr;
    ASSERT_EQ(hpeMallocOn(&p, size, 0), HPE_SUCCESS);
    ASSERT_EQ(hpeMemset(p, 7, size), HPE_SUCCESS);
    ASSERT_EQ(hpeSynchronize(), HPE_SUCCESS);
    hpeStatus status = HPE_SUCCESS;
    std::string words;
    std::thread migrating([&] {
      status = hpeMigrate(p, 1);
      words = hpeGetLastErrorMessage();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * (1 + attempt % 6)));
    void* in_the_way = nullptr;
    if (hpeMallocOn(&in_the_way, 24 * mib, 1) == HPE_SUCCESS) {
      migrating.join();
      // If the other allocation came first, hpe refuses the migration at once.
      lost_its_room = status != HPE_SUCCESS && words.find("bytes free, but needs") == std::string::npos;
    } else {
      migrating.join();  // the migration came first
    }
    if (lost_its_room) {
      EXPECT_EQ(status, HPE_ERROR_OUT_OF_MEMORY) << words;
      hpePointerInfo info{};
      ASSERT_EQ(hpeGetPointerInfo(p, &info), HPE_SUCCESS);
      EXPECT_EQ(info.device, 0);
      EXPECT_TRUE(all_are(p, size, 7));
      EXPECT_EQ(hpeMemset(p, 9, size), HPE_SUCCESS);
      EXPECT_EQ(hpeSynchronize(), HPE_SUCCESS) << "the fill uses memory that the device has freed";
      EXPECT_TRUE(all_are(p, size, 9));
    }
    EXPECT_EQ(hpeFree(in_the_way), HPE_SUCCESS);
    EXPECT_EQ(hpeFree(p), HPE_SUCCESS);
  }
  EXPECT_TRUE(lost_its_room) << "the other allocation never took the memory during a migration";
}

std::size_t shadow_bytes() {
  struct stat s {};
  ::fstat(runtime::instance().space().shadow_file(), &s);
  return static_cast<std::size_t>(s.st_blocks) * 512;
}

// The link carries 64 MiB per second.
TEST(synchronizing, waits_for_copies_that_nobody_else_waits_for) {
  constexpr std::size_t size = 8 * mib;
  void* p = nullptr;
  ASSERT_EQ(hpeMallocOn(&p, size, 0), HPE_SUCCESS);
  std::memset(p, 1, size);
  ASSERT_EQ(hpeSynchronize(), HPE_SUCCESS);  // also waits for the uploads that followed the host's writes
  ASSERT_EQ(hpeMemset(p, 2, size), HPE_SUCCESS);
  ASSERT_EQ(hpeSynchronize(), HPE_SUCCESS);
  std::vector<std::byte> ordinary(size, std::byte{3});
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(hpeMemcpy(p, ordinary.data(), size), HPE_SUCCESS);
  ASSERT_EQ(hpeSynchronize(), HPE_SUCCESS);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 120ms);
  EXPECT_EQ(hpeFree(p), HPE_SUCCESS);
}

TEST(loans, that_came_back_are_kept_up_to_a_limit) {
  const runtime& it = runtime::instance();
  loan_pool pool(it.devices(), it.space(), it.resources().engine.staging().bytes());
  constexpr std::size_t size = 128 * mib;
  const std::size_t before = shadow_bytes();
  {
    std::vector<loan> all;
    for (int i = 0; i < 5; ++i) {
      all.push_back(pool.take(size, nullptr));
      all.back().data()[0] = std::byte{1};  // allocates one page
    }
    EXPECT_EQ(shadow_bytes(), before + 5 * 4096);
  }
  EXPECT_EQ(shadow_bytes(), before + 4 * 4096) << "the pool keeps 512 MiB: four loans of 128 MiB";
  std::set<std::byte*> again;
  std::vector<loan> all;
  for (int i = 0; i < 5; ++i) {
    all.push_back(pool.take(size, nullptr));
    again.insert(all.back().data());
  }
  EXPECT_EQ(again.size(), 5U);
  EXPECT_EQ(shadow_bytes(), before + 4 * 4096);
}

}  // namespace
}  // namespace hpe::core
