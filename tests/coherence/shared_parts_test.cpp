#include "runtime/coherence/shared_parts.h"

#include <gtest/gtest.h>

namespace hpe::coherence {
namespace {

TEST(shared_parts, are_found_if_they_contain_the_whole_range) {
  shared_parts parts;
  EXPECT_TRUE(parts.empty());
  parts.add(7, {100, 200});
  parts.add(8, {150, 300});
  ASSERT_NE(parts.around({100, 200}), nullptr);
  EXPECT_EQ(parts.around({100, 200})->memory, 7U);
  EXPECT_EQ(parts.around({199, 201})->memory, 8U);
  EXPECT_EQ(parts.around({99, 101}), nullptr);
  EXPECT_EQ(parts.around({140, 201}), nullptr) << "no single part contains the range";
  parts.remove(7);
  EXPECT_EQ(parts.around({100, 150}), nullptr);
  parts.clear();
  EXPECT_TRUE(parts.empty());
}

TEST(shared_parts, count_each_export_of_an_allocation) {
  shared_parts parts;
  parts.add(7, {0, 1000});
  parts.add(8, {0, 1000});
  parts.begin_export(7, {100, 200});
  parts.begin_export(8, {100, 200});
  parts.begin_export(7, {100, 200});
  EXPECT_TRUE(parts.exported({199, 300}));
  EXPECT_FALSE(parts.exported({200, 300}));
  EXPECT_FALSE(parts.exported({0, 100}));
  parts.end_export(7, {100, 200});
  parts.end_export(8, {100, 200});
  EXPECT_TRUE(parts.exported({0, 1000}));
  EXPECT_EQ(parts.all()[0].exported.size(), 1U);
  EXPECT_TRUE(parts.all()[1].exported.empty());
  parts.end_export(7, {100, 200});
  EXPECT_FALSE(parts.exported({0, 1000}));
}

}  // namespace
}  // namespace hpe::coherence
