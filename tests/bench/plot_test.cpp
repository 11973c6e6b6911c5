#include "bench/plot.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hpe::bench {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

/// The numbers behind cx (or cy) of all circles: the marks of the first line.
std::vector<double> circles(const std::string& svg, const std::string& which) {
  std::vector<double> values;
  const std::string key = " " + which + "=\"";
  for (std::size_t at = 0; (at = svg.find(key, at)) != std::string::npos;)
    values.push_back(std::stod(svg.substr(at += key.size())));
  return values;
}

chart one_line(scale x, scale y, std::vector<std::pair<double, double>> points) {
  return {"title", {"x", x}, {"y", y}, {{"only", std::move(points)}}};
}

TEST(Plot, PlacesPointsInProportion) {
  const std::string svg = draw("", {one_line(scale::linear, scale::linear, {{0, 0}, {5, 1}, {10, 4}})});
  const auto x = circles(svg, "cx"), y = circles(svg, "cy");
  ASSERT_GE(x.size(), 3U);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.2);
  EXPECT_GT(y[0], y[1]);  // up is less
  EXPECT_NEAR((y[0] - y[1]) * 4, y[0] - y[2], 0.5);
}

TEST(Plot, LogarithmicAxesHaveEqualStepsForEqualFactors) {
  const std::string svg = draw("", {one_line(scale::sizes, scale::decades, {{4096, 1}, {65536, 10}, {1048576, 100}})});
  const auto x = circles(svg, "cx"), y = circles(svg, "cy");
  ASSERT_GE(x.size(), 3U);
  EXPECT_NEAR(x[1] - x[0], x[2] - x[1], 0.2);
  EXPECT_NEAR(y[0] - y[1], y[1] - y[2], 0.2);
  for (const char* label : {">4 KiB<", ">1 MiB<", ">1<", ">100<"}) EXPECT_EQ(count(svg, label), 1U) << label;
}

TEST(Plot, LinesOfOneNameLookAlikeAndAreNamedOnce) {
  const chart a{"first", {"x", scale::linear}, {"y", scale::linear}, {{"one", {{1, 1}}}, {"two", {{1, 2}}}}};
  const chart b{"second", {"x", scale::linear}, {"y", scale::linear}, {{"two", {{1, 3}}}}};
  const std::string svg = draw("head", {a, b});
  EXPECT_EQ(count(svg, ">two<"), 1U);
  EXPECT_EQ(count(svg, "#d55e00"), 6U);  // the second colour: line and mark in two charts and in the legend
  for (const char* words : {">head<", ">first<", ">second<"}) EXPECT_EQ(count(svg, words), 1U) << words;
}

TEST(Plot, NothingAndStrangeNamesAreDrawnToo) {
  const std::string svg =
      draw("a < b & c", {chart{"empty", {"x"}, {"y"}, {}}, chart{"no points", {"x"}, {"y"}, {{"l", {}}}}});
  EXPECT_EQ(count(svg, "a &lt; b &amp; c"), 1U);
  EXPECT_EQ(count(svg, "nan"), 0U);
  EXPECT_EQ(count(svg, "inf"), 0U);
  EXPECT_EQ(count(draw("", {}), "</svg>"), 1U);
}

TEST(Plot, JsonHasTheNumbers) {
  const std::string json = as_json("t", {one_line(scale::linear, scale::linear, {{1, 0.5}, {2, 0.25}})});
  EXPECT_NE(json.find(R"("line": "only")"), std::string::npos) << json;
  EXPECT_NE(json.find("0.25"), std::string::npos) << json;
  EXPECT_NE(as_json("t", {}).find(R"("charts": [])"), std::string::npos) << json;
}

}  // namespace
}  // namespace hpe::bench
