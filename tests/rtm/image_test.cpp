// The images of migrations show reflectors at their true depth, and pictures can be read back.

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "apps/pictures/chart.h"
#include "apps/rtm/model/model_picture.h"
#include "tests/rtm/experiment.h"

namespace hpe::rtm::testing {
namespace {

TEST(Image, FlatReflectorLiesWhereTheModelHasIt) {
  constexpr double above = 2000, below = 2500, depth = 500, frequency = 20;
  const volume truth = flat_model(140, 1, 90, spacing, depth, above, below);
  // Migrates with the velocity above the reflector, so that only the data determine where the reflector appears.
  const volume smooth = flat_model(140, 1, 90, spacing, 1e9, above, below);
  migration_settings s;
  s.frequency = frequency;
  s.time_step = 0.9 * stable_step(2, spacing, below);
  s.steps = static_cast<std::int64_t>(0.85 / s.time_step);
  s.devices = 1;  // more devices would only take longer
  for (const preparation how : {preparation::mute, preparation::residual}) {
    s.data = how;
    simulation on(truth, fastest(truth), s, nullptr);
    const medium<float> ground = on.medium_of(truth);
    migration work(on, smooth);
    for (const std::int32_t x : {50, 70, 90}) {
      shot one{{x, 0, 2}, {}};
      for (std::int32_t r = 0; r < 140; ++r) one.receivers.push_back({r, 0, 2});
      work.add(one, on.record(ground, one, "recording"));
    }
    const volume image = without_background(work.image());
    // The velocity jumps between the last cell above the reflector and the first cell below it.
    const double wanted = depth / spacing - 0.5;
    const double tolerance = std::max(1.0, above / frequency / spacing / 8);
    for (std::int64_t x = 40; x <= 100; x += 5) {
      std::int64_t best = 20;
      for (std::int64_t z = 20; z < 85; ++z)
        if (image.at(x, 0, z) > image.at(x, 0, best)) best = z;
      EXPECT_NEAR(static_cast<double>(best), wanted, tolerance) << "at x = " << x;
      EXPECT_GT(image.at(x, 0, best), 0) << "velocity grows with depth";
    }
  }
}

/// Returns the image of a ground, migrated with a single velocity, from a row of shots, with receivers in every cell of
/// the surface.
volume image_with_one_velocity(const volume& truth, double velocity, double frequency) {
  const volume smooth = make_volume(truth.nx, 1, truth.nz, spacing, static_cast<float>(velocity));
  migration_settings s;
  s.frequency = frequency;
  s.time_step = 0.9 * stable_step(2, spacing, fastest(truth));
  s.steps = static_cast<std::int64_t>(0.9 / s.time_step);
  s.devices = 1;
  s.data = preparation::residual;
  simulation on(truth, fastest(truth), s, nullptr);
  const medium<float> ground = on.medium_of(truth);
  migration work(on, smooth);
  for (std::int32_t x = 10; x < truth.nx; x += 30) {
    shot one{{x, 0, 2}, {}};
    for (std::int32_t r = 0; r < truth.nx; ++r) one.receivers.push_back({r, 0, 2});
    work.add(one, on.record(ground, one, "recording"));
  }
  return without_background(work.image());
}

TEST(Image, DippingReflectorLiesWhereTheModelHasIt) {
  constexpr double above = 2000, below = 2400, frequency = 20, dip = 0.35;  // 19 degrees
  volume truth = make_volume(140, 1, 90, spacing, static_cast<float>(above));
  const auto depth = [](std::int64_t x) { return 30 + dip * (static_cast<double>(x) - 40); };
  for (std::int64_t x = 0; x < truth.nx; ++x)
    for (std::int64_t z = 0; z < truth.nz; ++z)
      if (static_cast<double>(z) >= depth(x)) truth.at(x, 0, z) = static_cast<float>(below);
  const volume image = image_with_one_velocity(truth, above, frequency);
  const double tolerance = std::max(1.0, above / frequency / spacing / 8);
  for (std::int64_t x = 50; x <= 90; x += 5) {
    const auto from = static_cast<std::int64_t>(depth(x)) - 12;
    std::int64_t best = from;
    for (std::int64_t z = from; z < from + 24; ++z)
      if (image.at(x, 0, z) > image.at(x, 0, best)) best = z;
    EXPECT_NEAR(static_cast<double>(best), std::ceil(depth(x)) - 0.5, tolerance) << "at x = " << x;
  }
}

TEST(Image, PointDiffractorIsFocusedAtItsPlace) {
  constexpr std::int64_t at_x = 62, at_z = 45;
  constexpr double velocity = 2000, frequency = 20;
  volume truth = make_volume(140, 1, 90, spacing, static_cast<float>(velocity));
  truth.at(at_x, 0, at_z) = 2600;
  const volume image = image_with_one_velocity(truth, velocity, frequency);
  std::int64_t best_x = 0, best_z = 20;
  double largest = 0, away = 0;
  const double wavelength = velocity / frequency / spacing;  // cells
  for (std::int64_t x = 15; x < 125; ++x)
    for (std::int64_t z = 20; z < 80; ++z) {
      const double size = std::abs(static_cast<double>(image.at(x, 0, z)));
      if (size > largest) largest = size, best_x = x, best_z = z;
      if (std::hypot(x - at_x, z - at_z) > 2 * wavelength) away = std::max(away, size);
    }
  EXPECT_NEAR(static_cast<double>(best_x), at_x, 1);
  EXPECT_NEAR(static_cast<double>(best_z), at_z, std::max(1.0, wavelength / 8));
  EXPECT_LT(away, 0.3 * largest) << "elsewhere the image is small";
}

TEST(Image, CompressedWaveFieldsChangeItLittle) {
  const volume truth = flat_model(100, 1, 70, spacing, 400, 2000, 2500);
  const volume smooth = make_volume(100, 1, 70, spacing, 2000);
  const auto image_with = [&](std::int64_t bits, int devices) {
    migration_settings s;
    s.frequency = 20;
    s.time_step = 0.9 * stable_step(2, spacing, 2500);
    s.steps = static_cast<std::int64_t>(0.6 / s.time_step);
    s.keep_every = default_keep_every(s.frequency, s.time_step);
    s.devices = std::min(devices, device_count());
    s.keep.bits = bits;
    simulation on(truth, 2500, s, nullptr);
    const medium<float> ground = on.medium_of(truth);
    migration work(on, smooth);
    for (const std::int32_t x : {30, 50, 70}) {
      shot one{{x, 0, 2}, {}};
      for (std::int32_t r = 0; r < 100; ++r) one.receivers.push_back({r, 0, 2});
      work.add(one, on.record(ground, one, "recording"));
    }
    return work.image();
  };
  const auto change = [](const volume& compressed, const volume& whole) {
    return norm(difference(compressed.values, whole.values)) / norm(whole.values);
  };
  struct expected {
    std::int64_t bits;
    double stack, filtered;  // the largest allowed changes of the stack, and of the stack without its background
  };
  const volume whole = image_with(0, 1);
  for (const expected& e : {expected{16, 1e-4, 1e-3}, {8, 0.01, 0.01}, {4, 0.1, 0.3}}) {
    const volume compressed = image_with(e.bits, 1);
    const double stack = change(compressed, whole);
    const double filtered = change(without_background(compressed), without_background(whole));
    RecordProperty("stack_" + std::to_string(e.bits) + "_bits", scientific(stack));
    RecordProperty("filtered_" + std::to_string(e.bits) + "_bits", scientific(filtered));
    EXPECT_GT(stack, 0);
    EXPECT_LE(stack, e.stack) << e.bits << " bits";
    EXPECT_LE(filtered, e.filtered) << e.bits << " bits";
    if (e.bits != 8) continue;
    EXPECT_EQ(image_with(e.bits, 2).values, compressed.values) << "the same bits on two devices";
  }
}

TEST(Image, SettingsThatCannotRunSaySo) {
  const volume truth = make_volume(40, 1, 30, spacing, 2000);
  migration_settings s;
  s.steps = 10;
  s.time_step = 1.01 * stable_step(2, spacing, 2000);
  const auto start = [&] { return simulation(truth, 2000, s, nullptr); };
  EXPECT_THROW(start(), bad_input);
  s.time_step = 0.99 * stable_step(2, spacing, 2000);
  s.devices = device_count() + 1;
  EXPECT_THROW(start(), bad_input);
  s.devices = 1;
  simulation good(truth, 2000, s, nullptr);
  migration_settings flat = s;
  flat.largest_angle = 0;
  EXPECT_THROW(simulation(truth, 2000, flat, nullptr), bad_input);
  EXPECT_THROW(static_cast<void>(good.medium_of(make_volume(41, 1, 30, spacing, 2000))), bad_input);
  EXPECT_THROW(static_cast<void>(good.medium_of(make_volume(40, 1, 30, spacing, 2001))), bad_input);
  const medium<float> ground = good.medium_of(truth);
  EXPECT_THROW(static_cast<void>(good.record(ground, {{40, 0, 0}, {{1, 0, 1}}}, "recording")), bad_input);
  EXPECT_THROW(static_cast<void>(good.record(ground, {{4, 0, 0}, {{1, 0, 30}}}, "recording")), bad_input);
}

TEST(Picture, CanBeReadBack) {
  const volume v = salt_model(60, 1, 30, 100);
  const pictures::picture drawn = draw(v, v, 0.5, 400);
  const std::string path =
      (std::filesystem::temp_directory_path() / ("hpe-picture-" + std::to_string(getpid()) + ".png")).string();
  pictures::write_png(path, drawn);
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  ASSERT_NE(png_image_begin_read_from_file(&header, path.c_str()), 0) << header.message;
  header.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(header));
  ASSERT_NE(png_image_finish_read(&header, nullptr, pixels.data(), 0, nullptr), 0) << header.message;
  EXPECT_EQ(header.width, drawn.width());
  EXPECT_EQ(header.height, drawn.height());
  EXPECT_EQ(pixels, drawn.rgb());
  std::filesystem::remove(path);
  EXPECT_THROW(pictures::write_png("/nonexistent/picture.png", drawn), std::runtime_error);
}

TEST(Picture, AChartHasItsValuesBetweenAxesAndColourBar) {
  // Values grow from left to right.
  std::vector<float> values;
  for (int x = 0; x < 40; ++x) values.insert(values.end(), 20, static_cast<float>(x));
  const pictures::chart c{"Title", {"x [m]", 0, 10}, {"z [m]", 0, 10}, "m/s", 0, 39, pictures::white_to_black};
  const pictures::picture p = pictures::draw(c, 40, 20, values, 600);
  EXPECT_EQ(p.width(), 600);
  const auto shade = [&](std::int64_t x, std::int64_t y) {
    return static_cast<int>(p.rgb()[static_cast<std::size_t>(3 * (y * p.width() + x))]);
  };
  // The margins of 88 pixels on the left and 112 on the right leave a width of 400 pixels, 10 for each value.
  for (std::int64_t x = 5; x < 400; x += 40) EXPECT_NEAR(shade(88 + x, 100), 255 - 255 * (x / 10) / 39, 9) << x;
  // The colour bar, from the largest value at the top to the smallest value.
  const std::int64_t bar = 88 + 400 + 20, top = p.height() - 12 - 200;
  EXPECT_LT(shade(bar, top + 1), 5);
  EXPECT_GT(shade(bar, top + 198), 250);
  // The title's T: two rows of ten black pixels.
  for (std::int64_t k = 0; k < 10; ++k) EXPECT_EQ(shade(88 + k, 6) + shade(88 + k, 7), 0);
  EXPECT_EQ(shade(88, 8), 255);
  // A single extreme value hardly changes the clip, because the clip is a percentile and not the largest value.
  EXPECT_NEAR(pictures::percentile_of_sizes(std::vector<float>{-1, 2, -3, 4, 1e9f}, 0.5), 3, 1e-9);
}

TEST(Picture, SamplesOfAChartMayHaveColoursOfTheirOwn) {
  pictures::chart c{"", {"", 0, 1}, {"", 0, 1}, "", 0, 1, pictures::white_to_black};
  c.over = [](std::int64_t column, std::int64_t row) {
    return column == 1 && row == 0 ? std::optional(pictures::colour{200, 10, 20}) : std::nullopt;
  };
  const pictures::picture p = pictures::draw(c, 4, 2, std::vector<float>(8), 600);
  const auto red = [&](std::int64_t x, std::int64_t y) {
    return static_cast<int>(p.rgb()[static_cast<std::size_t>(3 * ((72 + y) * p.width() + 88 + x))]);
  };
  EXPECT_EQ(red(150, 50), 200);
  EXPECT_EQ(red(150, 150), 255);
  EXPECT_EQ(red(50, 50), 255);
  const pictures::picture twice = pictures::stacked(std::vector{p, p});
  EXPECT_EQ(twice.height(), 2 * p.height());
  EXPECT_TRUE(
      std::equal(p.rgb().begin(), p.rgb().end(), twice.rgb().begin() + static_cast<std::ptrdiff_t>(p.rgb().size())));
}

TEST(Volume, RawFilesInAnyAxisOrder) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("hpe-raw-" + std::to_string(getpid()) + ".f32")).string();
  // The order of the axes in the file: y is fastest, then z, then x.
  volume in_file = make_volume(2, 3, 4, spacing);
  for (std::int64_t x = 0; x < 2; ++x)
    for (std::int64_t z = 0; z < 4; ++z)
      for (std::int64_t y = 0; y < 3; ++y)
        in_file.values[static_cast<std::size_t>((x * 4 + z) * 3 + y)] =
            1.5f + 0.1f * static_cast<float>(100 * x + 10 * y + z) / 100;
  write_raw(path, in_file);
  const volume read = read_raw(path, {2, 3, 4, spacing, 1000, "yzx"});
  for (std::int64_t x = 0; x < 2; ++x)
    for (std::int64_t y = 0; y < 3; ++y)
      for (std::int64_t z = 0; z < 4; ++z)
        EXPECT_NEAR(read.at(x, y, z), 1500 + static_cast<double>(100 * x + 10 * y + z), 0.01);
  EXPECT_THROW(read_raw(path, {2, 3, 5, spacing, 1000, "yzx"}), bad_input);
  EXPECT_THROW(read_raw(path, {2, 3, 4, spacing, 1, "yzx"}), bad_input) << "1.5 m/s is not a possible velocity";
  EXPECT_THROW(read_raw(path, {2, 3, 4, spacing, 1000, "yzz"}), bad_input);
  std::filesystem::remove(path);
}

