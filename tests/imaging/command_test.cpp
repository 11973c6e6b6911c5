// Runs the imaging programs as users do, on one and on several soft devices, and compares the results with plain
// references.

#include "tests/command.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "apps/files/element_file.h"
#include "apps/imaging/imaging_main.h"
#include "apps/imaging/imaging_program.h"
#include "apps/pictures/picture.h"
#include "kernels/rays.h"
#include "tests/imaging/random_values.h"

namespace hpe::imaging {
namespace {

using command_test::call;
using command_test::contains;
using command_test::outcome;

/// A new folder for files of a test.
class imaging : public ::testing::Test {
 protected:
  imaging()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                (std::string("imaging-") + ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~imaging() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string at(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::filesystem::path folder_;
};

std::vector<float> read_all(const std::string& file, const std::vector<std::uint64_t>& shape) {
  const files::description d = files::describe(file);
  EXPECT_EQ(d.shape, shape);
  std::vector<float> values(d.elements(sizeof(float)));
  files::read(d, values.data());
  return values;
}

void expect_near(const std::vector<float>& found, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], tolerance) << i;
}

TEST_F(imaging, convolution_of_segments_is_that_of_the_whole_image) {
  constexpr int rows = 53, columns = 41;
  const std::vector<float> source = random_values(rows * columns, 1), weights = random_values(49, 2);
  files::write(at("in.npy"), "f32", {rows, columns}, source.data(), sizeof(float));
  files::write(at("weights.npy"), "f32", {7, 7}, weights.data(), sizeof(float));
  std::vector<double> wanted(source.size());
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x)
      for (int i = -3; i <= 3; ++i)
        for (int j = -3; j <= 3; ++j)
          if (y - i >= 0 && y - i < rows && x - j >= 0 && x - j < columns)
            wanted[y * columns + x] +=
                static_cast<double>(weights[(i + 3) * 7 + j + 3]) * source[(y - i) * columns + x - j];
  for (const char* devices : {"1", "2", "3", "4"})
    for (const char* segment : {"1", "4000", "1M"}) {
      const outcome o =
          call(convolve_main, {"convolve", at("in.npy"), "--weights", at("weights.npy"), "--output", at("out.npy"),
                               "--devices", devices, "--segment", segment, "--repeats", "1"});
      ASSERT_EQ(o.status, 0) << o.err;
      expect_near(read_all(at("out.npy"), {rows, columns}), wanted, 1e-4);
    }
}

TEST_F(imaging, more_devices_than_rows_convolve) {
  const std::vector<float> source = random_values(2 * 30, 3);
  files::write(at("in.npy"), "f32", {2, 30}, source.data(), sizeof(float));
  for (const char* devices : {"1", "4"})
    ASSERT_EQ(call(convolve_main,
                   {"convolve", at("in.npy"), "--output", at(std::string(devices) + ".npy"), "--devices", devices})
                  .status,
              0);
  EXPECT_EQ(read_all(at("1.npy"), {2, 30}), read_all(at("4.npy"), {2, 30}));
}

TEST_F(imaging, a_picture_stays_itself_under_the_unit_weight) {
  image picture{9, 12, {}};
  for (int i = 0; i < 9 * 12; ++i) picture.values.push_back(static_cast<float>(2 * i));
  write_image({at("in"), {".png"}}, picture);
  std::vector<float> weights(49);
  weights[24] = 1;
  files::write(at("one.npy"), "f32", {7, 7}, weights.data(), sizeof(float));
  const outcome o =
      call(convolve_main, {"convolve", at("in.png"), "--weights", at("one.npy"), "--output", at("out.png")});
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(read_image(at("out.png")).values, picture.values);
}

TEST_F(imaging, least_squares_finds_the_matrix_that_moved_the_points) {
  constexpr std::size_t paths = 61, points = 9;
  std::vector<float> values = random_values(paths * points * 3, 4), reference(points * 3);
  // The second path is the reference multiplied by a known matrix; all points of the third path lie in a plane through
  // the origin.
  const std::vector<float> matrix{2, 0.5, 0, 0, 1, 0.25, 1, 0, 3};
  for (std::size_t k = 0; k < points; ++k)
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t i = 0; i < 3; ++i) reference[3 * k + j] += values[3 * (points + k) + i] * matrix[3 * i + j];
      if (j == 2) values[3 * (2 * points + k) + j] = 0;
    }
  files::write(at("paths.npy"), "f32", {paths, points, 3}, values.data(), sizeof(float));
  files::write(at("reference.npy"), "f32", {points, 3}, reference.data(), sizeof(float));
  std::vector<float> alone;
  for (const char* devices : {"1", "3", "4"}) {
    const outcome o =
        call(least_squares_main, {"least-squares", at("paths.npy"), "--reference", at("reference.npy"), "--segment",
                                  "1000", "--output", at("out.npy"), "--devices", devices, "--repeats", "1"});
    ASSERT_EQ(o.status, 0) << o.err;
    const std::vector<float> fits = read_all(at("out.npy"), {paths, 3, 3});
    for (std::size_t i = 0; i < 9; ++i) {
      EXPECT_NEAR(fits[9 + i], matrix[i], 1e-3) << i;
      EXPECT_EQ(fits[18 + i], 0) << i;
    }
    // With the best matrix, the remaining distance is orthogonal to the points.
    for (std::size_t p = 3; p < paths; ++p)
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
          double sum = 0;
          for (std::size_t k = 0; k < points; ++k) {
            double rest = reference[3 * k + j];
            for (std::size_t l = 0; l < 3; ++l)
              rest -= static_cast<double>(values[3 * (p * points + k) + l]) * fits[9 * p + 3 * l + j];
            sum += rest * values[3 * (p * points + k) + i];
          }
          ASSERT_NEAR(sum, 0, 1e-3) << p;
        }
    if (alone.empty()) alone = fits;
    EXPECT_EQ(fits, alone);
  }
}

