// Runs random programs in native code and in the interpreter, which must leave the same bits. The programs have two
// blocks and contain divergent branches, loops of different lengths, barriers, shuffles and votes in which only some
// lanes of a warp take part, atomics, shared and local memory, and calls. The seeds are printed; HPE_TEST_SEED repeats
// one of them.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/ptx/conformance/conformance_cases.h"
#include "tests/ptx/kernel_runner.h"

namespace hpe::ptx::test {
namespace {

constexpr unsigned registers = 8, threads = 64, blocks = 2;

class generator {
 public:
  explicit generator(unsigned seed) : random_(seed), cases_(conformance_cases()) {}

  std::string text() {
    std::string body;
    for (unsigned n = 0; n < 12; ++n) body += block(2);
    std::string text =
        ".version 8.6\n.target sm_90\n.address_size 64\n"
        ".func (.param .b32 result) mix(.param .b32 first, .param .b64 second) {\n.reg .b32 %a<3>;\n.reg .b64 %b;\n"
        "ld.param.u32 %a0, [first];\nld.param.u64 %b, [second];\ncvt.u32.u64 %a1, %b;\nmad.lo.u32 %a2, %a0, 77, "
        "%a1;\nst.param.b32 [result], %a2;\nret;\n}\n"
        // recursive; the argument is the depth
        ".func (.param .b32 result) deep(.param .b32 levels) {\n.reg .b32 %a<3>;\n.reg .pred %p;\nld.param.u32 %a0, "
        "[levels];\nand.b32 %a1, %a0, 7;\nsetp.eq.u32 %p, %a1, 0;\n@%p bra END;\nsub.u32 %a0, %a0, 1;\n{\n.param "
        ".b32 a;\n.param .b32 r;\nst.param.b32 [a], %a0;\ncall (r), deep, (a);\nld.param.b32 %a1, "
        "[r];\n}\nmad.lo.u32 %a0, %a1, 3, %a0;\nEND:\nst.param.b32 [result], %a0;\nret;\n}\n"
        // threads meet in this function, so it is inlined
        ".func (.param .b32 result) gather(.param .b32 value) {\n.reg .b32 %a<3>;\nld.param.u32 %a0, "
        "[value];\nredux.sync.xor.b32 %a1, %a0, -1;\nbar.sync 0;\nst.param.b32 [result], %a1;\nret;\n}\n"
        ".visible .entry program(.param .u64 data, .param .u64 sums) {\n.shared .align 8 .b8 box[512];\n.shared .align "
        "8 "
        ".b8 tally[64];\n.local .align 8 .b8 own[64];\n";
    text += fmt::format(
        ".reg .pred %p<{0}>;\n.reg .b16 %h<{0}>;\n.reg .b32 %u<{0}>;\n.reg .b64 %v<{0}>;\n.reg .b64 %data, "
        "%mine, %sums, %own;\n.reg .b32 %t, %place, %n, %s, %m;\n.reg .pred %q;\n",
        registers);
    for (unsigned n = 0; n < loops_; ++n) text += fmt::format(".reg .b32 %c{};\n", n);
    text +=
        "ld.param.u64 %data, [data];\nld.param.u64 %sums, [sums];\nmov.u32 %t, %tid.y;\nmov.u32 %n, "
        "%ntid.x;\nmul.lo.u32 %t, %t, %n;\nmov.u32 %n, %tid.x;\nadd.u32 %t, %t, %n;\nmov.u32 %n, "
        "%ctaid.x;\nmad.lo.u32 "
        "%n, %n, 64, %t;\nmad.wide.u32 %mine, %n, 256, %data;\nmov.u32 %place, box;\nmad.lo.u32 %place, %t, 8, "
        "%place;\nsetp.lt.u32 %q, %t, 8;\nmov.u32 %s, tally;\nmad.lo.u32 %s, %t, 8, %s;\nmov.u32 %m, 0;\n@%q "
        "st.shared.v2.u32 [%s], {%m, %m};\nbar.sync 0;\n";
    for (unsigned n = 0; n < registers; ++n)
      text += fmt::format(
          "ld.global.u64 %v{0}, [%mine+{1}];\nld.global.u32 %u{0}, [%mine+{2}];\nld.global.u16 %h{0}, "
          "[%mine+{3}];\nsetp.gt.s32 %p{0}, %u{0}, 0;\n",
          n, 8 * n, 64 + 4 * n, 96 + 2 * n);
    text += body;
    for (unsigned n = 0; n < registers; ++n)
      text += fmt::format(
          "st.global.u64 [%mine+{1}], %v{0};\nst.global.u32 [%mine+{2}], %u{0};\nst.global.u16 [%mine+{3}], "
          "%h{0};\nselp.u32 %u{0}, 1, 0, %p{0};\nst.global.u32 [%mine+{4}], %u{0};\n",
          n, 8 * n, 64 + 4 * n, 96 + 2 * n, 128 + 4 * n);
    // Then stores the block's counts in `tally`.
    return text +
           "bar.sync 0;\nsetp.lt.u32 %q, %t, 8;\nmov.u32 %s, tally;\nmad.lo.u32 %s, %t, 4, %s;\n@%q ld.shared.u32 %m, "
           "[%s];\n@%q st.global.u32 [%mine+248], %m;\nret;\n}\n";
  }

