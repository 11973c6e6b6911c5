#pragma once

/// Pictures of sections through a model: pixels, axes with numbers, PNG files.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line/bad_input.h"

namespace hpe::pictures {

using command_line::bad_input;

using colour = std::array<double, 3>;  // red, green and blue, 0 to 255

/// Pixels with eight bits each for red, green and blue; the top row comes first. A new picture is white.
class picture {
 public:
  picture(std::int64_t width, std::int64_t height);

  [[nodiscard]] std::int64_t width() const { return width_; }
  [[nodiscard]] std::int64_t height() const { return height_; }
  [[nodiscard]] const std::vector<std::uint8_t>& rgb() const { return rgb_; }

  /// Sets a pixel; positions outside the picture are ignored.
  void put(std::int64_t x, std::int64_t y, const colour& c);

  /// Copies another picture, with its upper left corner at (x, y).
  void put(std::int64_t x, std::int64_t y, const picture& other);

  /// Writes a text in black, with its upper left corner at (x, y). Leaves gaps for characters that are not printable
  /// ASCII.
  void write(std::int64_t x, std::int64_t y, std::string_view text);

 private:
  std::int64_t width_, height_;
  std::vector<std::uint8_t> rgb_;
};

/// Size of a character in pixels; the width includes the gap after the character.
inline constexpr std::int64_t character_width = 12, character_height = 14;

/// The part of a picture that shows data, in pixels.
struct area {
  std::int64_t left, top, across, down;
};

/// The units of an axis per pixel, and the value at the upper left corner.
struct scale {
  double per_pixel, from;
};

/// Returns the width of a text in pixels.
[[nodiscard]] std::int64_t width_of(std::string_view text);

/// Draws a line around the area, and ticks at its upper and its left edge with numbers at round values.
void draw_axes(picture& p, const area& where, const scale& across, const scale& down);

/// Returns the distance between ticks: the smallest number not below `least` that is 1, 2 or 5 times a power of ten.
[[nodiscard]] double round_step(double least);

/// Writes a PNG file. Throws std::runtime_error if that fails; an earlier file of that name then stays unchanged.
void write_png(const std::string& path, const picture& p);

/// The values of pixels, from 0 to 255; the top row comes first.
struct pixels {
  std::int64_t width, height;
  std::int64_t channels;  ///< 1: brightness; 3: red, green and blue of each pixel
  std::vector<std::uint8_t> values;
};

/// Reads a PNG file of any kind and ignores its transparency. Returns grey values; with `colour`, returns colours if
/// the file has any. Throws bad_input if the file cannot be read or needs more memory than is available.
[[nodiscard]] pixels read_png(const std::string& path, bool colour = false);

}  // namespace hpe::pictures
