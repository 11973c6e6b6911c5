#include "runtime/ptx/arithmetic/mma.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/ptx/arithmetic/matrix.h"
#include "runtime/ptx/execution/scheduler.h"
#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/races/race_finder.h"

namespace hpe::ptx {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

bool is_byte(type t) { return t == type::s8 || t == type::u8; }

// Returns whether PTX supports this combination of types and k.
bool is_supported(const mma_shape& s) {
  const bool accumulates_float =
      (s.d == type::f32 && s.c == type::f32) || (s.a == type::f16 && s.d == type::f16 && s.c == type::f16);
  if (is_byte(s.a) && is_byte(s.b)) {
    if (s.c != type::s32 || s.d != type::s32) return false;
    return (s.m == 8 && s.k == 16) || (s.m == 16 && (s.k == 16 || s.k == 32));
  }
  if (s.a != s.b) return false;
  if (s.a == type::f64)
    return s.c == type::f64 && s.d == type::f64 && (s.m == 8 ? s.k == 4 : s.k == 4 || s.k == 8 || s.k == 16);
  if (s.m != 16 || !accumulates_float) return false;
  if (s.a == type::f16 || s.a == type::bf16) return s.k == 8 || s.k == 16;
  return s.a == type::tf32 && (s.k == 4 || s.k == 8);
}

class fragments {
 public:
  fragments(const block_context& block, const instruction& what, u32 first, const mma_shape& s)
      : block_(block), what_(what), first_(first), shape_(s) {}

  // Returns element e of a lane's fragment, whose first register is source operand `from`.
  [[nodiscard]] double element(u32 lane, std::size_t from, unsigned e, type t) const {
    const unsigned per = mma_shape::elements_of(t);
    const u64 raw = value_of(block_, first_ + lane, what_.sources[from + e / per]);
    return decode_element(raw >> (bits_of(t) * (e % per)), t);
  }

  void read(std::vector<double>& a, std::vector<double>& b) const {
    const unsigned wa = mma_shape::elements_of(shape_.a), wb = mma_shape::elements_of(shape_.b);
    a.resize(std::size_t{shape_.m} * shape_.k);
    b.resize(std::size_t{shape_.k} * shape_.n);
    for (u32 lane = 0; lane < warp_size; ++lane) {
      const unsigned group = lane / 4, t = lane % 4, rows = shape_.m / 8;
      for (unsigned r = 0; r < shape_.a_registers(); ++r)
        for (unsigned e = 0; e < wa; ++e)
          a[std::size_t{group + 8 * (r % rows)} * shape_.k + t * wa + e + r / rows * 4 * wa] =
              element(lane, 0, r * wa + e, shape_.a);
      for (unsigned r = 0; r < shape_.b_registers(); ++r)
        for (unsigned e = 0; e < wb; ++e)
          b[std::size_t{t * wb + e + r * 4 * wb} * shape_.n + group] =
              element(lane, shape_.a_registers(), r * wb + e, shape_.b);
    }
  }

 private:
  const block_context& block_;
  const instruction& what_;
  u32 first_;
  const mma_shape& shape_;
};

u64 finished(double sum, const mma_shape& s, bool saturates) {
  if (s.d == type::s32) return encode_integer(sum, saturates);
  return encode_element(sum, s.d);
}

std::uint8_t* row_of(block_context& block, const instruction& what, u32 thread) {
  constexpr u64 row_bytes = 16;
  const operand& o = what.sources[0];
  const u64 address = value_of(block, thread, o) + o.value;
  std::uint8_t* const at = reach(block, thread, window_of(what), address, row_bytes);
  const bool misaligned = at != nullptr && reinterpret_cast<u64>(at) % row_bytes != 0;
  if (at == nullptr || misaligned) {
    block.current = thread;
    block.fail(misaligned ? trap::reason::misaligned : trap::reason::address, address, place_of(block, what));
  }
  return at;
}

// The row and the column of one 16-bit half of a lane's register.
struct half_place {
  u32 row, column;
};
half_place place_of_half(u32 lane, u32 half, bool transposed) {
  const u32 row = lane / 4, column = lane % 4 * 2 + half;
  return transposed ? half_place{column, row} : half_place{row, column};
}

}  // namespace

unsigned mma_shape::elements_of(type t) {
  switch (t) {
    case type::f16:
    case type::bf16: return 2;
    case type::s8:
    case type::u8: return 4;
    default: return 1;
  }
}