/// Returns the reconstruction, computed with plain loops.
std::vector<double> reconstruct(const std::vector<float>& views, int count, int slices, int rows, int columns,
                                double step, int iterations) {
  const auto at = [&](const double* line, double x) {
    const double within = std::min(std::max(x, 0.0), columns - 1.0);
    const int left = static_cast<int>(within), right = std::min(left + 1, columns - 1);
    return line[left] + (within - left) * (line[right] - line[left]);
  };
  std::vector<double> volume(static_cast<std::size_t>(slices * rows * columns), 1), ratios(views.size());
  for (int n = 0; n < iterations; ++n) {
    for (int v = 0; v < count; ++v)
      for (int y = 0; y < rows; ++y)
        for (int x = 0; x < columns; ++x) {
          double sum = 0;
          for (int z = 0; z < slices; ++z)
            sum += at(&volume[(z * rows + y) * columns], x - (v - (count - 1) / 2.0) * step * z);
          ratios[(v * rows + y) * columns + x] = views[(v * rows + y) * columns + x] / (sum / slices);
        }
    for (int z = 0; z < slices; ++z)
      for (int y = 0; y < rows; ++y)
        for (int x = 0; x < columns; ++x) {
          double sum = 0;
          for (int v = 0; v < count; ++v)
            sum += at(&ratios[(v * rows + y) * columns], x + (v - (count - 1) / 2.0) * step * z);
          volume[(z * rows + y) * columns + x] *= sum / count;
        }
  }
  return volume;
}

TEST_F(imaging, tomosynthesis_is_that_of_a_plain_loop) {
  constexpr int views = 5, slices = 6, rows = 7, columns = 20, iterations = 4;
  std::vector<float> measured = random_values(views * rows * columns, 5);
  for (float& v : measured) v = 2 + v;
  files::write(at("views.npy"), "f32", {views, rows, columns}, measured.data(), sizeof(float));
  const std::vector<double> wanted = reconstruct(measured, views, slices, rows, columns, 0.75, iterations);
  for (const char* devices : {"1", "2", "4"}) {
    const outcome o =
        call(tomosynthesis_main, {"tomosynthesis", at("views.npy"), "--slices", "6", "--step", "0.75", "--iterations",
                                  "4", "--output", at("out.npy"), "--devices", devices, "--repeats", "2"});
    ASSERT_EQ(o.status, 0) << o.err;
    expect_near(read_all(at("out.npy"), {slices, rows, columns}), wanted, 2e-3);
  }
}

TEST_F(imaging, iterations_bring_the_volume_nearer_to_its_views) {
  const auto distance = [](const char* iterations) {
    const outcome o =
        call(tomosynthesis_main, {"tomosynthesis", "4x16x32", "--iterations", iterations, "--repeats", "1"});
    const std::string words = "last correction: ";
    return std::stod(o.out.substr(o.out.find(words) + words.size()));
  };
  EXPECT_LT(distance("10"), distance("2") / 2);
}

TEST_F(imaging, rays_are_those_of_one_device_and_of_the_host) {
  constexpr int width = 40, height = 30, frames = 3;
  kernels::scene state = kernels::first_scene(7);
  for (int f = 1; f < frames; ++f) kernels::move_spheres(state);
  std::vector<std::uint32_t> pixels(width * height);
  const kernels::trace_rays plain{&state, pixels.data(), width, height, 0, 1, height};
  for (std::uint64_t i = 0; i < plain.count(); ++i) plain.element(i);
  for (const char* devices : {"1", "3", "4"}) {
    const outcome o = call(
        rays_main, {"rays", "40x30", "--frames", "3", "--seed", "7", "--output", at("out.npy"), "--devices", devices});
    ASSERT_EQ(o.status, 0) << o.err;
    const std::vector<float> found = read_all(at("out.npy"), {height, width});
    int different = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const double mean = ((pixels[i] & 255) + (pixels[i] >> 8 & 255) + (pixels[i] >> 16 & 255)) / 3.0;
      if (std::abs(found[i] - mean) > 2) ++different;
    }
    EXPECT_LT(different, 5);  // rounding decides at edges of spheres
  }
  ASSERT_EQ(call(rays_main, {"rays", "40x30", "--output", at("out.png")}).status, 0);
  EXPECT_EQ(read_image(at("out.png")).columns, width);
  ASSERT_EQ(call(rays_main, {"rays", "40x30", "--output", at("both")}).status, 0);
  EXPECT_EQ(read_image(at("both.png")).columns, width);
  EXPECT_EQ(read_image(at("both.npy")).columns, width);
}

