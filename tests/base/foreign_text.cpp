#include "runtime/base/foreign_text.h"

#include <gtest/gtest.h>

namespace {

using hpe::first_characters, hpe::one_line_of;

TEST(ForeignText, ValidTextStaysAsItIs) {
  EXPECT_EQ(one_line_of("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8d"), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8c\x8d");
  EXPECT_EQ(one_line_of(""), "");
}

TEST(ForeignText, AByteThatIsNotUtf8IsReplaced) {
  // A Latin-1 character, truncated characters, overlong forms, a surrogate, a code point beyond the last one, and stray
  // bytes.
  for (const std::string bytes : {"\xe9", "\xc3", "\xe2\x82", "\xf0\x9f\x8c", "\xc0\xaf", "\xe0\x80\x80",
                                  "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\x80", "\xff"}) {
    std::string replaced;
    for (std::size_t i = 0; i < bytes.size(); ++i) replaced += "\ufffd";
    EXPECT_EQ(one_line_of("<" + bytes + ">"), "<" + replaced + ">");
    EXPECT_EQ(one_line_of(bytes), replaced) << "at the end of the text";
  }
}

TEST(ForeignText, AControlCharacterIsABlank) {
  EXPECT_EQ(one_line_of(std::string("a\0b\nc\x1b[2J\x7f"
                                    "d\xc2\x9b"
                                    "2J\xc2\xa0",
                                    17)),
            "a b c [2J d 2J\xc2\xa0");
}

TEST(ForeignText, ATextIsCutBetweenCharacters) {
  EXPECT_EQ(first_characters("a\xe2\x82\xac"
                             "b",
                             2),
            "a\xe2\x82\xac");
  EXPECT_EQ(first_characters("a\xe2\x82\xac"
                             "b",
                             0),
            "");
  EXPECT_EQ(first_characters("a\xe2\x82\xac"
                             "b",
                             9),
            "a\xe2\x82\xac"
            "b");
}

}  // namespace
