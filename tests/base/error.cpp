#include "runtime/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace {

template <class Action>
hpe::error thrown(Action action) {
  try {
    action();
  } catch (const hpe::error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {HPE_SUCCESS, ""};
}

TEST(Error, RequireThrowsItsSentence) {
  const hpe::error e = thrown([] { HPE_REQUIRE(1 > 2, HPE_ERROR_INVALID_DEVICE, "device {} of {}", 7, 2); });
  EXPECT_EQ(e.status(), HPE_ERROR_INVALID_DEVICE);
  EXPECT_STREQ(e.what(), "device 7 of 2");
}

TEST(Error, RequireDoesNothingWhenTheConditionHolds) {
  int evaluated = 0;
  HPE_REQUIRE(++evaluated == 1, HPE_ERROR_INTERNAL, "{}", ++evaluated);
  EXPECT_EQ(evaluated, 1);
}

TEST(Error, InvariantsNameThemselvesAndTheirPlace) {
  const hpe::error e = thrown([] { HPE_INVARIANT(1 + 1 == 3); });
  EXPECT_EQ(e.status(), HPE_ERROR_INTERNAL);
  EXPECT_NE(std::string(e.what()).find("1 + 1 == 3"), std::string::npos) << e.what();
  EXPECT_NE(std::string(e.what()).find("error.cpp:"), std::string::npos) << e.what();
}

TEST(Error, SystemErrorsTellErrno) {
  errno = ENOSPC;
  const hpe::error e = thrown([] { hpe::throw_system_error("writing the image"); });
  EXPECT_EQ(e.status(), HPE_ERROR_SYSTEM);
  EXPECT_STREQ(e.what(), "writing the image: No space left on device");
}

}  // namespace