TEST_F(imaging, waiting_for_a_late_member_is_no_exchange) {
  constexpr std::chrono::milliseconds late(100);
  const times t = make_threads(2)->run([&](member& me) {
    me.measure(3, [&] {
      me.in(phase::cpu, [&] {
        if (me.rank() == 0) std::this_thread::sleep_for(late);
      });
      me.in(phase::exchange, [&] { static_cast<void>(me.broadcast_host(nullptr, 0)); });
    });
  });
  const auto seconds = [&](phase p) { return t.phases[static_cast<std::size_t>(p)]; };
  EXPECT_GT(seconds(phase::waiting), 0.05);
  EXPECT_LT(seconds(phase::exchange), 0.05);
}

TEST_F(imaging, a_product_is_that_of_a_plain_loop) {
  constexpr int n = 37;
  const std::vector<float> a = random_values(n * n, 8), b = random_values(n * n, 9);
  files::write(at("a.npy"), "f32", {n, n}, a.data(), sizeof(float));
  files::write(at("b.npy"), "f32", {n, n}, b.data(), sizeof(float));
  std::vector<double> wanted(a.size());
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) wanted[i * n + j] += static_cast<double>(a[i * n + k]) * b[k * n + j];
  for (const char* devices : {"1", "4"}) {
    const outcome o = call(multiply_main, {"multiply", at("a.npy"), "--right", at("b.npy"), "--output", at("c.npy"),
                                           "--devices", devices});
    ASSERT_EQ(o.status, 0) << o.err;
    expect_near(read_all(at("c.npy"), {n, n}), wanted, 1e-4);
  }
}

TEST_F(imaging, refuses_invalid_arguments) {
  const auto refused = [](int (*program)(int, char**), std::vector<std::string> words, const std::string& sentence) {
    const outcome o = call(program, std::move(words));
    EXPECT_EQ(o.status, 2);
    EXPECT_TRUE(contains(o.err, sentence)) << o.err;
  };
  const std::vector<float> values(12);
  files::write(at("wide.npy"), "f32", {3, 4}, values.data(), sizeof(float));
  files::write(at("line.npy"), "f32", {12}, values.data(), sizeof(float));
  refused(convolve_main, {"convolve", "5x6x7"}, "2 sizes are needed");
  refused(convolve_main, {"convolve", "0x5"}, "SIZE|FILE 0x5: 2 sizes are needed");
  refused(convolve_main, {"convolve", at("line.npy")}, "has 1 axes; an image has two");
  refused(convolve_main, {"convolve", at("none.png")}, "as PNG");
  refused(convolve_main, {"convolve", "8x8", "--weights", at("wide.npy")}, "7 x 7 are needed");
  refused(convolve_main, {"convolve", "8x8", "--output", "a.jpg"}, "must end in .png or .npy");
  refused(convolve_main, {"convolve", "2^24x2^24"}, "an image of 16777216 x 16777216 pixels");
  refused(least_squares_main, {"least-squares", "2^32", "--points", "4096"}, "4294967296 paths of 4096 points");
  refused(tomosynthesis_main, {"tomosynthesis", "2^15x2^15x2^15"}, "a volume of 32768 slices");
  refused(rays_main, {"rays", "--scale", "64", "2^20x8"}, "up to 2^20 x 2^20 are possible");
  refused(rays_main, {"rays", "2^20x2^20"}, "frames of 1048576 x 1048576 pixels");
  refused(multiply_main, {"multiply", "2^16"}, "matrices of 65536 x 65536 values");
  refused(least_squares_main, {"least-squares", at("wide.npy")}, "3 axes are needed");
  refused(tomosynthesis_main, {"tomosynthesis", at("wide.npy")}, "views have three");
  refused(rays_main, {"rays", "--scale", "0"}, "--scale");
  refused(multiply_main, {"multiply", at("wide.npy")}, "are not a square matrix");
  refused(multiply_main, {"multiply", "8", "--devices", "3"}, "a square number of devices");
  refused(multiply_main, {"multiply", "8", "--right", at("wide.npy")},
          "--right FILE also needs the file of the left matrix");
  refused(multiply_main, {"multiply", "8", "--library", "cublas"}, "soft devices use hpe's own kernel");
}

TEST_F(imaging, help_names_sizes_and_outputs) {
  for (const auto& program : {convolve_main, least_squares_main, tomosynthesis_main, rays_main, multiply_main}) {
    const outcome o = call(program, {"program", "--help"});
    EXPECT_EQ(o.status, 0);
    EXPECT_TRUE(contains(o.out, "Usage: hpe ") && contains(o.out, "--output") && contains(o.out, "--devices")) << o.out;
  }
}

}  // namespace
}  // namespace hpe::imaging
