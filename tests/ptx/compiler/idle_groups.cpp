// Native code leaves a region early if no later thread has anything to do in it (idle_groups.cpp). Kernels in which few
// threads work between two barriers return the same as the same computation in C++.

#include <fmt/format.h>

#include <functional>

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

using IdleGroups = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

struct place {
  std::uint32_t x, y, z;
  dimensions block;
};

// A value that depends on the thread, as PTX and as C++. In the PTX, %r1 to %r3 contain %tid.x, y and z, and %r4 and
// %r5 contain %ntid.x and y.
struct index_kind {
  const char* name;
  const char* text;
  std::function<std::uint32_t(const place&)> value;
};

const std::vector<index_kind>& kinds() {
  static const std::vector<index_kind> all = {
      {"x", "mov.u32 %r9, %r1;", [](const place& p) { return p.x; }},
      {"y", "mov.u32 %r9, %r2;", [](const place& p) { return p.y; }},
      {"plane", "mad.lo.s32 %r9, %r2, %r4, %r1;", [](const place& p) { return p.y * p.block.x + p.x; }},
      {"whole", "mad.lo.s32 %r8, %r3, %r5, %r2; mad.lo.s32 %r9, %r8, %r4, %r1;",
       [](const place& p) { return (p.z * p.block.y + p.y) * p.block.x + p.x; }},
      {"down", "sub.u32 %r9, %r4, %r1;", [](const place& p) { return p.block.x - p.x; }},
      {"steps", "mad.lo.u32 %r9, %r1, 3, %r7;", [](const place& p) { return p.x * 3; }},
      {"columns", "mad.lo.u32 %r9, %r1, %r5, %r2;", [](const place& p) { return p.x * p.block.y + p.y; }}};
  return all;
}

// In each round, a thread adds the number of the round to its sum unless the comparison of index + base with the bound
// holds; then the bound is halved. out[thread] = the sum, or 1000 + sum + bound if the comparison does not hold after
// all rounds. is_mixed: all threads also change another register, whose value is added to the result.
std::string kernel_text(const std::string& name, const index_kind& index, const comparison& how, const char* type,
                        bool is_mixed) {
  return fmt::format(R"(
.visible .entry {}(.param .u64 out, .param .u32 base, .param .u32 bound, .param .u32 rounds) {{
  .reg .pred %p<5>;
  .reg .b32 %r<24>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r7, [base];
  ld.param.u32 %r10, [bound];
  ld.param.u32 %r11, [rounds];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %tid.z;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %ntid.y;
  {}
  add.u32 %r18, %r9, %r7;
  mov.u32 %r12, 0;
  mov.u32 %r13, 0;
  mov.u32 %r14, 0;
again:
  bar.sync 0;
  add.u32 %r12, %r12, 1;
  setp.{}.{} %p1, %r18, %r10;
  @%p1 bra next;
  add.u32 %r13, %r13, %r12;
next:
  {}
  shr.u32 %r10, %r10, 1;
  bar.sync 0;
  setp.lt.u32 %p2, %r12, %r11;
  @%p2 bra again;
  mad.lo.u32 %r16, %r3, %r5, %r2;
  mad.lo.u32 %r16, %r16, %r4, %r1;
  mul.wide.u32 %rd2, %r16, 4;
  add.u64 %rd3, %rd1, %rd2;
  add.u32 %r17, %r13, %r14;
  st.global.u32 [%rd3], %r17;
  bar.sync 0;
  setp.{}.{} %p3, %r18, %r10;
  @%p3 bra done;
  add.u32 %r17, %r17, %r10;
  add.u32 %r17, %r17, 1000;
  st.global.u32 [%rd3], %r17;
done:
  ret;
}}
)",
                     name, index.text, how.name, type, is_mixed ? "xor.b32 %r14, %r14, %r1;" : "", how.name, type);
}

struct bounds {
  std::uint32_t base, bound;
};

// Returns the value that a thread must store.
std::uint32_t expected(const place& p, const index_kind& index, const comparison& how, bool is_signed, bool is_mixed,
                       bounds given, std::uint32_t rounds) {
  const std::uint32_t x =
      // "steps" adds the base in its mad, too
      index.value(p) + given.base * (std::string_view(index.name) == "steps" ? 2 : 1);
  const auto wide = [&](std::uint32_t v) -> std::int64_t {
    return is_signed ? std::int64_t{static_cast<std::int32_t>(v)} : std::int64_t{v};
  };
  std::uint32_t sum = 0, other = 0;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    if (!how.holds(wide(x), wide(given.bound))) sum += round;
    if (is_mixed) other ^= p.x;
    given.bound >>= 1;
  }
  sum += other;
  return how.holds(wide(x), wide(given.bound)) ? sum : sum + 1000 + given.bound;
}

TEST_P(IdleGroups, LeaveWhatTheOthersLeave) {
  constexpr std::uint32_t rounds = 5;
  constexpr std::size_t most = 192;
  const std::vector<dimensions> blocks = {{96}, {16, 4}, {32, 2, 3}, {16, 1, 4}};
  for (const char* const type : {"s32", "u32"}) {
    std::string text = ".version 8.6\n.target sm_90\n.address_size 64\n";
    const auto is_mixed = [](const index_kind& index, const comparison& how) {
      return (&index - kinds().data() + &how - comparisons().data()) % 2 != 0;
    };
    const auto name_of = [](const index_kind& index, const comparison& how) {
      return fmt::format("k_{}_{}", index.name, how.name);
    };
    for (const index_kind& index : kinds())
      for (const comparison& how : comparisons())
        text += kernel_text(name_of(index, how), index, how, type, is_mixed(index, how));
    kernel_runner runner({text}, GetParam());
    auto* const out = runner.upload(std::vector<std::uint32_t>(most));
    const auto check = [&](const index_kind& index, const comparison& how, bounds given, const dimensions& block) {
      ASSERT_FALSE(
          runner.launch(name_of(index, how), {{1}, block}, out, given.base, given.bound, std::uint32_t{rounds}));
      std::size_t t = 0;
      for (std::uint32_t z = 0; z < block.z; ++z)
        for (std::uint32_t y = 0; y < block.y; ++y)
          for (std::uint32_t x = 0; x < block.x; ++x, ++t)
            ASSERT_EQ(out[t],
                      expected({x, y, z, block}, index, how, type[0] == 's', is_mixed(index, how), given, rounds))
                << index.name << " " << how.name << " " << type << " " << given.base << " " << given.bound << " "
                << block.x << " " << block.y << " " << block.z << " thread " << t;
    };
    for (const index_kind& index : kinds())
      for (const comparison& how : comparisons())
        for (const bounds given : {bounds{0, 40}, {0, 0}, {5, 0xfffffff0}, {0x7fffffe0, 0x7ffffff0}, {0xfffffff0, 8}})
          for (const dimensions& block : blocks) check(index, how, given, block);
  }
}

INSTANTIATE_FOR_ENGINES(IdleGroups);

}  // namespace
}  // namespace hpe::ptx::test
