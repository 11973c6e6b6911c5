#include "apps/pictures/picture.h"

#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <cmath>

#include "apps/command_line/program.h"
#include "runtime/os/output_file.h"

namespace hpe::pictures {

namespace {

/// Bitmaps of the printable ASCII characters, from the space on: five columns of seven dots; the lowest bit is the top
/// dot.
constexpr std::array<std::array<std::uint8_t, 5>, 95> glyphs{
    {{0x00, 0x00, 0x00, 0x00, 0x00}, {0x00, 0x00, 0x5F, 0x00, 0x00}, {0x00, 0x07, 0x00, 0x07, 0x00},
     {0x14, 0x7F, 0x14, 0x7F, 0x14}, {0x24, 0x2A, 0x7F, 0x2A, 0x12}, {0x23, 0x13, 0x08, 0x64, 0x62},
     {0x36, 0x49, 0x55, 0x22, 0x50}, {0x00, 0x05, 0x03, 0x00, 0x00}, {0x00, 0x1C, 0x22, 0x41, 0x00},
     {0x00, 0x41, 0x22, 0x1C, 0x00}, {0x14, 0x08, 0x3E, 0x08, 0x14}, {0x08, 0x08, 0x3E, 0x08, 0x08},
     {0x00, 0x50, 0x30, 0x00, 0x00}, {0x08, 0x08, 0x08, 0x08, 0x08}, {0x00, 0x60, 0x60, 0x00, 0x00},
     {0x20, 0x10, 0x08, 0x04, 0x02}, {0x3E, 0x51, 0x49, 0x45, 0x3E}, {0x00, 0x42, 0x7F, 0x40, 0x00},
     {0x42, 0x61, 0x51, 0x49, 0x46}, {0x21, 0x41, 0x45, 0x4B, 0x31}, {0x18, 0x14, 0x12, 0x7F, 0x10},
     {0x27, 0x45, 0x45, 0x45, 0x39}, {0x3C, 0x4A, 0x49, 0x49, 0x30}, {0x01, 0x71, 0x09, 0x05, 0x03},
     {0x36, 0x49, 0x49, 0x49, 0x36}, {0x06, 0x49, 0x49, 0x29, 0x1E}, {0x00, 0x36, 0x36, 0x00, 0x00},
     {0x00, 0x56, 0x36, 0x00, 0x00}, {0x08, 0x14, 0x22, 0x41, 0x00}, {0x14, 0x14, 0x14, 0x14, 0x14},
     {0x00, 0x41, 0x22, 0x14, 0x08}, {0x02, 0x01, 0x51, 0x09, 0x06}, {0x32, 0x49, 0x79, 0x41, 0x3E},
     {0x7E, 0x11, 0x11, 0x11, 0x7E}, {0x7F, 0x49, 0x49, 0x49, 0x36}, {0x3E, 0x41, 0x41, 0x41, 0x22},
     {0x7F, 0x41, 0x41, 0x22, 0x1C}, {0x7F, 0x49, 0x49, 0x49, 0x41}, {0x7F, 0x09, 0x09, 0x09, 0x01},
     {0x3E, 0x41, 0x49, 0x49, 0x7A}, {0x7F, 0x08, 0x08, 0x08, 0x7F}, {0x00, 0x41, 0x7F, 0x41, 0x00},
     {0x20, 0x40, 0x41, 0x3F, 0x01}, {0x7F, 0x08, 0x14, 0x22, 0x41}, {0x7F, 0x40, 0x40, 0x40, 0x40},
     {0x7F, 0x02, 0x0C, 0x02, 0x7F}, {0x7F, 0x04, 0x08, 0x10, 0x7F}, {0x3E, 0x41, 0x41, 0x41, 0x3E},
     {0x7F, 0x09, 0x09, 0x09, 0x06}, {0x3E, 0x41, 0x51, 0x21, 0x5E}, {0x7F, 0x09, 0x19, 0x29, 0x46},
     {0x46, 0x49, 0x49, 0x49, 0x31}, {0x01, 0x01, 0x7F, 0x01, 0x01}, {0x3F, 0x40, 0x40, 0x40, 0x3F},
     {0x1F, 0x20, 0x40, 0x20, 0x1F}, {0x3F, 0x40, 0x38, 0x40, 0x3F}, {0x63, 0x14, 0x08, 0x14, 0x63},
     {0x07, 0x08, 0x70, 0x08, 0x07}, {0x61, 0x51, 0x49, 0x45, 0x43}, {0x00, 0x7F, 0x41, 0x41, 0x00},
     {0x02, 0x04, 0x08, 0x10, 0x20}, {0x00, 0x41, 0x41, 0x7F, 0x00}, {0x04, 0x02, 0x01, 0x02, 0x04},
     {0x40, 0x40, 0x40, 0x40, 0x40}, {0x00, 0x01, 0x02, 0x04, 0x00}, {0x20, 0x54, 0x54, 0x54, 0x78},
     {0x7F, 0x48, 0x44, 0x44, 0x38}, {0x38, 0x44, 0x44, 0x44, 0x20}, {0x38, 0x44, 0x44, 0x48, 0x7F},
     {0x38, 0x54, 0x54, 0x54, 0x18}, {0x08, 0x7E, 0x09, 0x01, 0x02}, {0x0C, 0x52, 0x52, 0x52, 0x3E},
     {0x7F, 0x08, 0x04, 0x04, 0x78}, {0x00, 0x44, 0x7D, 0x40, 0x00}, {0x20, 0x40, 0x44, 0x3D, 0x00},
     {0x7F, 0x10, 0x28, 0x44, 0x00}, {0x00, 0x41, 0x7F, 0x40, 0x00}, {0x7C, 0x04, 0x18, 0x04, 0x78},
     {0x7C, 0x08, 0x04, 0x04, 0x78}, {0x38, 0x44, 0x44, 0x44, 0x38}, {0x7C, 0x14, 0x14, 0x14, 0x08},
     {0x08, 0x14, 0x14, 0x18, 0x7C}, {0x7C, 0x08, 0x04, 0x04, 0x08}, {0x48, 0x54, 0x54, 0x54, 0x20},
     {0x04, 0x3F, 0x44, 0x40, 0x20}, {0x3C, 0x40, 0x40, 0x20, 0x7C}, {0x1C, 0x20, 0x40, 0x20, 0x1C},
     {0x3C, 0x40, 0x30, 0x40, 0x3C}, {0x44, 0x28, 0x10, 0x28, 0x44}, {0x0C, 0x50, 0x50, 0x50, 0x3C},
     {0x44, 0x64, 0x54, 0x4C, 0x44}, {0x00, 0x08, 0x36, 0x41, 0x00}, {0x00, 0x00, 0x7F, 0x00, 0x00},
     {0x00, 0x41, 0x36, 0x08, 0x00}, {0x08, 0x04, 0x08, 0x10, 0x08}}};

/// Whether a pixel of a character is black. Each dot of the bitmap becomes four pixels. If the two dots next to a pixel
/// are equal, the pixel gets their colour, which smooths diagonals (Scale2x).
bool is_black(const std::array<std::uint8_t, 5>& glyph, std::int64_t x, std::int64_t y) {
  const auto dot = [&](std::int64_t column, std::int64_t row) {
    return column >= 0 && column < 5 && row >= 0 && (glyph[static_cast<std::size_t>(column)] >> row & 1) != 0;
  };
  const std::int64_t column = x / 2, row = y / 2, side = x % 2 == 0 ? -1 : 1, end = y % 2 == 0 ? -1 : 1;
  const bool beside = dot(column + side, row), beyond = dot(column, row + end);
  const bool in_corner = beside == beyond && beside != dot(column - side, row) && beyond != dot(column, row - end);
  return in_corner ? beside : dot(column, row);
}

/// Returns the values of the ticks on an axis of `pixels` pixels that begins at `from`.
std::vector<double> ticks(std::int64_t pixels, const scale& units, double step) {
  std::vector<double> values;
  const double end = units.from + static_cast<double>(pixels) * units.per_pixel;
  for (double n = std::ceil(units.from / step - 1e-9); n * step < end; ++n) values.push_back(n * step + 0.0);
  return values;
}

/// The distance between the ticks of an axis, at least `pixels` pixels, and the format of their numbers.
struct numbering {
  numbering(const scale& units, double pixels)
      : step(round_step(pixels * units.per_pixel)),
        decimals(std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)))) {}
  [[nodiscard]] std::string text(double value) const { return fmt::format("{:.{}f}", value, decimals); }

  double step;
  int decimals;
};

}  // namespace

