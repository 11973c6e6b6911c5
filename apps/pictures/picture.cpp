#include "apps/pictures/picture.h"

#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <cmath>

namespace hpe::pictures {

namespace {

/// Seven rows of five pixels; the highest of the five bits is the leftmost pixel.
struct glyph {
  char character;
  std::array<std::uint8_t, 7> rows;
};

constexpr std::array glyphs{
    glyph{'0', {0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110}},
    glyph{'1', {0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110}},
    glyph{'2', {0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111}},
    glyph{'3', {0b01110, 0b10001, 0b00001, 0b00110, 0b00001, 0b10001, 0b01110}},
    glyph{'4', {0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010}},
    glyph{'5', {0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110}},
    glyph{'6', {0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110}},
    glyph{'7', {0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000}},
    glyph{'8', {0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110}},
    glyph{'9', {0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100}},
    glyph{'.', {0b00000, 0b00000, 0b00000, 0b00000, 0b00000, 0b01100, 0b01100}},
    glyph{'-', {0b00000, 0b00000, 0b00000, 0b11111, 0b00000, 0b00000, 0b00000}},
    glyph{'c', {0b00000, 0b00000, 0b01110, 0b10000, 0b10000, 0b10000, 0b01110}},
    glyph{'e', {0b00000, 0b00000, 0b01110, 0b10001, 0b11111, 0b10000, 0b01110}},
    glyph{'k', {0b10000, 0b10000, 0b10010, 0b10100, 0b11000, 0b10100, 0b10010}},
    glyph{'l', {0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110}},
    glyph{'m', {0b00000, 0b00000, 0b11010, 0b10101, 0b10101, 0b10101, 0b10101}},
    glyph{'s', {0b00000, 0b00000, 0b01111, 0b10000, 0b01110, 0b00001, 0b11110}},
};

std::int64_t width_of(std::string_view text) { return static_cast<std::int64_t>(text.size()) * character_width; }

/// The values of the ticks on an axis of `pixels` pixels.
std::vector<double> ticks(std::int64_t pixels, double per_pixel, double step) {
  std::vector<double> values;
  for (std::int64_t n = 0; static_cast<double>(n) * step < static_cast<double>(pixels) * per_pixel; ++n)
    values.push_back(static_cast<double>(n) * step);
  return values;
}

}  // namespace

picture::picture(std::int64_t width, std::int64_t height)
    : width_(width), height_(height), rgb_(static_cast<std::size_t>(width * height * 3), 255) {}

void picture::put(std::int64_t x, std::int64_t y, const colour& c) {
  if (x < 0 || x >= width_ || y < 0 || y >= height_) return;
  std::uint8_t* const p = &rgb_[static_cast<std::size_t>(3 * (y * width_ + x))];
  for (std::size_t k = 0; k < 3; ++k) p[k] = static_cast<std::uint8_t>(std::clamp(c[k], 0.0, 255.0));
}

void picture::write(std::int64_t x, std::int64_t y, std::string_view text) {
  constexpr int columns = 5;
  for (const char character : text) {
    const auto found =
        std::find_if(glyphs.begin(), glyphs.end(), [&](const glyph& g) { return g.character == character; });
    for (std::int64_t row = 0; found != glyphs.end() && row < character_height; ++row)
      for (int column = 0; column < columns; ++column)
        if ((found->rows[static_cast<std::size_t>(row)] >> (columns - 1 - column) & 1) != 0)
          put(x + column, y + row, {0, 0, 0});
    x += character_width;
  }
}

double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

void draw_axes(picture& p, const area& where, const scale& units) {
  constexpr std::int64_t between = 60, length = 5, gap = 3;  // pixels
  const double step = round_step(static_cast<double>(between) * units.per_pixel);
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  const auto pixels = [&](double value) { return static_cast<std::int64_t>(std::lround(value / units.per_pixel)); };
  for (const double value : ticks(where.across, units.per_pixel, step)) {
    const std::string text = fmt::format("{:.{}f}", value, decimals);
    const std::int64_t x = where.left + pixels(value);
    for (std::int64_t k = 1; k <= length; ++k) p.put(x, where.top - k, {0, 0, 0});
    p.write(x - width_of(text) / 2, where.top - length - gap - character_height, text);
  }
  for (const double value : ticks(where.down, units.per_pixel, step)) {
    const std::string text = fmt::format("{:.{}f}", value, decimals);
    const std::int64_t y = where.top + pixels(value);
    for (std::int64_t k = 1; k <= length; ++k) p.put(where.left - k, y, {0, 0, 0});
    p.write(where.left - length - gap - width_of(text), y - character_height / 2, text);
  }
  p.write(0, where.top - length - gap - character_height, units.unit);
}

void write_png(const std::string& path, const picture& p) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(p.width());
  header.height = static_cast<png_uint_32>(p.height());
  header.format = PNG_FORMAT_RGB;
  if (png_image_write_to_file(&header, path.c_str(), 0, p.rgb().data(), 0, nullptr) == 0)
    throw bad_input("cannot write " + path + ": " + header.message);
}

}  // namespace hpe::pictures
