// Certain accesses: every byte is accessed by the instruction, in the launch. For kernels as programs have them, these
// are all bytes. HPE_TEST_SEED repeats a random kernel.

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "runtime/spread/model/certain_accesses.h"
#include "tests/ptx/analysis/fixture.h"
#include "tests/ptx/kernel_generator.h"
#include "tests/spread/fixture.h"

namespace hpe::spread::test {
namespace {

/// Records the bytes that each instruction accesses.
class byte_recorder final : public ptx::instruction_observer {
 public:
  explicit byte_recorder(const ptx::analysis::kernel_analysis& kernel) : kernel_(kernel) {}

  void comes_to(const ptx::block_context& /*block*/, std::uint32_t /*thread*/, const ptx::function& f,
                std::uint32_t position, const std::uint64_t* registers, bool runs) override {
    if (&f != kernel_.kernel || !runs) return;
    for (const ptx::analysis::access& a : kernel_.accesses) {
      const ptx::operand& o = f.code[a.position].sources[a.operand];
      if (a.position != position || !o.is_register()) continue;
      for (std::uint64_t byte = 0; byte < a.bytes; ++byte) bytes[position].insert(registers[o.index] + o.value + byte);
    }
  }

 private:
  const ptx::analysis::kernel_analysis& kernel_;

