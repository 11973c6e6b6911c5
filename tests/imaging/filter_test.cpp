// Runs `hpe filter` as users do, on one and on several soft devices, and compares the result with a plain reference.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/files/element_file.h"
#include "apps/imaging/imaging_main.h"
#include "apps/pictures/picture.h"
#include "tests/command.h"
#include "tests/imaging/random_values.h"

namespace {

using command_test::contains;
using command_test::outcome;

outcome run(std::vector<std::string> words) {
  words.insert(words.begin(), "filter");
  return command_test::call(filter_main, std::move(words));
}

class filter : public ::testing::Test {
 protected:
  filter() : folder_(std::filesystem::path(::testing::TempDir()) / ("hpe-filter-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~filter() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void write_image(const std::string& name, std::uint64_t rows, std::uint64_t columns, const std::vector<float>& v) {
    hpe::files::write(at(name), "f32", {rows, columns}, v.data(), sizeof(float));
  }
  [[nodiscard]] std::vector<float> read_image(const std::string& name) const {
    const hpe::files::description d = hpe::files::describe(at(name));
    std::vector<float> values(d.elements(sizeof(float)));
    hpe::files::read(d, values.data());
    return values;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(filter, sums_of_weighted_pixels_whose_edge_goes_on) {
  constexpr int rows = 37, columns = 29;
  const std::vector<float> source = random_values(rows * columns, 1);
  write_image("in.npy", rows, columns, source);
  for (const int side : {1, 3, 5, 9}) {
    const std::vector<float> weights = random_values(static_cast<std::size_t>(side * side), 2);
    write_image("weights.npy", static_cast<std::uint64_t>(side), static_cast<std::uint64_t>(side), weights);
    std::vector<double> wanted(source.size());
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < columns; ++x)
        for (int i = 0; i < side; ++i)
          for (int j = 0; j < side; ++j) {
            const int row = std::clamp(y + i - side / 2, 0, rows - 1);
            const int column = std::clamp(x + j - side / 2, 0, columns - 1);
            wanted[static_cast<std::size_t>(y * columns + x)] +=
                static_cast<double>(weights[static_cast<std::size_t>(i * side + j)]) *
                source[static_cast<std::size_t>(row * columns + column)];
          }
    for (const char* devices : {"1", "3", "4"})
      for (const char* where : {"each", "first", "host"})
        for (const char* loads : {"plain", "read-only", "uncached"}) {
          const outcome o = run({at("in.npy"), "--weights", at("weights.npy"), "--output", at("out.npy"), "--devices",
                                 devices, "--weights-in", where, "--loads", loads, "--repeats", "1"});
          ASSERT_EQ(o.status, 0) << o.err;
          EXPECT_TRUE(contains(o.out, "the result is right")) << o.out;
          const std::vector<float> found = read_image("out.npy");
          ASSERT_EQ(found.size(), wanted.size());
          for (std::size_t i = 0; i < found.size(); ++i)
            ASSERT_NEAR(found[i], wanted[i], 1e-4) << side << " " << devices << " " << where << " " << loads;
        }
  }
}

TEST_F(filter, named_filters_of_every_side) {
  for (const char* name : {"mean", "gaussian", "sharpen", "edges", "emboss"})
    for (const char* side : {"3", "7"}) {
      const outcome o = run({"40x31", "--filter", name, "--side", side, "--repeats", "1", "--output", at("out.npy")});
      EXPECT_EQ(o.status, 0) << o.err;
      EXPECT_TRUE(contains(o.out, "the result is right")) << o.out;
      // An image of a single brightness does not change, or becomes black if the filter finds edges.
      write_image("flat.npy", 12, 9, std::vector<float>(108, 100));
      ASSERT_EQ(run({at("flat.npy"), "--filter", name, "--side", side, "--output", at("flat-out.npy")}).status, 0);
      for (const float v : read_image("flat-out.npy")) ASSERT_NEAR(v, std::string(name) == "edges" ? 0 : 100, 1e-2);
    }
}

TEST_F(filter, pictures_keep_their_colours) {
  hpe::pictures::picture p(12, 9);
  for (int y = 0; y < 9; ++y)
    for (int x = 0; x < 12; ++x) p.put(x, y, {10.0 * x, 20.0 * y, 200.0 - 5 * x});
  hpe::pictures::write_png(at("in.png"), p);
  write_image("one.npy", 3, 3, {0, 0, 0, 0, 1, 0, 0, 0, 0});
  ASSERT_EQ(run({at("in.png"), "--weights", at("one.npy"), "--output", at("out.png")}).status, 0);
  const hpe::pictures::pixels before = hpe::pictures::read_png(at("in.png"), true),
                              after = hpe::pictures::read_png(at("out.png"), true);
  EXPECT_EQ(before.channels, 3);
  EXPECT_EQ(after.values, before.values);
  const outcome o = run({at("in.png"), "--output", at("out.npy")});
  EXPECT_EQ(o.status, 2);
  EXPECT_TRUE(contains(o.err, "in colours")) << o.err;
}

TEST_F(filter, says_what_is_wrong) {
  const auto refused = [&](std::vector<std::string> words, const char* text) {
    const outcome o = run(std::move(words));
    EXPECT_EQ(o.status, 2) << text;
    EXPECT_TRUE(contains(o.err, text)) << o.err;
  };
  refused({"--side", "4"}, "odd");
  refused({"--side", "65"}, "--side");
  refused({"--filter", "median"}, "--filter");
  refused({"--loads", "fast"}, "--loads");
  refused({"9999999x9999999"}, "free");
  refused({"16x16", "--output", at("out.jpg")}, ".png");
  refused({at("none.png")}, "none.png");
  write_image("two.npy", 2, 2, {1, 2, 3, 4});
  refused({"16x16", "--weights", at("two.npy")}, "odd");
  std::ofstream(at("text.png")) << "not a picture";
  refused({at("text.png")}, "as PNG");
}

/// Returns a PNG file of width x height pixels, whose data end after the header.
std::string png_of(std::uint32_t width, std::uint32_t height) {
  std::string file("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", 16);
  for (const std::uint32_t size : {width, height})
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift);
  file += std::string("\x08\x02\0\0\0", 5);
  std::uint32_t crc = ~0U;
  for (const char c : file.substr(12)) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
  }
  for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(~crc >> shift);
  return file + std::string("\0\0\0\0IDAT\x35\xaf\x06\x1e", 12);
}

TEST_F(filter, damaged_pictures_are_refused_before_memory_is_taken) {
  for (const auto& [width, height] : {std::pair{8U, 8U}, {0U, 5U}, {1000000U, 1000000U}, {4000000000U, 2U}}) {
    std::ofstream(at("broken.png"), std::ios::binary) << png_of(width, height);
    const outcome o = run({at("broken.png")});
    EXPECT_EQ(o.status, 2) << width << " " << o.out;
    EXPECT_TRUE(contains(o.err, "broken.png")) << o.err;
  }
}

}  // namespace
