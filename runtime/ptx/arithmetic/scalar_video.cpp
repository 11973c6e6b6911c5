// The SIMD video instructions compute one result for each of the two halves or four bytes of a 32-bit register (PTX
// ISA, section 9.7.17). With .add, the instruction adds all these results to c. Otherwise each result replaces the same
// half or byte of c, if the mask selects that half or byte. An instruction without a mask replaces all of them.

#include <algorithm>
#include <cstdlib>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::ptx {

namespace {

using u64 = std::uint64_t;

enum class operation { add, subtract, average, absolute_difference, minimum, maximum };

template <operation op>
std::int64_t apply(std::int64_t x, std::int64_t y) {
  switch (op) {
    case operation::add: return x + y;
    case operation::subtract: return x - y;
    case operation::average: return (x + y + (x + y >= 0 ? 1 : 0)) >> 1;
    case operation::absolute_difference: return std::abs(x - y);
    case operation::minimum: return std::min(x, y);
    case operation::maximum: return std::max(x, y);
  }
  return 0;
}

std::int64_t widened(u64 raw, unsigned bits, bool with_sign) {
  const u64 shifted = raw << (64 - bits);
  return with_sign ? static_cast<std::int64_t>(shifted) >> (64 - bits)
                   : static_cast<std::int64_t>(shifted >> (64 - bits));
}

template <operation op, unsigned parts>
u64 video(u64 a, u64 b, u64 c, u64 d) {
  constexpr unsigned bits = 32 / parts;
  constexpr u64 mask = (u64{1} << bits) - 1;
  const descriptor how = descriptor::unpack(d);
  const bool to_signed = is_signed(how.to);
  const std::int64_t low = to_signed ? -(std::int64_t{1} << (bits - 1)) : 0;
  const std::int64_t high = to_signed ? (std::int64_t{1} << (bits - 1)) - 1 : static_cast<std::int64_t>(mask);
  u64 result = how.accumulate ? c : 0;
  for (unsigned n = 0; n < parts; ++n) {
    std::int64_t value = apply<op>(widened(a >> (n * bits), bits, is_signed(how.from)),
                                   widened(b >> (n * bits), bits, is_signed(how.third)));
    if (how.sat) value = std::clamp(value, low, high);
    if (how.accumulate) {
      result += static_cast<u64>(value);
    } else {
      result |= (static_cast<u64>(value) & mask) << (n * bits);
    }
  }
  return static_cast<std::uint32_t>(result);
}

}  // namespace

scalar_function find_video_scalar(const instruction& i) {
  switch (i.op) {
    case opcode::vadd2: return video<operation::add, 2>;
    case opcode::vadd4: return video<operation::add, 4>;
    case opcode::vsub2: return video<operation::subtract, 2>;
    case opcode::vsub4: return video<operation::subtract, 4>;
    case opcode::vavrg2: return video<operation::average, 2>;
    case opcode::vavrg4: return video<operation::average, 4>;
    case opcode::vabsdiff2: return video<operation::absolute_difference, 2>;
    case opcode::vabsdiff4: return video<operation::absolute_difference, 4>;
    case opcode::vmin2: return video<operation::minimum, 2>;
    case opcode::vmin4: return video<operation::minimum, 4>;
    case opcode::vmax2: return video<operation::maximum, 2>;
    case opcode::vmax4: return video<operation::maximum, 4>;
    default: return nullptr;
  }
}

}  // namespace hpe::ptx