std::optional<mma_shape> mma_shape_of(const instruction& i) {
  using enum modifier;
  mma_shape s{16, 8, 0, i.types[1], i.types[2], i.types[3], i.types[0]};
  switch (i.modifiers.one_of(m8n8k4, m8n8k16, m16n8k4, m16n8k8, m16n8k16, m16n8k32)) {
    case m8n8k4:
      s.m = 8;
      s.k = 4;
      break;
    case m8n8k16:
      s.m = 8;
      s.k = 16;
      break;
    case m16n8k4: s.k = 4; break;
    case m16n8k8: s.k = 8; break;
    case m16n8k16: s.k = 16; break;
    case m16n8k32: s.k = 32; break;
    default: return std::nullopt;
  }
  if (!i.has(row) || !i.has(col) || !is_supported(s)) return std::nullopt;
  return s;
}

void multiply_fragments(block_context& block, const instruction& what, std::uint32_t first) {
  const mma_shape s = *mma_shape_of(what);
  const fragments parts(block, what, first, s);
  std::vector<double> a, b;
  parts.read(a, b);
  const std::size_t c = s.a_registers() + s.b_registers();
  const unsigned mine = s.m * s.n / warp_size, per = mma_shape::elements_of(s.d);
  for (u32 lane = 0; lane < warp_size; ++lane) {
    u64 registers[4] = {};
    for (unsigned e = 0; e < mine; ++e) {
      const std::size_t row = lane / 4 + 8 * (e / 2), column = lane % 4 * 2 + e % 2;
      double sum = parts.element(lane, c, e, s.c);
      for (unsigned k = 0; k < s.k; ++k) sum = std::fma(a[row * s.k + k], b[k * s.n + column], sum);
      registers[e / per] |= finished(sum, s, what.has(modifier::satfinite)) << (e % per * 16);
    }
    for (std::size_t r = 0; r < what.results.size(); ++r)
      set_result(block, first + lane, what.results[r], registers[r]);
  }
}

void move_matrices(block_context& block, const instruction& what, std::uint32_t first) {
  const bool transposed = what.has(modifier::trans);
  if (what.op == opcode::movmatrix) {
    std::uint16_t matrix[8][8];
    for (u32 lane = 0; lane < warp_size; ++lane) {
      const u64 value = value_of(block, first + lane, what.sources[0]);
      for (u32 half = 0; half < 2; ++half)
        matrix[lane / 4][lane % 4 * 2 + half] = static_cast<std::uint16_t>(value >> (16 * half));
    }
    for (u32 lane = 0; lane < warp_size; ++lane) {
      const auto half = [&](u32 h) {
        const half_place p = place_of_half(lane, h, true);
        return u64{matrix[p.row][p.column]};
      };
      set_result(block, first + lane, what.results[0], half(0) | half(1) << 16);
    }
    return;
  }
  // The function writes the result registers after all loads, because a result register may also contain the address.
  u64 loaded[4][warp_size];
  const bool is_load = what.op == opcode::ldmatrix;
  for (unsigned m = 0; m < what.vector; ++m) {
    std::uint8_t* rows[8];
    for (u32 r = 0; r < 8; ++r) {
      const u32 thread = first + 8 * m + r;
      rows[r] = row_of(block, what, thread);
      if (block.races != nullptr)
        block.races->touch(block, thread, what, rows[r], 16, is_load ? memory_use::read : memory_use::write);
    }
    for (u32 lane = 0; lane < warp_size; ++lane) {
      u64 value = is_load ? 0 : value_of(block, first + lane, what.sources[1 + m]);
      for (u32 h = 0; h < 2; ++h) {
        const half_place p = place_of_half(lane, h, transposed);
        auto half = static_cast<std::uint16_t>(value >> (16 * h));
        std::uint8_t* const at = rows[p.row] + std::size_t{2} * p.column;
        if (is_load) {
          std::memcpy(&half, at, sizeof half);
          value |= u64{half} << (16 * h);
        } else {
          std::memcpy(at, &half, sizeof half);
        }
      }
      loaded[m][lane] = value;
    }
  }
  if (!is_load) return;
  for (unsigned m = 0; m < what.vector; ++m)
    for (u32 lane = 0; lane < warp_size; ++lane) set_result(block, first + lane, what.results[m], loaded[m][lane]);
}

}  // namespace hpe::ptx
