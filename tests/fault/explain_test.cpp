#include "runtime/fault/explain.h"

#include <gtest/gtest.h>

#include "runtime/base/granule.h"
#include "tests/device/layout.h"

namespace hpe::fault {
namespace {

class explain : public testing::Test {
 protected:
  coherence::region& allocate(std::byte* base, std::uint64_t bytes) {
    coherence::region& r = regions.take();
    const std::lock_guard lock(r.mutex);
    r.begin({coherence::region_kind::device, base, bytes, round_up(bytes, 4096), 65536, {0}}, 0, 0);
    directory.assign(base, round_up(bytes, granule_size) / granule_size, {r.id, 0, 0});
    return r;
  }
  void release(coherence::region& r) {
    const std::lock_guard lock(r.mutex);
    directory.clear(r.is.base, round_up(r.is.bytes, granule_size) / granule_size);
    r.end();
    regions.give_back(r);
  }
  [[nodiscard]] std::string about(const std::byte* p, bool write = false) const {
    return explain_stray_access(p, write, directory, regions);
  }
  static void expect(const std::string& sentence, const char* part) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  }

  memory::directory directory{device_test::layout_for(4)};
  coherence::region_table regions;
  std::byte* const base = reinterpret_cast<std::byte*>(device_test::layout_base);
};

TEST_F(explain, what_was_done_and_where) {
  expect(about(base), "invalid read at 0x");
  expect(about(base, true), "invalid write at 0x");
  expect(about(base), "no allocation is or was there");
}

TEST_F(explain, past_the_end_of_an_allocation) {
  allocate(base, 5000);
  expect(about(base + 8192), "3192 bytes past the end of the allocation of 5000 bytes");
  // An allocation that fills its granule: the address is in the next one.
  coherence::region& full = allocate(base + 2 * granule_size, granule_size);
  expect(about(full.is.base + granule_size + 8), "8 bytes past the end");
}

TEST_F(explain, freed) {
  release(allocate(base + 4 * granule_size, 5000));
  expect(about(base + 4 * granule_size + 100), "100 bytes inside an allocation of 5000 bytes");
  expect(about(base + 4 * granule_size + 100), "was freed");
  expect(about(base + 6 * granule_size), "no allocation is or was there");
}

}  // namespace
}  // namespace hpe::fault
