#include "runtime/fault/explain.h"

#include <gtest/gtest.h>

#include "runtime/base/granule.h"
#include "runtime/memory/small_objects.h"
#include "tests/device/layout.h"

namespace hpe::fault {
namespace {

class explain : public testing::Test {
 protected:
  coherence::region& allocate(std::byte* base, std::uint64_t bytes, memory::small_objects* small = nullptr) {
    coherence::region& r = regions.take();
    const std::lock_guard lock(r.mutex);
    r.begin({.kind = coherence::region_kind::device,
             .base = base,
             .bytes = bytes,
             .extent = round_up(bytes, 4096),
             .block_size = 65536,
             .homes = {0},
             .small = small},
            0, 0);
    granules.assign(base, round_up(bytes, granule_size) / granule_size, {r.id, 0});
    return r;
  }
  void release(coherence::region& r) {
    const std::lock_guard lock(r.mutex);
    r.end();
    if (r.layout.small == nullptr) regions.note_freed({r.layout.base, r.layout.bytes});
    granules.clear(r.layout.base, round_up(r.layout.bytes, granule_size) / granule_size);
    regions.give_back(r);
  }
  [[nodiscard]] std::string about(const std::byte* p, bool write = false) const {
    return explain_stray_access(p, write, granules, regions);
  }
  static void expect(const std::string& sentence, const char* part) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  }

  memory::granule_table granules{device_test::layout_for(4)};
  coherence::region_table regions;
  std::byte* const base = reinterpret_cast<std::byte*>(device_test::layout_base);
};

TEST_F(explain, what_was_done_and_where) {
  expect(about(base), "invalid read at 0x");
  expect(about(base, true), "invalid write at 0x");
  expect(about(base), "but neither in an allocation nor in one that was freed recently");
}

TEST_F(explain, past_the_end_of_an_allocation) {
  allocate(base, 5000);
  expect(about(base + 8192), "3192 bytes past the end of the allocation of 5000 bytes");
  // The allocation fills its granule, so an address beyond its end is in the next granule.
  coherence::region& full = allocate(base + 2 * granule_size, granule_size);
  expect(about(full.layout.base + granule_size + 8), "8 bytes past the end");
}

TEST_F(explain, freed) {
  release(allocate(base + 4 * granule_size, 5000));
  expect(about(base + 4 * granule_size + 100), "100 bytes inside an allocation of 5000 bytes");
  expect(about(base + 4 * granule_size + 100), "was freed");
  expect(about(base + 6 * granule_size), "but neither in an allocation nor in one that was freed recently");
}

TEST_F(explain, freed_while_its_last_work_is_waited_for) {
  coherence::region& r = allocate(base, 5000);
  {
    const std::lock_guard lock(r.mutex);
    r.end();
  }
  expect(about(base + 100), "100 bytes inside an allocation of 5000 bytes");
  expect(about(base + 100), "was freed");
}

TEST_F(explain, small_allocations_by_their_own_size) {
  memory::small_objects objects;
  coherence::region& slab = allocate(base, granule_size, &objects);
  objects.add_slab(base);
  std::byte* const first = objects.allocate(100);
  std::byte* const second = objects.allocate(200);
  expect(about(first + 130), "30 bytes past the end of the allocation of 100 bytes");
  expect(about(second + 300), "100 bytes past the end of the allocation of 200 bytes");
  expect(about(base + granule_size + 8), "past the end of the allocation of 200 bytes");
  objects.free({second, 200});
  regions.note_freed({second, 200});
  expect(about(second), "0 bytes inside an allocation of 200 bytes");
  expect(about(second), "was freed");
  expect(about(first + 130), "past the end of the allocation of 100 bytes");
  objects.free({first, 100});
  regions.note_freed({first, 100});
  ASSERT_TRUE(objects.remove_slab(base));
  release(slab);
  expect(about(first + 3), "3 bytes inside an allocation of 100 bytes");
  expect(about(base + 4096), "but neither in an allocation nor in one that was freed recently");
}

}  // namespace
}  // namespace hpe::fault