std::int64_t width_of(std::string_view text) { return static_cast<std::int64_t>(text.size()) * character_width; }

picture::picture(std::int64_t width, std::int64_t height)
    : width_(width), height_(height), rgb_(static_cast<std::size_t>(width * height * 3), 255) {}

void picture::put(std::int64_t x, std::int64_t y, const colour& c) {
  if (x < 0 || x >= width_ || y < 0 || y >= height_) return;
  std::uint8_t* const p = &rgb_[static_cast<std::size_t>(3 * (y * width_ + x))];
  for (std::size_t k = 0; k < 3; ++k) p[k] = static_cast<std::uint8_t>(std::clamp(c[k], 0.0, 255.0));
}

void picture::put(std::int64_t x, std::int64_t y, const picture& other) {
  for (std::int64_t j = 0; j < other.height_; ++j)
    for (std::int64_t i = 0; i < other.width_; ++i) {
      const std::uint8_t* const from = &other.rgb_[static_cast<std::size_t>(3 * (j * other.width_ + i))];
      put(x + i, y + j, {double{1} * from[0], double{1} * from[1], double{1} * from[2]});
    }
}

void picture::write(std::int64_t x, std::int64_t y, std::string_view text) {
  for (const char character : text) {
    const auto number = static_cast<std::size_t>(static_cast<unsigned char>(character)) - ' ';
    if (number < glyphs.size())
      for (std::int64_t row = 0; row < character_height; ++row)
        for (std::int64_t column = 0; column + 2 < character_width; ++column)
          if (is_black(glyphs[number], column, row)) put(x + column, y + row, {0, 0, 0});
    x += character_width;
  }
}

