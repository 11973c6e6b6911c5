#include "runtime/check/declared_accesses.h"

#include <gtest/gtest.h>

using namespace hpe::check;

namespace {

constexpr std::uint64_t base = 0x10000, other = 0x20000;
constexpr std::uint64_t bytes = 1000;

class DeclaredAccesses : public testing::Test {
 protected:
  static std::shared_ptr<const call_place> place(const char* call) {
    return std::make_shared<const call_place>(call_place::here(call));
  }
  DeclaredAccesses() {
    checked_operation made{"kernel add", place("hpeLaunch"), true, {{1, other}, {2, base + 10}}};
    made.source_of = [](std::uint32_t site, use) { return "kernel.cu:" + std::to_string(site); };
    launch_ = std::make_shared<const checked_operation>(std::move(made));
    accesses_.allocated(base, place("hpeMalloc"));
  }
  /// The kinds of the findings of a launch, and the addresses and sizes.
  std::vector<std::string> compare(const std::vector<declared_range>& declared,
                                   const std::vector<access_range>& recorded) {
    accesses_.compare(launch_, declared, recorded);
    std::vector<std::string> result;
    for (const finding& each : accesses_.take())
      result.push_back(each.kind + " " + std::to_string(each.address - base) + " " + std::to_string(each.bytes));
    return result;
  }

  static constexpr declared_range in{base, base + bytes, true, false}, out{base, base + bytes, false, true},
      inout{base, base + bytes, true, true};
  operation_ptr launch_;
  declared_accesses accesses_{ignored_findings("undeclared-read a_kernel_to_ignore\n"),
                              [](std::uint64_t address) {
                                if (address - base < bytes) return memory_extent{base, bytes};
                                if (address - other < bytes) return memory_extent{other, bytes};
                                return memory_extent();
                              },
                              [](std::uint64_t address) { return address < 0x100000; }};
};

using words = std::vector<std::string>;

}  // namespace

TEST_F(DeclaredAccesses, AreWhatTheLaunchMayDo) {
  const access_range read{base, base + 100, use::read, 3}, write{base, base + 100, use::write, 4},
      atomic{base, base + 100, use::atomic, 5}, strong{base, base + 100, use::strong_read, 6};
  EXPECT_EQ(compare({inout}, {read, write, atomic}), words());
  EXPECT_EQ(compare({in}, {read, strong}), words());
  EXPECT_EQ(compare({out}, {strong}), words()) << "another thread may have written the bytes";
  EXPECT_EQ(compare({in}, {atomic}), words{"undeclared-write 0 100"});
  EXPECT_EQ(compare({}, {strong}), words{"undeclared-read 0 100"});
  EXPECT_EQ(compare({out}, {write, atomic}), words());
  EXPECT_EQ(compare({in, out}, {read, write}), words());
  EXPECT_EQ(compare({in}, {write}), words{"undeclared-write 0 100"});
  EXPECT_EQ(compare({out}, {read}), words{"undeclared-read 0 100"});
  EXPECT_EQ(compare({}, {read}), words{"undeclared-read 0 100"});
  EXPECT_EQ(compare({}, {atomic}), words{"undeclared-write 0 100"});
}

TEST_F(DeclaredAccesses, AreOutsideOfARange) {
  const declared_range half{base, base + 500, true, true}, end{base + 900, base + bytes, true, true};
  EXPECT_EQ(compare({half}, {{base + 400, base + 600, use::write, 1}}), words{"beyond-range 500 100"});
  EXPECT_EQ(compare({half, end}, {{base + 400, base + bytes, use::read, 1}}), words{"beyond-range 500 400"});
  EXPECT_EQ(compare({in}, {{base, base + bytes + 8, use::read, 1}}), words{"out-of-range 1000 8"});
  EXPECT_EQ(compare({in}, {{0x200000, 0x200010, use::write, 1}}), words()) << "not memory of the program";
}

TEST_F(DeclaredAccesses, TellAWriteRatherThanARead) {
  EXPECT_EQ(compare({}, {{other, other + 4, use::read, 1}, {other + 8, other + 12, use::read, 2}}),
            words{"undeclared-read 65536 4"});
  accesses_.compare(launch_, {{in}}, {{{base, base + 8, use::read, 1}, {base + 4, base + 8, use::write, 2}}});
  const std::vector<finding> found = accesses_.take();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].sentence, "kernel add writes memory that its launch declares as only read (HPE_IN)");
  EXPECT_EQ(found[0].offset, 4U);
  EXPECT_EQ(found[0].now->argument, 2);
  EXPECT_EQ(found[0].now->source, "kernel.cu:2");
  EXPECT_EQ(found[0].allocation->what, "hpeMalloc");
}

TEST_F(DeclaredAccesses, RacesOfALaunchAreTold) {
  const launch_race race{false, base + 40, base + 44, {use::write, 3}, {use::read, 4}};
  accesses_.add(launch_, {{race, race}});
  const std::vector<finding> found = accesses_.take();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, "block-race");
  EXPECT_EQ(found[0].offset, 40U);
  EXPECT_EQ(found[0].count, 1U) << "two pairs of bytes of one launch";
  EXPECT_EQ(found[0].now->source, "kernel.cu:4");
  EXPECT_EQ(found[0].earlier->source, "kernel.cu:3");
  EXPECT_EQ(found[0].earlier->argument, 2);
  EXPECT_EQ(found[0].allocation->what, "hpeMalloc");
}

TEST_F(DeclaredAccesses, CountLaunches) {
  const access_range write{base, base + 4, use::write, 1};
  for (int n = 0; n < 3; ++n) {
    const auto again = std::make_shared<const checked_operation>(*launch_);
    accesses_.compare(again, {{in}}, {{write, {base + 8, base + 12, use::write, 2}}});
  }
  const std::vector<finding> found = accesses_.take();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].count, 3U);
  EXPECT_TRUE(accesses_.take().empty());
}