TEST(Volume, ExtrudedPlanesAreTheSection) {
  const volume section = salt_model(30, 1, 20, 100);
  const volume thin = extrude(section, 4);
  EXPECT_EQ(thin.ny, 4);
  for (std::int64_t x = 0; x < 30; ++x)
    for (std::int64_t y = 0; y < 4; ++y)
      for (std::int64_t z = 0; z < 20; ++z) ASSERT_EQ(thin.at(x, y, z), section.at(x, 0, z));
  EXPECT_THROW(extrude(thin, 5), bad_input);
}

TEST(Volume, SmoothingKeepsConstantsAndTravelTimes) {
  const volume flat = make_volume(20, 3, 20, spacing, 2345);
  const volume still_flat = smooth(flat, 40, 0);
  for (const float v : still_flat.values) ASSERT_NEAR(v, 2345, 0.01);
  const volume step = flat_model(5, 1, 100, spacing, 500, 2000, 3000);
  const volume ramp = smooth(step, 40, 60);
  double before = 0, after = 0;
  for (std::int64_t z = 0; z < 100; ++z) {
    before += spacing / step.at(2, 0, z);
    after += spacing / ramp.at(2, 0, z);
  }
  EXPECT_NEAR(after, before, 1e-3 * before);
  EXPECT_GT(ramp.at(2, 0, 49), 2100);
  EXPECT_EQ(ramp.at(2, 0, 5), 2000);
}