 private:
  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::string reg(char letter) { return fmt::format("%{}{}", letter, below(registers)); }

  std::string pure() {
    for (;;) {
      const conformance_case& k = cases_[below(static_cast<unsigned>(cases_.size()))];
      std::string operands;
      for (const char letter : k.shape.substr(2)) operands += ", " + reg(letter);
      const std::string guard = below(6) == 0 ? fmt::format("@{}{} ", below(2) == 0 ? "" : "!", reg('p')) : "";
      return fmt::format("{}{} {}{}{};\n", guard, k.spelling, reg(k.shape[0]), operands, k.suffix);
    }
  }

  // Only at depth 2 do all threads of the block reach this code together.
  std::string block(unsigned depth) {
    std::string text;
    for (unsigned n = below(6) + 2; n > 0; --n) text += pure();
    const unsigned label = labels_++;
    switch (below(depth == 2 ? 13 : 6)) {
      case 0:
        return text + fmt::format("@{} bra L{};\n{}L{}:\n", reg('p'), label,
                                  depth > 0 ? block(depth - 1 == 1 ? 1 : 0) : pure(), label);
      case 1: {
        const unsigned counter = loops_++;
        return text + fmt::format(
                          "and.b32 %c{0}, {1}, 3;\nL{2}:\n{3}sub.s32 %c{0}, %c{0}, 1;\nsetp.ge.s32 %q, %c{0}, 0;\n@%q "
                          "bra L{2};\n",
                          counter, reg('u'), label, depth > 0 ? block(0) : pure());
      }
      case 2: {
        if (below(2) == 0)
          return text + fmt::format(
                            "{{\n.param .b32 a;\n.param .b32 r;\nst.param.b32 [a], {};\ncall (r), deep, "
                            "(a);\nld.param.b32 {}, [r];\n}}\n",
                            reg('u'), reg('u'));
        return text + fmt::format(
                          "{{\n.param .b32 a;\n.param .b64 b;\n.param .b32 r;\nst.param.b32 [a], {};\nst.param.b64 "
                          "[b], {};\ncall (r), mix, (a, b);\nld.param.b32 {}, [r];\n}}\n",
                          reg('u'), reg('v'), reg('u'));
      }
      // The order of the operations does not affect the result, so any lanes may execute them at any time.
      case 3: {
        static constexpr const char* sums[] = {"add.u32", "xor.b32", "max.u32", "min.s32", "or.b32"};
        const unsigned which = below(5);
        return text + fmt::format("red.shared.{} [tally+{}], {};\nred.global.{} [%sums+{}], {};\n", sums[which],
                                  4 * which, reg('u'), sums[which], 4 * which, reg('u'));
      }
      case 4: {  // on the thread's own memory, so the old value is known
        static constexpr const char* swaps[] = {"exch.b32", "inc.u32", "dec.u32", "and.b32", "max.s32"};
        return text + fmt::format("atom.global.{} {}, [%mine+{}], {};\natom.global.cas.b64 {}, [%mine+{}], {}, {};\n",
                                  swaps[below(5)], reg('u'), 160 + 4 * below(8), reg('u'), reg('v'), 192 + 8 * below(4),
                                  reg('v'), reg('v'));
      }
      case 5: {  // local memory, at an address that depends on the data
        return text + fmt::format(
                          "mov.u64 %own, own;\ncvta.local.u64 %own, %own;\nand.b32 %s, {}, 56;\ncvt.u64.u32 "
                          "{}, %s;\nst.local.u32 [own+8], {};\nst.local.v2.u32 [own], {{{}, {}}};\nld.local.u64 "
                          "{}, [own+{}];\n",
                          reg('u'), reg('v'), reg('u'), reg('u'), reg('u'), reg('v'), 0);
      }
      case 6:
        return text + fmt::format(
                          "st.shared.u64 [%place], {};\nbar.sync 0;\nxor.b32 %place, %place, {};\nld.shared.u64 {}, "
                          "[%place];\nbar.sync 0;\n",
                          reg('v'), 8 << below(6), reg('v'));
      case 7: {
        static constexpr const char* modes[] = {"up", "down", "bfly", "idx"};
        const unsigned mode = below(4);
        return text + fmt::format("shfl.sync.{}.b32 {}|{}, {}, {}, {}, -1;\n", modes[mode], reg('u'), reg('p'),
                                  reg('u'), below(32), mode == 0 ? 0 : 31);
      }
      case 8:
        return text + fmt::format("vote.sync.ballot.b32 {}, {}, -1;\nredux.sync.add.s32 {}, {}, -1;\n", reg('u'),
                                  reg('p'), reg('u'), reg('u'));
      case 9:
        return text + fmt::format("bar.red.popc.u32 {}, 0, {};\nmatch.any.sync.b32 {}, {}, -1;\n", reg('u'), reg('p'),
                                  reg('u'), reg('u'));
      case 10: {  // lanes diverge by a predicate, and the lanes of each side meet separately
        const std::string p = reg('p');
        return text + fmt::format(
                          "vote.sync.ballot.b32 %m, {0}, -1;\n@{0} bra L{1};\nnot.b32 %m, %m;\n{2}"
                          "shfl.sync.bfly.b32 {3}, {4}, 1, 31, %m;\nbra.uni M{1};\nL{1}:\n{5}vote.sync.any.pred "
                          "%q, {6}, %m;\nselp.u32 {7}, 1, 2, %q;\nmatch.all.sync.b32 {8}|{9}, {10}, %m;\nM{1}:\n"
                          "bar.warp.sync -1;\n",
                          p, label, pure_that_keeps(p), reg('u'), reg('u'), pure_that_keeps(p), reg('p'), reg('u'),
                          reg('u'), reg('p'), reg('u'));
      }
      case 11:
        return text + fmt::format(
                          "{{\n.param .b32 a;\n.param .b32 r;\nst.param.b32 [a], {};\ncall (r), gather, "
                          "(a);\nld.param.b32 {}, [r];\n}}\n",
                          reg('u'), reg('u'));
      default: {  // a loop around a barrier; all threads run the same number of iterations
        const unsigned counter = loops_++;
        return text + fmt::format(
                          "mov.u32 %c{0}, {1};\nL{2}:\n{3}st.shared.u64 [%place], {4};\nbarrier.sync 1;\nld.shared.u64 "
                          "{5}, [%place];\nbar.red.or.pred %q, 0, {6};\nselp.u32 {7}, 5, 6, %q;\nsub.s32 %c{0}, %c{0}, "
                          "1;\nsetp.ge.s32 %q, %c{0}, 0;\n@%q bra L{2};\n",
                          counter, below(4), label, pure(), reg('v'), reg('v'), reg('p'), reg('u'));
      }
    }
  }

