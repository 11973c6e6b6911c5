// Applies every spelling of the pure instructions to the same corner cases. Compares the interpreter with recorded
// results of an H200, native code with the interpreter bit by bit, and some families of instructions with plain C++.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/ptx/conformance/conformance_cases.h"
#include "tests/ptx/conformance/recorded.h"
#include "tests/ptx/kernel_runner.h"

namespace hpe::ptx::test {
namespace {

std::vector<std::uint64_t> run_all(engine_kind kind) {
  const auto cases = conformance_cases();
  const auto operands = conformance_operands();
  kernel_runner runner({conformance_text(cases)}, kind);
  auto* const in = runner.upload(operands);
  std::vector<std::uint64_t> all;
  for (std::size_t n = 0; n < cases.size(); ++n) {
    auto* const out = runner.upload(std::vector<std::uint64_t>(operands.size(), 0xabababababababab));
    EXPECT_EQ(runner.is_compiled(fmt::format("case_{}", n)), kind == engine_kind::compiler) << cases[n].spelling;
    const auto stopped =
        runner.launch(fmt::format("case_{}", n), {{static_cast<std::uint32_t>(operands.size() / 128)}, {128}}, in, out);
    EXPECT_FALSE(stopped.has_value()) << cases[n].spelling;
    all.insert(all.end(), out, out + operands.size());
  }
  return all;
}

const std::vector<std::uint64_t>& interpreted() {
  static const std::vector<std::uint64_t> results = run_all(engine_kind::interpreter);
  return results;
}

std::string where(std::size_t n, std::size_t o) {
  const auto operands = conformance_operands()[o];
  return fmt::format("{} of {:#x}, {:#x}, {:#x}, {:#x}", conformance_cases()[n].spelling, operands[0], operands[1],
                     operands[2], operands[3]);
}

TEST(Conformance, NativeCodeIsTheInterpreterBitForBit) {
  if (!has_compiler) GTEST_SKIP() << "built without LLVM: there is no native code";
  const auto cases = conformance_cases();
  const std::size_t count = conformance_operands().size();
  const std::vector<std::uint64_t> native = run_all(engine_kind::compiler);
  ASSERT_EQ(native.size(), interpreted().size());
  unsigned wrong = 0;
  for (std::size_t n = 0; n < cases.size(); ++n)
    for (std::size_t o = 0; o < count && wrong < 40; ++o)
      if (native[n * count + o] != interpreted()[n * count + o]) {
        ADD_FAILURE() << where(n, o)
                      << fmt::format(": compiled {:#x}, interpreted {:#x}", native[n * count + o],
                                     interpreted()[n * count + o]);
        ++wrong;
        break;
      }
}

TEST(Conformance, InterpreterIsAnH200) {
  const std::vector<std::uint64_t> recorded = recorded_results();
  const auto cases = conformance_cases();
  const std::size_t count = conformance_operands().size();
  ASSERT_EQ(recorded.size(), cases.size() * count);
  unsigned wrong = 0;
  for (std::size_t n = 0; n < cases.size(); ++n) {
    for (std::size_t o = 0; o < count && wrong < 40; ++o) {
      const std::uint64_t mine = interpreted()[n * count + o], theirs = recorded[n * count + o];
      if (is_as_recorded(cases[n], mine, theirs)) continue;
      ADD_FAILURE() << where(n, o) << fmt::format(": {:#x}, an H200 gives {:#x}", mine, theirs);
      ++wrong;
      break;
    }
  }
}

// Compares some families of instructions with plain C++ code.
TEST(Conformance, FamiliesInPlainArithmetic) {
  const auto cases = conformance_cases();
  const auto operands = conformance_operands();
  const auto check = [&](const std::string& spelling, auto expected) {
    std::size_t n = 0;
    while (n < cases.size() && cases[n].spelling != spelling) ++n;
    ASSERT_LT(n, cases.size()) << spelling;
    for (std::size_t o = 0; o < operands.size(); ++o) {
      const std::uint64_t want = expected(operands[o][0], operands[o][1], operands[o][2]);
      ASSERT_EQ(interpreted()[n * operands.size() + o], want) << where(n, o);
    }
  };
  using u = std::uint64_t;
  check("mul.hi.u64", [](u a, u b, u) {
    const u al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
    const u middle = ah * bl + (al * bl >> 32);
    return ah * bh + (middle >> 32) + (((middle & 0xffffffff) + al * bh) >> 32);
  });
  check("mul.wide.s32", [](u a, u b, u) {
    return static_cast<u>(std::int64_t{static_cast<std::int32_t>(a)} * static_cast<std::int32_t>(b));
  });
  check("shl.b32", [](u a, u b, u) {
    return static_cast<std::uint32_t>(b) > 31 ? 0 : static_cast<u>(static_cast<std::uint32_t>(a << (b & 31)));
  });
  check("shr.s64", [](u a, u b, u) {
    auto v = static_cast<std::int64_t>(a);
    for (std::uint32_t n = std::min<std::uint32_t>(static_cast<std::uint32_t>(b), 64); n > 0; --n)
      v = (v - (v & 1)) / 2;
    return static_cast<u>(v);
  });
  check("add.sat.s32", [](u a, u b, u) {
    std::int32_t sum = 0;
    if (__builtin_add_overflow(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b), &sum))
      sum = static_cast<std::int32_t>(a) < 0 ? INT32_MIN : INT32_MAX;
    return static_cast<u>(static_cast<std::uint32_t>(sum));
  });
  check("sad.u32", [](u a, u b, u c) {
    const auto x = static_cast<std::uint32_t>(a), y = static_cast<std::uint32_t>(b);
    return static_cast<u>(static_cast<std::uint32_t>(c + (x > y ? x - y : y - x)));
  });
  check("brev.b64", [](u a, u, u) {
    u r = 0;
    for (int n = 0; n < 64; ++n) r |= (a >> n & 1) << (63 - n);
    return r;
  });
  check("dp4a.s32.u32", [](u a, u b, u c) {
    auto sum = static_cast<std::uint32_t>(c);
    for (int n = 0; n < 4; ++n)
      sum += static_cast<std::uint32_t>(static_cast<std::int8_t>(a >> (8 * n)) * static_cast<int>(b >> (8 * n) & 0xff));
    return static_cast<u>(sum);
  });
  check("bfe.u32", [](u a, u b, u c) {
    const auto value = static_cast<u>(static_cast<std::uint32_t>(a)) >> std::min<u>(b & 0xff, 63);
    return (b & 0xff) > 31 ? 0 : (c & 0xff) > 31 ? value : value & ((u{1} << (c & 0xff)) - 1);
  });
  check("cvt.rzi.u32.f32", [](u a, u, u) {
    const float v = std::bit_cast<float>(static_cast<std::uint32_t>(a));
    return !(v > 0) ? 0 : v >= 4294967296.0F ? u{0xffffffff} : static_cast<u>(v);
  });
  check("fma.rn.f64", [](u a, u b, u c) {
    const auto is_nan = [](u v) { return v << 1 > 0xffe0000000000000; };
    for (const u v : {b, c, a})
      if (is_nan(v)) return v | 0x0008000000000000;
    const double r = std::fma(std::bit_cast<double>(a), std::bit_cast<double>(b), std::bit_cast<double>(c));
    return std::isnan(r) ? u{0xfff8000000000000} : std::bit_cast<u>(r);
  });
  check("setp.leu.f32", [](u a, u b, u) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(a)),
                y = std::bit_cast<float>(static_cast<std::uint32_t>(b));
    return static_cast<u>(std::isnan(x) || std::isnan(y) || x <= y);
  });
}

}  // namespace
}  // namespace hpe::ptx::test
