#include "apps/command_line/charts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hpe::command_line {
namespace {

TEST(Charts, AreWrittenWithLabelsScalesAndPoints) {
  const chart c{"a \"chart\"", {"bytes", scale::sizes}, {"us", scale::decades}, {{"one", {{4096, 0.5}, {65536, 2}}}}};
  const auto json = nlohmann::json::parse(as_json("head", {{"first", {c}}, {"second", {c, {"empty", {}, {}, {}}}}}));
  EXPECT_EQ(json.at("title"), "head");
  ASSERT_EQ(json.at("charts").size(), 2U);
  const auto& row = json.at("charts").at(1);
  EXPECT_EQ(row.at("picture"), "second");
  EXPECT_EQ(row.at("chart"), "a \"chart\"");
  EXPECT_EQ(row.at("line"), "one");
  EXPECT_EQ(row.at("x_label"), "bytes");
  EXPECT_EQ(row.at("y_label"), "us");
  EXPECT_EQ(row.at("x_scale"), "sizes");
  EXPECT_EQ(row.at("y_scale"), "decades");
  EXPECT_EQ(row.at("x"), (std::vector<double>{4096, 65536}));
  EXPECT_EQ(row.at("y"), (std::vector<double>{0.5, 2}));
}

}  // namespace
}  // namespace hpe::command_line
