#include "runtime/transfer/calibration.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/temporary_folder.h"
#include "tests/transfer/machine.h"

namespace hpe::transfer {
namespace {

using namespace transfer_test;
namespace fs = std::filesystem;

class calibration_test : public testing::Test {
 protected:
  /// Overwrites the only file in the folder.
  void write(const std::string& text) const { std::ofstream(fs::directory_iterator(folder)->path()) << text; }

  const temporary_folder made;
  const fs::path folder = made.path();
};

TEST_F(calibration_test, is_found_again_under_its_key_alone) {
  const calibration found{2 * mib, 6};
  const calibration_cache here(folder / "a" / "b", "this machine");
  EXPECT_FALSE(here.load(4 * mib, 8));
  here.store(found);
  EXPECT_EQ(here.load(4 * mib, 8), found);
  EXPECT_FALSE(calibration_cache(folder / "a" / "b", "another machine").load(4 * mib, 8));
  here.store({mib, 1});
  EXPECT_EQ(here.load(4 * mib, 8), (calibration{mib, 1}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "a" / "b"), fs::directory_iterator()), 1);
}

TEST_F(calibration_test, a_malformed_file_is_ignored) {
  const calibration_cache here(folder, "key");
  here.store({2 * mib, 6});
  EXPECT_FALSE(here.load(mib, 8)) << "the staging buffers are smaller than those of the calibration";
  EXPECT_FALSE(here.load(4 * mib, 4)) << "fewer threads are allowed than at the calibration";
  for (const char* text : {"", "key\n", "key\n2097152\n", "key\n-5 2\n", "key\n5 2\n", "key\n0 2\n", "key\n2097152 0\n",
                           "other\n2097152 6\n", "key\nmany 6\n", "\n\n\n"}) {
    write(text);
    EXPECT_FALSE(here.load(4 * mib, 8)) << text;
  }
}

TEST_F(calibration_test, a_place_that_cannot_be_written_is_no_failure) {
  std::ofstream(folder / "file") << "in the way";
  const calibration_cache here(folder / "file", "key");
  here.store({mib, 1});
  EXPECT_FALSE(here.load(mib, 8));
  const calibration_cache nowhere("", "key");
  nowhere.store({mib, 1});
  EXPECT_FALSE(nowhere.load(mib, 8));
}

TEST_F(calibration_test, the_cache_lies_where_the_user_wants_it) {
  const char* const before = std::getenv("XDG_CACHE_HOME");
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  machine soft("soft:2");
  const calibration found{mib, 2};
  calibration_cache::of(*soft.set, soft.set->at(0).info()).store(found);
  EXPECT_TRUE(fs::exists(folder / "hpe"));
  EXPECT_EQ(calibration_cache::of(*soft.set, soft.set->at(0).info()).load(mib, 2), found);
  before != nullptr ? ::setenv("XDG_CACHE_HOME", before, 1) : ::unsetenv("XDG_CACHE_HOME");
}

TEST_F(calibration_test, trials_give_usable_settings) {
  machine soft("soft:2");
  for (const std::size_t size : {4 * mib, mib, 64 * kib}) {
    std::byte* const buffers[] = {soft.staging(), soft.staging() + size};
    const calibration found = calibrate(*soft.set, 1, soft.at(1), buffers, size, 4);
    EXPECT_LE(found.chunk, size);
    EXPECT_GE(found.chunk, std::min(size, 2 * mib));
    EXPECT_EQ(found.chunk % 4096, 0U);
    EXPECT_GE(found.threads, 1U);
    EXPECT_LE(found.threads, 4U);
  }
}

}  // namespace
}  // namespace hpe::transfer
