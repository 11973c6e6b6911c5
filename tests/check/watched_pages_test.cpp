#include "runtime/check/watched_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>

using hpe::check::watched_pages;
using hpe::os::page_protection;

namespace {

constexpr std::uintptr_t page = watched_pages::page_bytes;

class WatchedPages : public testing::Test {
 protected:
  WatchedPages() {
    memory_ = static_cast<char*>(::mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(::pipe(pipe_), 0);
  }
  ~WatchedPages() override {
    ::munmap(memory_, 4 * page);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  std::uintptr_t at(std::uintptr_t offset) const { return reinterpret_cast<std::uintptr_t>(memory_) + offset; }
  /// What the operating system lets the program do with each page: - nothing, r read, w read and write.
  std::string protections() {
    std::string result;
    for (std::uintptr_t n = 0; n < 4; ++n) {
      char* const p = memory_ + n * page;
      char byte = 0;
      if (::write(pipe_[1], p, 1) != 1) {
        result += '-';
        continue;
      }
      const bool writes = ::read(pipe_[0], p, 1) == 1;
      if (!writes) {
        EXPECT_EQ(::read(pipe_[0], &byte, 1), 1);
      }
      result += writes ? 'w' : 'r';
    }
    return result;
  }

  char* memory_;
  int pipe_[2]{};
  const std::unique_ptr<watched_pages> pages_ = std::make_unique<watched_pages>();
};

using enum watched_pages::answer;

}  // namespace

TEST_F(WatchedPages, AreClosedAsLongAsWorkUsesThem) {
  ASSERT_TRUE(pages_->add(at(100), at(page + 1), false, false));
  EXPECT_EQ(protections(), "rrww");
  ASSERT_TRUE(pages_->add(at(page), at(3 * page), true, false));
  EXPECT_EQ(protections(), "r--w");
  pages_->remove(at(page), at(3 * page), true);
  EXPECT_EQ(protections(), "rrww");
  pages_->remove(at(100), at(page + 1), false);
  EXPECT_EQ(protections(), "wwww");
}

TEST_F(WatchedPages, AreOpenForOneAccess) {
  ASSERT_TRUE(pages_->add(at(0), at(2 * page), true, false));
  EXPECT_EQ(pages_->touched(at(page + 5), false), touched);
  EXPECT_EQ(protections(), "-www");
  pages_->close(at(page + 5));
  EXPECT_EQ(protections(), "--ww");
  EXPECT_EQ(pages_->touched(at(3 * page), true), not_watched);
  pages_->remove(at(0), at(2 * page), true);
  EXPECT_EQ(pages_->touched(at(page), true), opened) << "the fault came before the page was opened";
}

TEST_F(WatchedPages, RemainOpenWhenTheyAreTouchedTooOften) {
  ASSERT_TRUE(pages_->add(at(0), at(page), true, false));
  for (std::uint32_t n = 0; n < watched_pages::most_touches; ++n) {
    EXPECT_FALSE(pages_->is_tired(at(0)));
    EXPECT_EQ(pages_->touched(at(0), false), touched);
    pages_->close(at(0));
  }
  EXPECT_TRUE(pages_->is_tired(at(0)));
  EXPECT_EQ(protections(), "wwww");
  ASSERT_TRUE(pages_->add(at(0), at(page), true, false));
  EXPECT_EQ(protections(), "-www") << "a further use";
}

TEST_F(WatchedPages, AreOpenOnlyAsFarAsTheProtocolAllows) {
  bool failed = false;
  EXPECT_FALSE(pages_->allow(at(0), at(page), page_protection::read, failed)) << "never watched";
  ASSERT_TRUE(pages_->add(at(0), at(2 * page), false, true));
  EXPECT_EQ(protections(), "--ww") << "the protocol opens the pages";
  EXPECT_EQ(pages_->touched(at(0), true), not_watched) << "a fault for the protocol";
  ASSERT_TRUE(pages_->allow(at(0), at(3 * page), page_protection::read_write, failed));
  EXPECT_EQ(protections(), "rrww");
  EXPECT_EQ(pages_->touched(at(0), true), touched);
  ASSERT_TRUE(pages_->allow(at(0), at(page), page_protection::none, failed));
  pages_->close(at(0));
  EXPECT_EQ(protections(), "-rww");
  pages_->remove(at(0), at(2 * page), false);
  EXPECT_EQ(protections(), "-www");
  EXPECT_FALSE(failed);
}

TEST_F(WatchedPages, AreAllOpenedForASystemCall) {
  EXPECT_FALSE(pages_->open_all());
  ASSERT_TRUE(pages_->add(at(page), at(3 * page), true, false));
  EXPECT_TRUE(pages_->open_all());
  EXPECT_EQ(protections(), "wwww");
  EXPECT_FALSE(pages_->open_all());
  EXPECT_TRUE(pages_->is_in_use(at(0), at(page + 1)));
  EXPECT_FALSE(pages_->is_in_use(at(0), at(page)));
}