 public:
  std::map<std::uint32_t, std::set<std::uint64_t>> bytes;  // by position
};

struct tally {
  unsigned kernels = 0, accesses = 0, certain = 0;
};

/// Runs some blocks of a launch in the interpreter, and compares. `is_exact`: all bytes of all accesses must be
/// certain.
void compare(const kernel_model& model, ptx::test::checked_program& program, const launch& l, const subgrid& part,
             bool is_exact, tally& count) {
  SCOPED_TRACE(fmt::format("blocks from {} on, {}", fmt::join(part.first, " "), fmt::join(part.count, " x ")));
  const ptx::function& kernel = *program.program().find_kernel(model.analysis().kernel->name);
  const ptx::analysis::kernel_analysis analysis = ptx::analysis::analyse(program.program(), kernel);
  byte_recorder seen(analysis);
  const std::vector<std::uint64_t> blocks = blocks_of(part, l.grid);
  program.run(seen, kernel, dimensions_of(l.grid), dimensions_of(l.block), l.parameters, blocks);
  std::map<std::uint32_t, std::set<std::uint64_t>> found;
  for (const certain_access& each : model.certain().of(l, part)) {
    const auto position = static_cast<std::uint32_t>(each.by - model.analysis().kernel->code.data());
    const std::set<std::uint64_t>& real = seen.bytes[position];
    for (const auto& [begin, end] : each.ranges) {
      for (std::uint64_t byte = begin; byte < end; ++byte) {
        found[position].insert(byte);
        ASSERT_TRUE(real.contains(byte)) << fmt::format("access {} at line {}: {:#x} is not accessed", each.number,
                                                        each.by->line, byte);
      }
    }
    count.certain += each.ranges.empty() ? 0 : 1;
  }
  ++count.kernels;
  count.accesses += static_cast<unsigned>(seen.bytes.size());
  if (!is_exact) return;
  for (const auto& [position, bytes] : seen.bytes)
    EXPECT_EQ(found[position].size(), bytes.size()) << "PTX line " << kernel.code[position].line;
}

void test_one(unsigned seed, tally& count) {
  const std::string text = ptx::test::kernel_generator(seed).text();
  SCOPED_TRACE(fmt::format("HPE_TEST_SEED={}\n{}", seed, text));
  std::mt19937 random(seed);
  const kernel_model model(ptx::parse({text}), "k");
  ptx::test::checked_program program(text);
  ptx::test::generated_parameters values{};
  auto* const table = static_cast<std::uint32_t*>(program.take(64));
  for (unsigned n = 0; n < 16; ++n) table[n] = static_cast<std::uint32_t>(random() % 50);
  constexpr std::size_t most = 1 << 20;
  values.array0 = reinterpret_cast<std::uint64_t>(program.take(2 * most)) + most;
  values.array1 = reinterpret_cast<std::uint64_t>(program.take(2 * most)) + most;
  values.table = reinterpret_cast<std::uint64_t>(table);
  values.n = static_cast<std::uint32_t>(random() % 100);
  values.stride = static_cast<std::uint32_t>(random() % 40);
  const launch l{{3, 2, 2}, {4, 3, 2}, &values, sizeof values};
  compare(model, program, l, {{0, 0, 0}, l.grid}, false, count);
  compare(model, program, l, random_part(random, l.grid), false, count);
}

TEST(CertainAccesses, AreMadeByRandomKernels) {
  tally count;
  if (const char* const seed = std::getenv("HPE_TEST_SEED")) {
    test_one(static_cast<unsigned>(std::atoi(seed)), count);
    return;
  }
  const unsigned first = std::random_device{}();
  fmt::print("seeds from {} on\n", first);
  for (unsigned n = 0; n < 150 && !HasFailure(); ++n) test_one(first + n, count);
  fmt::print("{} kernels: {} accesses, {} of them certain\n", count.kernels, count.accesses, count.certain);
  EXPECT_GT(count.certain, count.accesses / 20);  // otherwise the test would check too little
}

/// A kernel with arrays p and q, and numbers n and m. %x and %y are global indices, %i and %a are free.
std::string kernel_of(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n"
         ".visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n, .param .u32 m) {\n"
         ".reg .pred %c<4>;\n.reg .b32 %x, %y, %i, %j, %k, %n, %m, %s, %v, %t<8>;\n.reg .b64 %p, %q, %a, %b;\n"
         "ld.param.u64 %p, [p];\nld.param.u64 %q, [q];\nld.param.u32 %n, [n];\nld.param.u32 %m, [m];\n"
         "mov.u32 %t0, %ctaid.x;\nmov.u32 %t1, %ntid.x;\nmov.u32 %t2, %tid.x;\nmad.lo.s32 %x, %t0, %t1, %t2;\n"
         "mov.u32 %t3, %ctaid.y;\nmov.u32 %t4, %ntid.y;\nmov.u32 %t5, %tid.y;\nmad.lo.s32 %y, %t3, %t4, %t5;\n"
         "mov.u32 %t6, %nctaid.x;\nmul.lo.s32 %s, %t6, %t1;\n" +
         body + "END:\nret;\n}\n";
}

const std::string store_at_i = "mul.wide.s32 %a, %i, 4;\nadd.s64 %a, %p, %a;\nst.global.u32 [%a], %x;\n";
const std::string load_at_i = "mul.wide.s32 %a, %i, 4;\nadd.s64 %a, %q, %a;\nld.global.u32 %v, [%a];\n";

struct launch_shape {
  dimension grid{4, 1, 1}, block{8, 1, 1};
  std::uint32_t n = 29, m = 5;
  bool parts_are_exact = true;  // otherwise, some accesses of a part of the grid may be missing
};

tally compare(const std::string& body, bool is_exact, const launch_shape& shape = {}) {
  const std::string text = kernel_of(body);
  const kernel_model model(ptx::parse({text}), "k");
  ptx::test::checked_program program(text);
  struct {
    std::uint64_t p, q;
    std::uint32_t n, m;
  } values{};
  constexpr std::size_t most = 1 << 16;
  values.p = reinterpret_cast<std::uint64_t>(program.take(2 * most)) + most;
  values.q = reinterpret_cast<std::uint64_t>(program.take(2 * most)) + most;
  values.n = shape.n;
  values.m = shape.m;
  tally count, of_parts;
  const launch l{shape.grid, shape.block, &values, sizeof values};
  compare(model, program, l, {{0, 0, 0}, l.grid}, is_exact, count);
  for (const subgrid& part : cut_evenly(l.grid, 3).parts)
    if (part.blocks() > 0) compare(model, program, l, part, is_exact && shape.parts_are_exact, of_parts);
  return count;
}

const std::string guard = "mov.u32 %i, %x;\nsetp.ge.s32 %c0, %x, %n;\n@%c0 bra END;\n";

TEST(CertainAccesses, OfAnElementForEachThread) {
  EXPECT_EQ(compare(guard + load_at_i + store_at_i, true).certain, 2U);
  EXPECT_EQ(compare(guard + load_at_i + store_at_i, true, {.n = 1000}).certain, 2U);
  EXPECT_EQ(compare(guard + load_at_i + store_at_i, true, {.n = 0}).certain, 0U);
}

TEST(CertainAccesses, OfTheInsideOfAField) {
  const std::string inside =
      "setp.lt.s32 %c0, %x, 1;\n@%c0 bra END;\nsetp.lt.s32 %c0, %y, 1;\n@%c0 bra END;\n"
      "add.s32 %i, %n, -1;\nsetp.ge.s32 %c0, %x, %i;\n@%c0 bra END;\n"
      "add.s32 %i, %m, -1;\nsetp.ge.s32 %c0, %y, %i;\n@%c0 bra END;\nmad.lo.s32 %i, %y, %n, %x;\n";
  EXPECT_EQ(compare(inside + load_at_i + store_at_i, true, {{4, 3, 1}, {8, 2, 1}, 29, 5}).certain, 2U);
}

TEST(CertainAccesses, OfALoopOverTheGrid) {
  const std::string loop =
      guard + "LOOP:\n" + store_at_i + "add.s32 %i, %i, %s;\nsetp.lt.s32 %c0, %i, %n;\n@%c0 bra LOOP;\n";
  for (const std::uint32_t n : {1U, 32U, 33U, 64U, 200U})
    EXPECT_EQ(compare(loop, true, {.n = n, .parts_are_exact = false}).certain, 1U) << n;
}

TEST(CertainAccesses, OfALoopOfEachThread) {
  const std::string begin = guard + "mul.lo.s32 %j, %x, %m;\nmov.u32 %k, 0;\nLOOP:\nadd.s32 %i, %j, %k;\n";
  for (const char* const again : {"setp.lt.s32 %c0, %k, %m;\n", "setp.ne.s32 %c0, %k, %m;\n"})
    EXPECT_EQ(compare(begin + store_at_i + "add.s32 %k, %k, 1;\n" + again + "@%c0 bra LOOP;\n", true).certain, 1U);
}

// Of every second element, each is a range of its own.
TEST(CertainAccesses, OfEverySecondElement) {
  EXPECT_EQ(compare(guard + "shl.b32 %i, %x, 1;\n" + store_at_i, true).certain, 1U);
  EXPECT_EQ(compare(guard + "neg.s32 %i, %x;\n" + store_at_i, true).certain, 1U);
}

TEST(CertainAccesses, NotIfAValueInMemoryDecides) {
  const std::string flag = guard + load_at_i + "setp.eq.s32 %c1, %v, 0;\n@%c1 bra END;\n" + store_at_i;
  EXPECT_EQ(compare(flag, false).certain, 1U);  // the load
  EXPECT_EQ(compare(guard + load_at_i + "mov.u32 %i, %v;\n" + store_at_i, false).certain, 1U);
}

TEST(CertainAccesses, NotIfABlockCanEndBefore) {
  const std::string data = guard + load_at_i + "setp.ne.s32 %c1, %v, 7;\n";
  EXPECT_EQ(compare(data + "@%c1 exit;\n" + store_at_i, false).certain, 1U);
  EXPECT_EQ(compare(data + "@%c1 bra END;\n" + store_at_i, false).certain, 1U);
  EXPECT_EQ(compare(data + "@%c1 " + store_at_i, false).certain, 1U);  // skips the product only
}

// `if (a || b)`: of the two ways to the access, one counts.
TEST(CertainAccesses, OfOneOfTwoWays) {
  const std::string either =
      "mov.u32 %i, %x;\nsetp.lt.s32 %c0, %x, %m;\n@%c0 bra DO;\nsetp.lt.s32 %c1, %x, %n;\n@%c1 bra DO;\nbra "
      "END;\nDO:\n";
  EXPECT_EQ(compare(either + store_at_i, true).certain, 1U);
}

}  // namespace
}  // namespace hpe::spread::test
