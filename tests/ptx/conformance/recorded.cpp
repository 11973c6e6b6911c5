#include "tests/ptx/conformance/recorded.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "tests/ptx/kernel_runner.h"

namespace hpe::ptx::test {

namespace {

// The largest differences between hpe's value, which is correctly rounded, and the hardware's: in units in the last
// place, and absolute. A result is accepted if one of the two bounds holds.
struct bound {
  std::string_view begins, ends;
  double ulps;
  double absolute;
};

constexpr bound bounds[] = {
    // The hardware interpolates in a table, and is sometimes wrong by one unit in the last place. A division multiplies
    // by a reciprocal with this error.
    {"rcp.approx", "f32", 1, 0},
    {"rsqrt.approx", "f32", 1, 0},
    {"sqrt.approx", "f32", 1, 0},
    {"ex2.approx", "f32", 1, 0},
    {"div.approx", "f32", 1, 0},
    {"div.full", "f32", 1, 0},
    {"ex2.approx", "f16", 1, 0},
    {"ex2.approx", "f16x2", 1, 0},
    // Near 1 the error of the table is constant, while the logarithm becomes small (PTX ISA, lg2: 2^-22 absolutely).
    {"lg2.approx", "f32", 2, 0x1p-22},
    // The table of the sine has an absolute error. The error of the argument is far larger, but hpe makes the same
    // error (scalar_float.cpp).
    {"sin.approx", "f32", 0, 0x1p-21},
    {"cos.approx", "f32", 0, 0x1p-21},
    // PTX ISA, tanh: 2^-11 relatively; the largest observed difference is 114 units of f32.
    {"tanh.approx", "f32", 128, 0},
    {"tanh.approx", "f16", 1, 0},
    {"tanh.approx", "f16x2", 1, 0},
    {"tanh.approx", "bf16", 1, 0},
    // The lower 32 bits of these results are 0, so their last unit is 2^32 units of f64.
    {"rcp.approx.ftz", "f64", 0x1p32, 0},
    {"rsqrt.approx.ftz", "f64", 0x1p32, 0},
    {"rsqrt.approx", "f64", 2, 0},
};

// A value of a format as a number, and the value's position in the order of all values of the format.
struct reading {
  double value;
  std::int64_t place;
};

reading read(std::uint64_t raw, unsigned width) {
  const std::uint64_t sign = raw >> (width - 1) & 1, rest = raw & ((std::uint64_t{1} << (width - 1)) - 1);
  const auto place = static_cast<std::int64_t>(rest) * (sign != 0 ? -1 : 1);
  if (width == 64) return {std::bit_cast<double>(raw), place};
  if (width == 32) return {std::bit_cast<float>(static_cast<std::uint32_t>(raw)), place};
  return {0, place};
}

bool is_near(const bound& b, std::uint64_t mine, std::uint64_t recorded, unsigned width) {
  if (mine == recorded) return true;
  const reading x = read(mine, width), y = read(recorded, width);
  if (std::isnan(x.value) || std::isnan(y.value)) return false;
  if (std::fabs(static_cast<double>(x.place - y.place)) <= b.ulps) return true;
  return width > 16 && std::fabs(x.value - y.value) <= b.absolute;
}

}  // namespace

std::vector<std::uint64_t> recorded_results() {
  const std::string packed = read_file(HPE_PTX_RECORDED);
  std::vector<std::uint64_t> results(conformance_cases().size() * conformance_operands().size());
  if (ZSTD_decompress(results.data(), results.size() * 8, packed.data(), packed.size()) != results.size() * 8)
    return {};
  return results;
}

bool is_as_recorded(const conformance_case& k, std::uint64_t mine, std::uint64_t recorded) {
  if (mine == recorded) return true;
  if (!k.approximate) return false;
  const auto* const b = std::find_if(std::begin(bounds), std::end(bounds), [&](const bound& c) {
    const std::string_view name = k.spelling;
    return name.starts_with(c.begins) && name.substr(name.rfind('.') + 1) == c.ends;
  });
  if (b == std::end(bounds)) return false;
  if (b->ends.ends_with("16x2"))
    return is_near(*b, mine & 0xffff, recorded & 0xffff, 16) && is_near(*b, mine >> 16, recorded >> 16, 16);
  return is_near(*b, mine, recorded, b->ends.ends_with("16") ? 16 : b->ends == "f64" ? 64 : 32);
}

}  // namespace hpe::ptx::test
