#include "runtime/base/demangled.h"

#include <gtest/gtest.h>

namespace {

using hpe::demangled;

TEST(Demangled, NamesSymbolsAsTheLanguageDoes) {
  EXPECT_EQ(demangled("_Z5scalePfi"), "scale(float*, int)");
  EXPECT_EQ(demangled("scale"), "scale");
  EXPECT_EQ(demangled("f"), "f") << "a symbol of C, not the type float";
  EXPECT_EQ(demangled("_Zno_name"), "_Zno_name");
  EXPECT_EQ(demangled("scale(float*, int)"), "scale(float*, int)") << "demangled before";
}

}  // namespace