/// Returns the largest value in the middle of the image of a flat reflector at 300 m. The receivers have distances from
/// `nearest` to `furthest` cells.
float strength_of_image(double angle, std::int32_t nearest, std::int32_t furthest) {
  const volume truth = flat_model(140, 1, 60, spacing, 300, 2000, 2500),
               smooth = make_volume(140, 1, 60, spacing, 2000);
  migration_settings s;
  s.frequency = 20;
  s.time_step = 0.9 * stable_step(2, spacing, 2500);
  s.steps = static_cast<std::int64_t>(0.9 / s.time_step);
  s.largest_angle = angle;
  simulation on(truth, fastest(truth), s, nullptr);
  migration work(on, smooth);
  shot one{{50, 0, 2}, {}};
  for (std::int32_t r = nearest; r <= furthest; ++r) one.receivers.push_back({50 + r, 0, 2});
  work.add(one, on.record(on.medium_of(truth), one, "recording"));
  const volume image = without_background(work.image(condition::correlation));
  float most = 0;
  for (std::int64_t x = 45; x < 100; ++x)
    for (std::int64_t z = 22; z < 36; ++z) most = std::max(most, std::abs(image.at(x, 0, z)));
  return most;
}

TEST(Image, AngleMuteKeepsSteepReflectionsOnly) {
  // The angle of incidence on the reflector is up to 15 degrees for near receivers, and 42 to 53 degrees for distant
  // receivers.
  EXPECT_NEAR(strength_of_image(30, 0, 15), strength_of_image(90, 0, 15), 0.05 * strength_of_image(90, 0, 15));
  EXPECT_LT(strength_of_image(30, 52, 75), 0.05 * strength_of_image(90, 52, 75));
}

}  // namespace
}  // namespace hpe::rtm::testing
