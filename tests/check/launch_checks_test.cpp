// Launches on devices that record no accesses: GPUs (the stand-in for the CUDA driver, which LD_LIBRARY_PATH names),
// and soft devices that are told not to record. hpe compares the memory that a launch declares as only read.

#include "runtime/core/operations/launch_checks.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/core/operations/read_only_memory.h"
#include "runtime/core/runtime.h"

namespace hpe::core {
namespace {

// The first thread changes the bits `mask` of the word at byte `offset` of `p`.
constexpr const char* change_code = R"(.version 7.0
.target sm_60
.address_size 64
.visible .entry change(.param .u64 p, .param .u64 offset, .param .u64 mask)
{
  .reg .b64 %p, %offset, %mask, %word;
  ld.param.u64 %p, [p];
  ld.param.u64 %offset, [offset];
  ld.param.u64 %mask, [mask];
  add.u64 %p, %p, %offset;
  ld.global.u64 %word, [%p];
  xor.b64 %word, %word, %mask;
  st.global.u64 [%p], %word;
  ret;
}
)";

struct change {
  std::byte* p;
  std::uint64_t offset;
  std::uint64_t mask;
};

class compared_launches : public testing::TestWithParam<const char*> {
 protected:
  void start(checked_launches which = checked_launches::some) {
    options chosen;
    chosen.devices = GetParam();
    chosen.check = true;  // the devices read the environment, and record nothing
    chosen.check_launches = which;
    runtime_ = std::make_unique<runtime>(chosen);
    ASSERT_FALSE(runtime_->checks()->records());
    kernel_ = runtime_->kernels().find(runtime_->ptx().load({change_code}), "change");
  }
  std::byte* array(std::size_t bytes) {
    std::byte* const made = runtime_->memory().allocate(bytes, 0);
    runtime_->copies().fill(made, 3, bytes);
    return made;
  }
  void launch(const change& parameters, std::vector<hpeAccess> accesses) {
    static_cast<void>(
        runtime_->ptx().launch(0, kernel_, {}, std::as_bytes(std::span(&parameters, 1)), {.accesses = accesses}));
  }
  std::vector<check::finding> found() { return runtime_->checks()->take_findings(); }

  static constexpr std::uint64_t bit = std::uint64_t{1} << 61;
  std::unique_ptr<runtime> runtime_;
  hpeKernel kernel_ = nullptr;
};

TEST_P(compared_launches, that_change_one_bit_of_read_only_memory_are_found) {
  start();
  const std::size_t bytes = (std::size_t{48} << 20) + 8, at = (std::size_t{23} << 20) + 16;
  std::byte* const p = array(bytes);
  launch({p, at, bit}, {{p, bytes, HPE_IN}});
  const auto all = found();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].kind, "undeclared-write");
  EXPECT_EQ(all[0].now->what, "kernel change");
  EXPECT_EQ(all[0].now->argument, 1);
  EXPECT_NE(all[0].missing.find("hpe::inout"), std::string::npos);
  EXPECT_LE(all[0].offset, at);
  EXPECT_GT(all[0].offset + all[0].bytes, at);
  EXPECT_LE(all[0].bytes, bytes / read_only_memory::most_parts + read_only_memory::part_bytes);
}

TEST_P(compared_launches, that_declare_the_write_or_change_nothing_are_not_found) {
  start();
  const std::size_t bytes = 1 << 20;
  std::byte* const p = array(bytes);
  launch({p, 64, bit}, {{p, bytes, HPE_INOUT}});
  launch({p, 64, 0}, {{p, bytes, HPE_IN}});
  // A part of the memory is declared as written too.
  launch({p, 4096 + 8, bit}, {{p, bytes, HPE_IN}, {p + 4096 + 8, 8, HPE_INOUT}});
  EXPECT_TRUE(found().empty());
  launch({p, 4096 + 16, bit}, {{p, bytes, HPE_IN}, {p + 4096 + 8, 8, HPE_INOUT}});
  EXPECT_EQ(found().size(), 1U);
}

// Fingerprints are of 16 bytes and their multiples.
TEST_P(compared_launches, that_change_the_ends_of_a_range_are_found) {
  start(checked_launches::all);
  const std::size_t bytes = 40000;
  std::byte* const p = array(bytes);
  for (const std::size_t at : {8, 16, 39976, 39984}) {
    launch({p, at, bit}, {{p + 8, 39984, HPE_IN}});
    const auto all = found();
    ASSERT_EQ(all.size(), 1U) << at;
    EXPECT_TRUE(all[0].offset <= at && at < all[0].offset + all[0].bytes) << at;
  }
  for (const std::size_t at : {0, 39992}) launch({p, at, bit}, {{p + 8, 39984, HPE_IN}});
  EXPECT_TRUE(found().empty());
  launch({p, 16, std::uint64_t{1} << 40}, {{p + 16, 6, HPE_IN}});
  EXPECT_EQ(found().size(), 1U);
}

TEST_P(compared_launches, are_the_first_three_and_those_whose_number_is_a_power_of_two) {
  for (const checked_launches which : {checked_launches::some, checked_launches::all}) {
    start(which);
    std::byte* const p = array(4096);
    std::vector<int> seen, wanted;
    for (int number = 1; number <= 17; ++number) {
      launch({p, 0, bit}, {{p, 4096, HPE_IN}});
      if (!found().empty()) seen.push_back(number);
      if (which == checked_launches::all || number <= 4 || number == 8 || number == 16) wanted.push_back(number);
    }
    EXPECT_EQ(seen, wanted);
    runtime_.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(devices, compared_launches, testing::Values("cuda:1", "soft:1"),
                         [](const auto& p) { return std::string(p.param).substr(0, 4); });

}  // namespace
}  // namespace hpe::core
