// Random programs of one block with branches, loops, barriers, shuffles, shared memory and calls: native code and
// interpreter leave the same bits. The seed is printed on failure.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/ptx/conformance_cases.h"
#include "tests/ptx/kernel_runner.h"

namespace hpe::ptx::test {
namespace {

constexpr unsigned registers = 8, threads = 64;

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
        ".visible .entry program(.param .u64 data) {\n.shared .align 8 .b8 box[512];\n";
    text += fmt::format(
        ".reg .pred %p<{0}>;\n.reg .b16 %h<{0}>;\n.reg .b32 %u<{0}>;\n.reg .b64 %v<{0}>;\n.reg .b64 %data, "
        "%mine;\n.reg .b32 %t, %place;\n.reg .pred %q;\n",
        registers);
    for (unsigned n = 0; n < loops_; ++n) text += fmt::format(".reg .b32 %c{};\n", n);
    text +=
        "ld.param.u64 %data, [data];\nmov.u32 %t, %tid.x;\nmad.wide.u32 %mine, %t, 256, %data;\nmov.u32 %place, "
        "box;\nmad.lo.u32 %place, %t, 8, %place;\n";
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
    return text + "ret;\n}\n";
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

  // All threads of the block come here together only at depth 2.
  std::string block(unsigned depth) {
    std::string text;
    for (unsigned n = below(6) + 2; n > 0; --n) text += pure();
    const unsigned label = labels_++;
    switch (below(depth == 2 ? 7 : 3)) {
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
      case 2:
        return text + fmt::format(
                          "{{\n.param .b32 a;\n.param .b64 b;\n.param .b32 r;\nst.param.b32 [a], {};\nst.param.b64 "
                          "[b], {};\ncall (r), mix, (a, b);\nld.param.b32 {}, [r];\n}}\n",
                          reg('u'), reg('v'), reg('u'));
      case 3:
        return text + fmt::format(
                          "st.shared.u64 [%place], {};\nbar.sync 0;\nxor.b32 %place, %place, {};\nld.shared.u64 {}, "
                          "[%place];\nbar.sync 0;\n",
                          reg('v'), 8 << below(6), reg('v'));
      case 4: {
        static constexpr const char* modes[] = {"up", "down", "bfly", "idx"};
        const unsigned mode = below(4);
        return text + fmt::format("shfl.sync.{}.b32 {}|{}, {}, {}, {}, -1;\n", modes[mode], reg('u'), reg('p'),
                                  reg('u'), below(32), mode == 0 ? 0 : 31);
      }
      case 5:
        return text + fmt::format("vote.sync.ballot.b32 {}, {}, -1;\nredux.sync.add.s32 {}, {}, -1;\n", reg('u'),
                                  reg('p'), reg('u'), reg('u'));
      default:
        return text + fmt::format("bar.red.popc.u32 {}, 0, {};\nmatch.any.sync.b32 {}, {}, -1;\n", reg('u'), reg('p'),
                                  reg('u'), reg('u'));
    }
  }

  std::mt19937 random_;
  std::vector<conformance_case> cases_;
  unsigned labels_ = 0, loops_ = 0;
};

TEST(RandomPrograms, NativeCodeIsTheInterpreterBitForBit) {
  const unsigned first = std::random_device{}();
  const auto operands = conformance_operands();
  for (unsigned seed = first; seed != first + 60; ++seed) {
    const std::string text = generator(seed).text();
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> data(threads * 32);
    for (std::uint64_t& d : data) d = operands[random() % operands.size()][random() % 4];
    std::vector<std::uint64_t> results[2];
    for (const engine_kind kind : {engine_kind::interpreter, engine_kind::compiler}) {
      kernel_runner runner({text}, kind);
      auto* const memory = runner.upload(data);
      const auto stopped = runner.launch("program", {{1}, {threads}}, memory);
      ASSERT_FALSE(stopped.has_value()) << "seed " << seed << ": " << stopped->message();
      results[static_cast<int>(kind)].assign(memory, memory + data.size());
    }
    for (std::size_t n = 0; n < data.size(); ++n)
      ASSERT_EQ(results[0][n], results[1][n]) << "seed " << seed << ", thread " << n / 32 << ", word " << n % 32 << "\n"
                                              << text;
  }
}

}  // namespace
}  // namespace hpe::ptx::test