  // Returns a pure instruction that does not write predicate p. The two sides of a diverged warp execute different
  // instructions.
  std::string pure_that_keeps(const std::string& p) {
    for (;;) {
      std::string text = pure();
      const std::size_t first = text[0] == '@' ? text.find(' ') + 1 : 0;
      const std::size_t result = text.find('%', first);
      if (text.compare(result, p.size(), p) != 0) return text;
    }
  }

  std::mt19937 random_;
  std::vector<conformance_case> cases_;
  unsigned labels_ = 0, loops_ = 0;
};

TEST(RandomPrograms, NativeCodeIsTheInterpreterBitForBit) {
  if (!has_compiler) GTEST_SKIP() << "built without LLVM: there is no native code";
  const char* const given = std::getenv("HPE_TEST_SEED");
  const unsigned first =
      given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  const unsigned programs = given != nullptr ? 1 : 50;
  fmt::print("seeds {} to {}\n", first, first + (programs - 1));
  const auto operands = conformance_operands();
  for (unsigned seed = first; seed != first + programs; ++seed) {
    const std::string text = generator(seed).text();
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> data(std::size_t{threads} * blocks * 32);
    for (std::uint64_t& d : data) d = operands[random() % operands.size()][random() % 4];
    // Three block shapes: one runs in 16 lanes (8 if the processor lacks AVX-512), one in 8 lanes, and one thread by
    // thread.
    constexpr dimensions shapes[] = {{threads}, {8, threads / 8}, {4, threads / 4}};
    std::vector<std::uint64_t> results[2];
    for (const engine_kind kind : {engine_kind::interpreter, engine_kind::compiler}) {
      kernel_runner runner({text}, kind);
      ASSERT_EQ(runner.is_compiled("program"), kind == engine_kind::compiler) << "seed " << seed << "\n" << text;
      auto* const memory = runner.upload(data);
      auto* const sums = runner.upload(std::vector<std::uint32_t>(8, 12345));
      const auto stopped = runner.launch("program", {{blocks}, shapes[seed % std::size(shapes)]}, memory, sums);
      ASSERT_FALSE(stopped.has_value()) << "seed " << seed << ": " << stopped->message() << "\n" << text;
      results[static_cast<int>(kind)].assign(memory, memory + data.size());
      results[static_cast<int>(kind)].insert(results[static_cast<int>(kind)].end(), sums, sums + 8);
    }
    for (std::size_t n = 0; n < results[0].size(); ++n)
      ASSERT_EQ(results[0][n], results[1][n]) << "seed " << seed << ", thread " << n / 32 << ", word " << n % 32 << "\n"
                                              << text;
  }
}

}  // namespace
}  // namespace hpe::ptx::test
