#pragma once

/// Random kernels whose addresses are sums, products, shifts, divisions and choices of block index, thread index, loop
/// counters and parameters, in nested loops and branches.

#include <fmt/core.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace hpe::ptx::test {

/// The parameters of a random kernel.
struct generated_parameters {
  std::uint64_t array0, array1, table;
  std::uint32_t n, stride;
  float never;
};

/// Every access has a guard that is never true, so addresses may have any value. record_check examines the addresses
/// nevertheless.
class kernel_generator {
 public:
  explicit kernel_generator(unsigned seed) : random_(seed) {}

  std::string text() { return make_text(false); }

  /// Returns a kernel in which each thread stores a number made of all values that are known at its end. The index in
  /// array0 is the thread's number in the grid.
  std::string text_with_results() { return make_text(true); }

 private:
  std::string make_text(bool with_results) {
    for (const char axis : {'x', 'y', 'z'}) {
      if (axis != 'x' && below(3) == 0) continue;
      std::vector<std::string> names;
      for (const char* const name : {"%tid", "%ctaid", "%ntid", "%nctaid"}) {
        names.push_back(make());
        body_ += fmt::format("mov.u32 {}, {}.{};\n", names.back(), name, axis);
      }
      if (below(3) > 0) body_ += fmt::format("mad.lo.s32 {}, {}, {}, {};\n", make(), names[1], names[2], names[0]);
      if (below(3) == 0) body_ += fmt::format("mul.lo.s32 {}, {}, {};\n", make(), names[2], names[3]);
    }
    body_ += fmt::format("ld.param.u32 {}, [n];\nld.param.u32 {}, [stride];\n", make(), make());
    for (unsigned p = 0; p < 2; ++p)
      body_ += fmt::format("ld.param.u64 %raw{0}, [array{0}];\ncvta.to.global.u64 %base{0}, %raw{0};\n", p);
    body_ +=
        "ld.param.u64 %table, [table];\ncvta.to.global.u64 %table, %table;\nld.param.f32 %f, [never];\n"
        "setp.gt.f32 %never, %f, 0f00000000;\n";
    statements(3, 8);
    if (with_results) results();
    std::string text =
        ".version 8.0\n.target sm_80\n.address_size 64\n.global .align 8 .b8 box[64];\n.visible .entry k(.param .u64 "
        "array0, "
        ".param .u64 array1, .param .u64 table, .param .u32 n, .param .u32 stride, .param .f32 never) {\n.reg .f32 "
        "%f;\n"
        ".reg .pred %never, %q;\n.reg .b64 %raw<2>, %base<2>, %table, %w, %v;\n.reg .b32 %unused;\n";
    text += fmt::format(".reg .b32 %i<{}>;\n.reg .b64 %a<{}>;\n.reg .pred %p<{}>;\n", indices_ + 1, addresses_ + 1,
                        predicates_ + 1);
    return text + body_ + "ret;\n}\n";
  }

  void results() {
    body_ += "mov.u32 %unused, 0;\n";
    for (const std::string& value : known_) body_ += fmt::format("mad.lo.u32 %unused, %unused, 31, {};\n", value);
    const std::string number = make(), part = make();
    body_ += fmt::format("mov.u32 {}, 0;\n", number);
    for (const char* const of : {"ctaid", "tid"})
      for (const char axis : {'z', 'y', 'x'})
        body_ += fmt::format(
            "mov.u32 {1}, %n{2}.{3};\nmul.lo.u32 {0}, {0}, {1};\nmov.u32 {1}, %{2}.{3};\nadd.u32 {0}, {0}, {1};\n",
            number, part, of, axis);
    body_ += fmt::format("mul.wide.u32 %w, {}, 4;\nadd.s64 %w, %base0, %w;\nst.global.u32 [%w], %unused;\n", number);
  }

  unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::string make() {
    known_.push_back(fmt::format("%i{}", indices_));
    return fmt::format("%i{}", indices_++);
  }
  std::string any() { return known_[below(static_cast<unsigned>(known_.size()))]; }
  /// Returns a known value, most often a recent one, so that values are computed from computed values.
  std::string recent() {
    const auto size = static_cast<unsigned>(known_.size());
    return below(3) == 0 ? any() : known_[size - 1 - below(std::min(size, 5U))];
  }

  std::string compare() {
    static constexpr const char* kinds[] = {"lt.s32", "ge.s32", "lt.u32", "eq.s32", "gt.s32", "le.u32"};
    const std::string p = fmt::format("%p{}", predicates_++);
    body_ += fmt::format("setp.{} {}, {}, {};\n", kinds[below(6)], p, recent(),
                         below(2) == 0 ? any() : fmt::format("{}", below(40)));
    if (below(4) == 0) {
      const std::string both = fmt::format("%p{}", predicates_++);
      body_ += fmt::format("setp.lt.s32 %q, {}, {};\n{}.pred {}, {}, %q;\n", any(), any(), below(2) == 0 ? "or" : "and",
                           both, p);
      return both;
    }
    return p;
  }

