#include "runtime/check/watched_pages.h"

#include <memory>

#include "tests/check/four_pages.h"

using namespace hpe::check;
using hpe::os::page_protection;

namespace {

class WatchedPages : public with_four_pages {
 protected:
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

TEST_F(WatchedPages, AreNotWatchedIfOneOfThemCannotBeProtected) {
  ::munmap(memory_ + 2 * page, page);
  EXPECT_FALSE(pages_->add(at(0), at(4 * page), true, false));
  EXPECT_EQ(protections(), "ww-w");
  EXPECT_FALSE(pages_->is_in_use(at(0), at(4 * page)));
  ASSERT_TRUE(pages_->add(at(0), at(2 * page), true, false));
  EXPECT_EQ(protections(), "---w");
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

TEST_F(WatchedPages, AreReadableWhileTheyAreLent) {
  ASSERT_TRUE(pages_->add(at(0), at(3 * page), true, false));
  pages_->lend(at(page), at(page + 10));
  pages_->lend(at(page), at(4 * page));
  EXPECT_EQ(protections(), "-rrw");
  pages_->take_back(at(page), at(page + 10));
  EXPECT_EQ(protections(), "-rrw");
  EXPECT_EQ(pages_->touched(at(page), true), touched);
  pages_->close(at(page));
  pages_->remove(at(0), at(3 * page), true);
  EXPECT_EQ(protections(), "wwww");
  ASSERT_TRUE(pages_->add(at(3 * page), at(4 * page), true, false));
  EXPECT_EQ(protections(), "wwwr");
  pages_->take_back(at(page), at(4 * page));
  EXPECT_EQ(protections(), "www-");
}

TEST_F(WatchedPages, AreOpenedForASystemCallUntilTheirNextUse) {
  ASSERT_TRUE(pages_->add(at(0), at(3 * page), true, false));
  EXPECT_FALSE(pages_->open(at(3 * page), at(4 * page)));
  EXPECT_TRUE(pages_->open(at(page + 10), at(page + 20)));
  EXPECT_FALSE(pages_->open(at(page), at(page + 1))) << "it is open";
  EXPECT_EQ(protections(), "-w-w");
  pages_->add_again(at(0), at(3 * page));
  EXPECT_EQ(protections(), "---w");
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
