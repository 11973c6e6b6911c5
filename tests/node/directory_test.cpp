// The node directory: a file that is there while somebody shares memory.

#include "runtime/node/directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/node/process.h"

namespace node_test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t MiB = std::size_t{1} << 20;

TEST(Directory, IsRemovedByTheLastProcessThatEnds) {
  {
    process a;
    process b;
    (void)a.begin(a.allocate(MiB), 0, 1);
    (void)b.begin(b.allocate(MiB), 0, 1);
    struct stat found {};
    ASSERT_EQ(::stat(directory_file().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600U);
    EXPECT_EQ(found.st_uid, ::geteuid());
    EXPECT_EQ(a.leave(), 0);
    EXPECT_TRUE(fs::exists(directory_file())) << "somebody is still there";
    EXPECT_EQ(b.leave(), 0);
  }
  EXPECT_FALSE(fs::exists(directory_file()));
}

TEST(Directory, OfKilledProcessesIsUsedAndRemovedByTheNext) {
  std::vector<hpeExport> stale;
  for (int i = 0; i < 3; ++i) {
    process a;
    stale.push_back(a.begin(a.allocate(MiB), 0, 1));
    a.kill();
  }
  EXPECT_TRUE(fs::exists(directory_file()));
  {
    process a;
    process b;
    const hpeExport handle = a.begin(a.allocate(MiB), 0, 1);
    EXPECT_TRUE(b.reachable(handle));
    for (const hpeExport& h : stale) EXPECT_FALSE(b.reachable(h));
  }
  EXPECT_FALSE(fs::exists(directory_file()));
}

TEST(Directory, OfWrongFormIsPutRight) {
  { process a; }
  ASSERT_FALSE(fs::exists(directory_file()));
  // As a process leaves it that is killed right after it made the file.
  std::FILE* empty = std::fopen(directory_file().c_str(), "w");
  ASSERT_NE(empty, nullptr);
  std::fclose(empty);
  fs::permissions(directory_file(), fs::perms::owner_read | fs::perms::owner_write);
  {
    process a;
    process b;
    const hpeExport handle = a.begin(a.allocate(MiB), 0, 1);
    EXPECT_TRUE(b.reachable(handle));
  }
  EXPECT_FALSE(fs::exists(directory_file()));
}

TEST(Directory, ThatOthersCanWriteIsRefused) {
  ASSERT_FALSE(fs::exists(directory_file()));
  std::FILE* foreign = std::fopen(directory_file().c_str(), "w");
  ASSERT_NE(foreign, nullptr);
  std::fclose(foreign);
  fs::permissions(directory_file(), fs::perms::all);
  {
    process a;
    const std::uint64_t memory = a.allocate(MiB);
    const report r = a.tell({.what = order::kind::begin, .number = memory, .bytes = 1});
    EXPECT_EQ(r.status, HPE_ERROR_NOT_SUPPORTED);
    EXPECT_NE(std::string(r.words).find(directory_name()), std::string::npos) << r.words;
    EXPECT_EQ(a.tell({.what = order::kind::free, .number = memory}).status, HPE_SUCCESS) << "nothing was exported";
  }
  fs::remove(directory_file());
}

TEST(Directory, ThatSomebodyRemovedIsMadeAgain) {
  process a;
  (void)a.begin(a.allocate(MiB), 0, 1);
  fs::remove(directory_file());
  process b;
  process c;
  const hpeExport handle = b.begin(b.allocate(MiB), 0, 1);
  EXPECT_TRUE(c.reachable(handle));
  EXPECT_EQ(a.leave(), 0);
  EXPECT_TRUE(fs::exists(directory_file())) << "it is not the one that this process was in";
  EXPECT_TRUE(c.reachable(handle));
}

TEST(Directory, IsNotSharedByContainersWithTheirOwnMemory) {
  process a;
  process b;
  const hpeExport handle = a.begin(a.allocate(MiB), 0, 1);
  if (b.tell({.what = order::kind::private_shm}).value != 1)
    GTEST_SKIP() << "only root can make a name space of mounts";
  EXPECT_FALSE(b.reachable(handle));
  EXPECT_EQ(b.copy(b.allocate(1), 0, handle, 0, 1).status, HPE_ERROR_NOT_FOUND);
}

TEST(Directory, HasNoPlaceTwice) {
  process a;
  process b;
  for (process* p : {&a, &b})
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(p->tell({.what = order::kind::begin, .number = p->allocate(MiB), .bytes = 1}).status, HPE_SUCCESS);
  hpe::node::directory mine(directory_name());
  const hpe::node::process_key key{{hpe::node::random_number(), hpe::node::random_number()}};
  const std::uint32_t place = mine.join(key);
  EXPECT_EQ(mine.join(key), place);
  const hpeExport handle = a.begin(a.allocate(MiB), 0, 1);
  const hpe::node::handle h = *hpe::node::decode(handle);
  EXPECT_NE(h.place, place);
  EXPECT_TRUE(mine.alive(h.place, h.process));
  EXPECT_FALSE(mine.alive(h.place, key));
  EXPECT_FALSE(mine.alive(h.place + 100, h.process));
  a.kill();
  EXPECT_FALSE(mine.alive(h.place, h.process));
}

}  // namespace
}  // namespace node_test