  void index() {
    const std::string a = recent(), b = any();
    std::string line;
    switch (below(25)) {
      case 0:
      case 1:
      case 2: line = fmt::format("add.s32 {{}}, {}, {};\n", a, b); break;
      case 3: line = fmt::format("add.s32 {{}}, {}, {};\n", a, static_cast<int>(below(17)) - 8); break;
      case 4: line = fmt::format("sub.s32 {{}}, {}, {};\n", a, b); break;
      case 5:
      case 6:
      case 7: line = fmt::format("mad.lo.s32 {{}}, {}, {}, {};\n", a, any(), b); break;
      case 8:
        line = fmt::format("mul.lo.s32 {{}}, {}, {};\n", a, below(2) == 0 ? b : fmt::format("{}", below(9)));
        break;
      case 9: line = fmt::format("shl.b32 {{}}, {}, {};\n", a, below(6)); break;
      case 10: line = fmt::format("shr.{} {{}}, {}, {};\n", below(2) == 0 ? "u32" : "s32", a, below(6)); break;
      case 11: line = fmt::format("and.b32 {{}}, {}, {};\n", a, (1U << below(8)) - 1); break;
      case 12: line = fmt::format("div.{} {{}}, {}, {};\n", below(2) == 0 ? "u32" : "s32", a, 1 + below(9)); break;
      case 13: line = fmt::format("rem.{} {{}}, {}, {};\n", below(2) == 0 ? "u32" : "s32", a, 1 + below(9)); break;
      case 14: line = fmt::format("{} {{}}, {}, {};\n", below(2) == 0 ? "max.s32" : "min.s32", a, b); break;
      case 15: {
        const std::string p = compare();
        line = fmt::format("selp.b32 {{}}, {}, {}, {};\n", a, b, p);
        break;
      }
      case 16: {
        const unsigned bits = 1 + below(4);
        body_ += fmt::format("shl.b32 {}, {}, {};\n", make(), a, bits);
        line = fmt::format("or.b32 {{}}, {}, {};\n", known_.back(), below(1U << bits));
        break;
      }
      case 20: {  // the bits of two numbers; some may be set in both
        const std::string low = make(), high = make();
        body_ +=
            fmt::format("and.b32 {}, {}, {};\nshl.b32 {}, {}, {};\n", low, b, (1U << below(6)) - 1, high, a, below(6));
        line = fmt::format("{} {{}}, {}, {};\n", below(2) == 0 ? "or.b32" : "xor.b32", high, low);
        break;
      }
      case 21: line = fmt::format("and.b32 {{}}, {}, {};\n", a, -static_cast<int>(1U << below(8))); break;
      case 22: {  // b in threads whose a is negative
        const std::string sign = make();
        body_ += fmt::format("shr.s32 {}, {}, 31;\n", sign, a);
        line = fmt::format("and.b32 {{}}, {}, {};\n", sign, b);
        break;
      }
      case 23: line = fmt::format("bfi.b32 {{}}, {}, {}, {}, {};\n", a, b, below(8), 1 + below(31)); break;
      case 17: line = fmt::format("neg.s32 {{}}, {};\n", a); break;
      case 18:
        line = fmt::format("cvt.u64.u32 %w, {};\nshl.b64 %w, %w, 2;\nadd.s64 %w, %w, {};\ncvt.u32.u64 {{}}, %w;\n", a,
                           below(9));
        break;
      default:
        line = fmt::format(
            "and.b32 %unused, {}, 15;\nmul.wide.u32 %w, %unused, 4;\nadd.s64 %w, %table, %w;\nld.global.u32 {{}}, "
            "[%w];\n",
            a);
    }
    const std::string result = make();
    known_.pop_back();
    body_ += fmt::format(fmt::runtime(line), result);
    known_.push_back(result);
  }

  void access() {
    const std::string address = fmt::format("%a{}", addresses_++);
    const unsigned base = below(2);
    const std::string i = recent();
    switch (below(4)) {
      case 0: body_ += fmt::format("mul.wide.s32 %w, {}, 4;\nadd.s64 {}, %base{}, %w;\n", i, address, base); break;
      case 1: body_ += fmt::format("mul.wide.u32 %w, {}, 8;\nadd.s64 {}, %base{}, %w;\n", i, address, base); break;
      case 2:
        body_ += fmt::format(
            "cvt.s64.s32 %w, {};\ncvt.s64.s32 %v, {};\nmad.lo.s64 %w, %w, 12, %v;\nadd.s64 {}, %base{}, %w;\n", i,
            any(), address, base);
        break;
      default:
        body_ += fmt::format(
            "mul.wide.u32 %w, {}, 1;\nshl.b64 %w, %w, 3;\nand.b64 %w, %w, 34359738360;\nadd.s64 {}, %w, %base{};\n", i,
            address, base);
    }
    const int offset = 4 * (static_cast<int>(below(9)) - 4);
    switch (below(5)) {
      case 0: body_ += fmt::format("@%never st.global.u32 [{}+{}], %i0;\n", address, offset); break;
      case 1: body_ += fmt::format("@%never red.global.add.u32 [{}+{}], %i0;\n", address, offset); break;
      case 2: body_ += "@%never st.global.u32 [box+8], %i0;\n"; break;
      default: body_ += fmt::format("@%never ld.global.u32 %unused, [{}+{}];\n", address, offset);
    }
  }

