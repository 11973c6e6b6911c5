// Tests sizes and addresses of granules and of the address space, the program's own folders, and the rank of the
// process.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/base/granule.h"
#include "runtime/base/own_process.h"
#include "runtime/base/timepoint.h"
#include "runtime/base/uvas_layout.h"

namespace {

TEST(RoundUp, GivesTheNextMultiple) {
  struct {
    std::size_t value, multiple, result;
  } const cases[] = {{0, 8, 0}, {1, 8, 8}, {7, 8, 8}, {8, 8, 8}, {9, 8, 16}, {10, 5, 10}, {11, 5, 15}, {3, 1, 3}};
  for (const auto& c : cases) EXPECT_EQ(hpe::round_up(c.value, c.multiple), c.result) << c.value << ", " << c.multiple;
  EXPECT_EQ(hpe::granule_size, std::size_t{2} << 20);
}

TEST(UvasLayout, ContainsItsBytesAndNoOthers) {
  const hpe::uvas_layout layout{0x10000, 0x1000, 3};
  EXPECT_EQ(layout.size(), 0x3000U);
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
  EXPECT_FALSE(layout.contains(at(0xffff)));
  EXPECT_TRUE(layout.contains(at(0x10000)));
  EXPECT_TRUE(layout.contains(at(0x12fff)));
  EXPECT_FALSE(layout.contains(at(0x13000)));
  EXPECT_FALSE(layout.contains(nullptr));
}

TEST(Timepoint, OfNoTimelineIsNothingToWaitFor) {
  EXPECT_TRUE(hpe::timepoint().none());
  EXPECT_FALSE((hpe::timepoint{1, 0}.none()));
}

TEST(OwnFolders, ContainTheFolderOfThisProgram) {
  const std::string here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_EQ(hpe::own_folders(), (std::vector<std::string>{here, here})) << "hpe is linked into the program";
}

TEST(Rank, IsThatOfTheFirstLauncherThatSetsIt) {
  const std::initializer_list<const char*> variables{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
  for (const char* const variable : variables) ::unsetenv(variable);
  EXPECT_EQ(hpe::rank_by_environment(), nullptr);
  for (const char* const variable : {"SLURM_PROCID", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"}) {
    ::setenv(variable, variable, 1);
    EXPECT_STREQ(hpe::rank_by_environment(), variable);
  }
  for (const char* const variable : variables) ::unsetenv(variable);
}

}  // namespace
