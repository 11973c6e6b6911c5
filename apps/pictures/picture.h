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

/// Pixels, eight bits each of red, green and blue, rows from the top. White at first.
class picture {
 public:
  picture(std::int64_t width, std::int64_t height);

  [[nodiscard]] std::int64_t width() const { return width_; }
  [[nodiscard]] std::int64_t height() const { return height_; }
  [[nodiscard]] const std::vector<std::uint8_t>& rgb() const { return rgb_; }

  /// Sets a pixel; does nothing outside of the picture.
  void put(std::int64_t x, std::int64_t y, const colour& c);

  /// Writes the printable characters of ASCII in black, from the upper left corner. Other characters are gaps.
  void write(std::int64_t x, std::int64_t y, std::string_view text);

 private:
  std::int64_t width_, height_;
  std::vector<std::uint8_t> rgb_;
};

/// Size of a character in pixels, with the gap after it.
inline constexpr std::int64_t character_width = 6, character_height = 7;

/// The part of a picture that shows data, in pixels.
struct area {
  std::int64_t left, top, across, down;
};

/// The unit of an axis, the units per pixel, and the value at the upper left corner.
struct scale {
  double per_pixel;
  std::string unit;
  double from = 0;
};

/// The width of a text in pixels.
[[nodiscard]] std::int64_t width_of(std::string_view text);

/// Pixels that the axes need to the left of an area and above it, and to its right for half a number.
inline constexpr std::int64_t room_left = 40, room_above = 20, room_right = 20;

/// Draws ticks at the upper and the left edge of the area, with numbers at round places and the unit in the corner.
void draw_axes(picture& p, const area& where, const scale& units);
/// The same with different axes and without their units.
void draw_axes(picture& p, const area& where, const scale& across, const scale& down);

/// The distance of ticks: 1, 2 or 5 times a power of ten, the smallest that is not below `least`.
[[nodiscard]] double round_step(double least);

/// Writes a PNG file. Throws bad_input if it cannot be written.
void write_png(const std::string& path, const picture& p);

/// Values of pixels, 0 to 255, rows from the top.
struct pixels {
  std::int64_t width, height;
  std::int64_t channels;  ///< 1: brightness; 3: red, green and blue of each pixel
  std::vector<std::uint8_t> values;
};

/// Reads a PNG file of any kind, without its transparency: as grey, or with `colour` in colours if the file has some.
/// Throws bad_input if it cannot be read or needs more memory than there is.
[[nodiscard]] pixels read_png(const std::string& path, bool colour = false);

}  // namespace hpe::pictures