double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

void draw_axes(picture& p, const area& where, const scale& across, const scale& down) {
  constexpr std::int64_t length = 5, gap = 3;  // pixels
  const auto pixels = [](double value, const scale& units) {
    return static_cast<std::int64_t>(std::lround((value - units.from) / units.per_pixel));
  };
  // A line around the area.
  for (std::int64_t i = -1; i <= where.across; ++i)
    for (const std::int64_t j : {std::int64_t{-1}, where.down}) p.put(where.left + i, where.top + j, {0, 0, 0});
  for (std::int64_t j = 0; j < where.down; ++j)
    for (const std::int64_t i : {std::int64_t{-1}, where.across}) p.put(where.left + i, where.top + j, {0, 0, 0});
  constexpr double between_columns = 120, between_rows = 50;
  const numbering columns(across, between_columns), rows(down, between_rows);
  for (const double value : ticks(where.across, across, columns.step)) {
    const std::string text = columns.text(value);
    const std::int64_t x = where.left + pixels(value, across);
    for (std::int64_t k = 1; k <= length; ++k) p.put(x, where.top - k, {0, 0, 0});
    p.write(x - width_of(text) / 2, where.top - length - gap - character_height, text);
  }
  for (const double value : ticks(where.down, down, rows.step)) {
    const std::string text = rows.text(value);
    const std::int64_t y = where.top + pixels(value, down);
    for (std::int64_t k = 1; k <= length; ++k) p.put(where.left - k, y, {0, 0, 0});
    p.write(where.left - length - gap - width_of(text), y - character_height / 2, text);
  }
}

void write_png(const std::string& path, const picture& p) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(p.width());
  header.height = static_cast<png_uint_32>(p.height());
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::string file(bytes, '\0');
  if (png_image_write_to_memory(&header, file.data(), &bytes, 0, p.rgb().data(), 0, nullptr) == 0)
    throw bad_input("cannot write " + path + ": " + header.message);
  file.resize(bytes);
  os::write_file(path, file);
}

pixels read_png(const std::string& path, bool colour) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  const auto refuse = [&] { throw bad_input("cannot read " + path + " as PNG: " + header.message); };
  if (png_image_begin_read_from_file(&header, path.c_str()) == 0) refuse();
  const bool colours = colour && (header.format & PNG_FORMAT_FLAG_COLOR) != 0;
  header.format = colours ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  pixels p{header.width, header.height, colours ? 3 : 1, {}};
  try {
    // The header of a damaged file may state a size that exceeds the memory.
    command_line::check_room(fmt::format("{}, an image of {} x {} pixels", path, p.width, p.height),
                             {.on_devices = 0, .on_host = static_cast<double>(p.width * p.height * p.channels)}, 0);
    p.values.resize(static_cast<std::size_t>(p.width * p.height * p.channels));
  } catch (...) {
    png_image_free(&header);
    throw;
  }
  if (png_image_finish_read(&header, nullptr, p.values.data(), 0, nullptr) == 0) refuse();
  return p;
}

}  // namespace hpe::pictures