  // After a branch or a loop, values that were computed inside the branch or loop are not known, except merged or
  // carried values.
  void statements(unsigned depth, unsigned count) {
    for (unsigned n = 0; n < count; ++n) {
      const unsigned which = below(depth > 0 ? 16 : 12);
      if (which < 8) {
        index();
      } else if (which < 12) {
        access();
      } else if (which < 14) {
        branch(depth - 1);
      } else {
        loop(depth - 1);
      }
    }
  }

  void branch(unsigned depth) {
    const unsigned label = labels_++;
    const std::string p = compare();
    const std::string merged = make();
    body_ += fmt::format("@{} bra ELSE{};\n", p, label);
    const std::vector<std::string> before = known_;
    known_.pop_back();
    statements(depth, 2 + below(3));
    body_ += fmt::format("mov.u32 {}, {};\nbra END{};\nELSE{}:\n", merged, recent(), label, label);
    known_ = before;
    known_.pop_back();
    if (below(2) == 0) statements(depth, 1 + below(3));
    body_ += fmt::format("mov.u32 {}, {};\nEND{}:\n", merged, recent(), label);
    known_ = before;
    if (below(3) == 0) body_ += fmt::format("@{} mov.u32 {}, {};\n", compare(), merged, any());
  }

  void loop(unsigned depth) {
    const unsigned label = labels_++;
    const std::vector<std::string> before = known_;
    std::vector<std::string> carried;
    std::vector<std::string> steps;
    for (unsigned n = 1 + below(3); n > 0; --n) {
      const std::string start = below(2) == 0 ? recent() : fmt::format("{}", below(5));
      carried.push_back(make());
      steps.push_back(below(3) == 0 ? fmt::format("{}", below(7))
                                    : before[below(static_cast<unsigned>(before.size()))]);
      body_ += fmt::format("mov.u32 {}, {};\n", carried.back(), start);
    }
    const std::string count = make();
    const std::vector<std::string> inside = known_;
    body_ += fmt::format("mov.u32 {}, 0;\nLOOP{}:\n", count, label);
    const bool tests_first = below(2) == 0;
    const std::string limit = below(2) == 0 ? fmt::format("{}", 1 + below(4)) : fmt::format("%limit{}", label);
    if (limit[0] == '%') {
      body_.insert(0, fmt::format(".reg .b32 {};\n", limit));
      const std::string of = before[below(static_cast<unsigned>(before.size()))];
      // The limit is computed before the loop.
      const std::string head = fmt::format("mov.u32 {}, 0;\nLOOP{}:\n", count, label);
      body_.insert(body_.rfind(head), fmt::format("and.b32 {}, {}, 3;\n", limit, of));
    }
    if (tests_first) body_ += fmt::format("setp.ge.s32 %q, {}, {};\n@%q bra DONE{};\n", count, limit, label);
    statements(depth, 2 + below(4));
    if (below(4) == 0) {  // an exit that some threads do not reach
      const std::string skips = compare(), leaves = compare();
      body_ += fmt::format("@{0} bra STAY{2};\n@{1} bra DONE{2};\nSTAY{2}:\n", skips, leaves, label);
    }
    if (tests_first && below(4) == 0)  // another jump back, which skips the steps
      body_ += fmt::format("@!{0} bra GO{2};\nadd.s32 {1}, {1}, 1;\nbra LOOP{2};\nGO{2}:\n", compare(), count, label);
    for (std::size_t n = 0; n < carried.size(); ++n) {
      switch (below(5)) {
        case 0: body_ += fmt::format("shr.s32 {0}, {0}, 1;\n", carried[n]); break;
        case 1: body_ += fmt::format("mov.u32 {}, {};\n", carried[n], recent()); break;
        default: body_ += fmt::format("add.s32 {0}, {0}, {1};\n", carried[n], steps[n]);
      }
    }
    body_ += fmt::format("add.s32 {0}, {0}, 1;\n", count);
    if (tests_first) {
      body_ += fmt::format("bra LOOP{0};\nDONE{0}:\n", label);
    } else {
      body_ += fmt::format("setp.lt.s32 %q, {0}, {1};\n@%q bra LOOP{2};\nDONE{2}:\n", count, limit, label);
    }
    known_ = inside;
  }

  std::mt19937 random_;
  std::string body_;
  std::vector<std::string> known_;
  unsigned indices_ = 0, addresses_ = 0, predicates_ = 0, labels_ = 0;
};

}  // namespace hpe::ptx::test
