// mma.sync, ldmatrix, stmatrix and movmatrix. The fragments are laid out by the formulas of the PTX ISA (9.7.14), one
// for each shape. Products are of small integers, which are exact in all types.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "runtime/base/error.h"
#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

using MatrixPrograms = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

struct place {
  int row, column;
};

struct product {
  const char* shape;
  const char* types;  // types of D, A, B and C
  int m, k;           // n is 8
  int a, b;           // number of elements that a thread has of A and of B
  // row and column of element i of lane 4 g + t
  place (*in_a)(int g, int t, int i);
  place (*in_b)(int g, int t, int i);
};

place b_of_halves(int g, int t, int i) { return {t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g}; }
place b_of_words(int g, int t, int i) { return {t + 4 * i, g}; }
place b_of_bytes(int g, int t, int i) { return {t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g}; }
place a_of_halves8(int g, int t, int i) { return {i < 2 ? g : g + 8, t * 2 + (i & 1)}; }
place a_of_halves16(int g, int t, int i) {
  return {i < 2 || (i >= 4 && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
place a_of_words4(int g, int t, int i) { return {i == 0 ? g : g + 8, t}; }
place a_of_words8(int g, int t, int i) { return {i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4}; }
place a_of_doubles16(int g, int t, int i) { return {i % 2 == 0 ? g : g + 8, i / 2 * 4 + t}; }
place a_of_bytes8(int g, int t, int i) { return {g, t * 4 + i}; }
place a_of_bytes16(int g, int t, int i) { return {i < 4 ? g : g + 8, t * 4 + (i & 3)}; }
place a_of_bytes32(int g, int t, int i) {
  return {i < 4 || (i >= 8 && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
}
place a_of_doubles4(int g, int t, int) { return {g, t}; }

const product products[] = {
    {"m16n8k8", "f32.f16.f16.f32", 16, 8, 4, 2, a_of_halves8, b_of_halves},
    {"m16n8k8", "f16.f16.f16.f16", 16, 8, 4, 2, a_of_halves8, b_of_halves},
    {"m16n8k16", "f32.f16.f16.f32", 16, 16, 8, 4, a_of_halves16, b_of_halves},
    {"m16n8k16", "f16.f16.f16.f16", 16, 16, 8, 4, a_of_halves16, b_of_halves},
    {"m16n8k8", "f32.bf16.bf16.f32", 16, 8, 4, 2, a_of_halves8, b_of_halves},
    {"m16n8k16", "f32.bf16.bf16.f32", 16, 16, 8, 4, a_of_halves16, b_of_halves},
    {"m16n8k4", "f32.tf32.tf32.f32", 16, 4, 2, 1, a_of_words4, b_of_words},
    {"m16n8k8", "f32.tf32.tf32.f32", 16, 8, 4, 2, a_of_words8, b_of_words},
    {"m8n8k4", "f64.f64.f64.f64", 8, 4, 1, 1, a_of_doubles4, b_of_words},
    {"m16n8k4", "f64.f64.f64.f64", 16, 4, 2, 1, a_of_words4, b_of_words},
    {"m16n8k8", "f64.f64.f64.f64", 16, 8, 4, 2, a_of_words8, b_of_words},
    {"m16n8k16", "f64.f64.f64.f64", 16, 16, 8, 4, a_of_doubles16, b_of_words},
    {"m8n8k16", "s32.s8.s8.s32", 8, 16, 4, 4, a_of_bytes8, b_of_bytes},
    {"m16n8k16", "s32.u8.s8.s32", 16, 16, 8, 4, a_of_bytes16, b_of_bytes},
    {"m16n8k32", "s32.s8.u8.s32", 16, 32, 16, 8, a_of_bytes32, b_of_bytes},
    {"m16n8k32", "s32.u8.u8.s32", 16, 32, 16, 8, a_of_bytes32, b_of_bytes},
};

std::uint64_t coded(int value, const std::string& t) {
  if (t == "f64") return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  if (t == "f32" || t == "tf32") return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (t == "bf16") return std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16;
  if (t == "f16") {  // 0, and integers up to 2048
    const int size = std::abs(value), exponent = 31 - std::countl_zero(static_cast<unsigned>(size | 1));
    const int bits = size == 0 ? 0 : (exponent + 15) << 10 | ((size << (10 - std::min(exponent, 10))) & 0x3ff);
    return static_cast<std::uint64_t>(bits | (value < 0 ? 0x8000 : 0));
  }
  return static_cast<std::uint64_t>(value) & (t == "s32" ? 0xffffffffU : 0xffU);
}

unsigned bits_of_type(const std::string& t) {
  if (t == "f64") return 64;
  return t == "f16" || t == "bf16" ? 16 : t == "s8" || t == "u8" ? 8 : 32;
}

// Registers of 64 bits for f64, else of 32.
struct fragment {
  fragment(const std::string& t, int elements) : type(t), count(elements), words(32 * registers()) {}
  [[nodiscard]] unsigned per() const { return std::max(1U, 32 / bits_of_type(type)); }
  [[nodiscard]] unsigned registers() const { return static_cast<unsigned>(count) / per(); }
  void put(int lane, int element, int value) {
    const auto e = static_cast<unsigned>(element);
    words[static_cast<unsigned>(lane) * registers() + e / per()] |= coded(value, type)
                                                                    << (bits_of_type(type) * (e % per()));
  }
  std::string type;
  int count;
  std::vector<std::uint64_t> words;
};

std::string part(const fragment& f, char letter) {
  std::string text = "{";
  for (unsigned r = 0; r < f.registers(); ++r) text += fmt::format("{}%{}{}", r == 0 ? "" : ", ", letter, r);
  return text + "}";
}

TEST_P(MatrixPrograms, ProductsOfAllShapes) {
  for (const product& p : products) {
    std::vector<std::string> types;
    for (std::string rest = p.types; !rest.empty();) {
      types.push_back(rest.substr(0, rest.find('.')));
      rest = rest.size() == types.back().size() ? "" : rest.substr(types.back().size() + 1);
    }
    fragment a(types[1], p.a), b(types[2], p.b), c(types[3], p.m / 4), d(types[0], p.m / 4);
    const auto value = [&](const std::string& t) {
      const int v = static_cast<int>(random_() % 13) - 6;
      return t[0] == 'u' ? v + 200 : v;
    };
    int in_a[16][32] = {}, in_b[32][8] = {}, in_c[16][8] = {};
    for (auto& row : in_a)
      for (int& v : row) v = value(a.type);
    for (auto& row : in_b)
      for (int& v : row) v = value(b.type);
    for (auto& row : in_c)
      for (int& v : row) v = value(c.type);
    const auto place_of_c = [](int g, int t, int e) { return place{e < 2 ? g : g + 8, t * 2 + (e & 1)}; };
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane >> 2, t = lane % 4;
      for (int i = 0; i < a.count; ++i) a.put(lane, i, in_a[p.in_a(g, t, i).row][p.in_a(g, t, i).column]);
      for (int i = 0; i < b.count; ++i) b.put(lane, i, in_b[p.in_b(g, t, i).row][p.in_b(g, t, i).column]);
      for (int i = 0; i < c.count; ++i) {
        const auto [row, column] = place_of_c(g, t, i);
        int sum = in_c[row][column];
        for (int k = 0; k < p.k; ++k) sum += in_a[row][k] * in_b[k][column];
        c.put(lane, i, in_c[row][column]);
        d.put(lane, i, sum);
      }
    }
    const bool wide = a.type == "f64";
    std::string text = fmt::format(
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry product(.param .u64 a, .param .u64 b, .param "
        ".u64 c, .param .u64 d) {{\n.reg .b{} %a<9>, %b<9>, %c<9>, %d<9>;\n.reg .b64 %p<5>;\n.reg .b32 %t;\nmov.u32 "
        "%t, %tid.x;\n",
        wide ? 64 : 32);
    const fragment* const parts[] = {&a, &b, &c, &d};
    for (unsigned n = 0; n < 4; ++n)
      text += fmt::format("ld.param.u64 %p{0}, [{1}];\nmad.wide.u32 %p{0}, %t, {2}, %p{0};\n", n, "abcd"[n],
                          8 * parts[n] -> registers());
    for (unsigned n = 0; n < 3; ++n)
      for (unsigned r = 0; r < parts[n]->registers(); ++r)
        text += fmt::format("ld.global.b{} %{}{}, [%p{}+{}];\n", wide ? 64 : 32, "abcd"[n], r, n, 8 * r);
    text += fmt::format("mma.sync.aligned.{}.row.col.{} {}, {}, {}, {};\n", p.shape, p.types, part(d, 'd'),
                        part(a, 'a'), part(b, 'b'), part(c, 'c'));
    for (unsigned r = 0; r < d.registers(); ++r)
      text += fmt::format("st.global.b{} [%p3+{}], %d{};\n", wide ? 64 : 32, 8 * r, r);
    kernel_runner runner({text + "ret;\n}\n"}, GetParam());
    EXPECT_EQ(runner.is_compiled("product"), GetParam() == engine_kind::compiler);
    auto* const out = runner.upload(std::vector<std::uint64_t>(d.words.size(), 0));
    EXPECT_RUNS(runner.launch("product", {{1}, {32}}, runner.upload(a.words), runner.upload(b.words),
                              runner.upload(c.words), out));
    EXPECT_EQ(std::vector<std::uint64_t>(out, out + d.words.size()), d.words) << p.shape << "." << p.types;
  }
}

TEST_P(MatrixPrograms, SumsThatLeaveTheRangeOfIntegers) {
  for (const bool saturates : {false, true}) {
    kernel_runner runner(
        {fmt::format(".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 "
                     "out) {{\n.reg .b32 %r<9>;\n.reg .b64 %p;\nld.param.u64 %p, [out];\nmov.b32 %r0, "
                     "0x7f7f7f7f;\nmov.b32 %r1, 0x7ffffff0;\n"
                     "mma.sync.aligned.m8n8k16.row.col{}.s32.s8.s8.s32 {{%r2, %r3}}, {{%r0}}, {{%r0}}, "
                     "{{%r1, %r1}};\nst.global.u32 [%p], %r2;\nret;\n}}\n",
                     saturates ? ".satfinite" : "")},
        GetParam());
    auto* const out = runner.upload(std::vector<unsigned>(1));
    EXPECT_RUNS(runner.launch("k", {{1}, {32}}, out));
    EXPECT_EQ(*out, saturates ? 0x7fffffffU : 0x7ffffff0U + 16 * 127 * 127);
  }
}

// Each matrix has eight rows of eight halves, in shared memory with gaps between the rows. Half h of lane l is at
// row l / 4 and column (l mod 4) * 2 + h.
TEST_P(MatrixPrograms, MovesOfMatrices) {
  for (const int count : {1, 2, 4}) {
    for (const bool transposed : {false, true}) {
      const std::string registers = count == 1 ? "{%r2}" : count == 2 ? "{%r2, %r3}" : "{%r2, %r3, %r4, %r5}";
      const std::string how = fmt::format("sync.aligned.m8n8.x{}{}.shared.b16", count, transposed ? ".trans" : "");
      std::string text = fmt::format(
          ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data, .param .u64 seen) "
          "{{\n.shared .align 16 .b8 box[2048];\n.reg .b32 %r<9>;\n.reg .b64 %d<9>;\nld.param.u64 %d0, "
          "[data];\nld.param.u64 %d1, [seen];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %d2, %r0, 16;\nadd.u64 %d2, %d2, "
          "%d0;\nmov.u32 %r1, box;\nmad.lo.u32 %r1, %r0, 48, %r1;\nld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, "
          "[%d2];\nst.shared.v4.u32 [%r1], {{%r2, %r3, %r4, %r5}};\nbar.sync 0;\nldmatrix.{0} {1}, [%r1];\n",
          how, registers);
      text += "mul.wide.u32 %d3, %r0, 16;\nadd.u64 %d3, %d3, %d1;\n";
      for (int m = 0; m < count; ++m) text += fmt::format("st.global.u32 [%d3+{}], %r{};\n", 4 * m, 2 + m);
      for (int m = 0; m < count; ++m) text += fmt::format("xor.b32 %r{0}, %r{0}, 0x00ff00ff;\n", 2 + m);
      text += fmt::format(
          "bar.sync 0;\nstmatrix.{} [%r1], {};\nbar.sync 0;\nld.shared.v4.u32 {{%r2, %r3, %r4, %r5}}, "
          "[%r1];\nst.global.v4.u32 [%d2], {{%r2, %r3, %r4, %r5}};\nret;\n}}\n",
          how, registers);
      kernel_runner runner({text}, GetParam());
      std::vector<std::uint16_t> data(256);
      for (std::uint16_t& v : data) v = static_cast<std::uint16_t>(random_());
      auto* const memory = runner.upload(data);
      auto* const seen = runner.upload(std::vector<std::uint16_t>(256, 0xabab));
      EXPECT_RUNS(runner.launch("k", {{1}, {32}}, memory, seen));
      for (int lane = 0; lane < 32; ++lane)
        for (int m = 0; m < 4; ++m)
          for (int h = 0; h < 2; ++h) {
            const int row = lane / 4, column = lane % 4 * 2 + h;
            const std::uint16_t expected = m >= count   ? 0xabab
                                           : transposed ? data[(8 * m + column) * 8 + row]
                                                        : data[(8 * m + row) * 8 + column];
            ASSERT_EQ(seen[lane * 8 + m * 2 + h], expected) << how << " lane " << lane << " matrix " << m;
          }
      for (int n = 0; n < 256; ++n)
        ASSERT_EQ(memory[n], n < 64 * count ? data[n] ^ 0xff : data[n]) << how << " half " << n;
    }
  }
  kernel_runner runner(
      {".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data) {\n.reg .b32 "
       "%r<9>;\n.reg .b64 %d<9>;\nld.param.u64 %d0, [data];\nmov.u32 %r0, %tid.x;\nmul.wide.u32 %d2, "
       "%r0, 4;\nadd.u64 %d2, %d2, %d0;\nld.global.u32 %r1, [%d2];\nmovmatrix.sync.aligned.m8n8.trans.b16 "
       "%r2, %r1;\nst.global.u32 [%d2], %r2;\nret;\n}\n"},
      GetParam());
  std::vector<std::uint16_t> matrix(64);
  for (std::uint16_t& v : matrix) v = static_cast<std::uint16_t>(random_());
  auto* const memory = runner.upload(matrix);
  EXPECT_RUNS(runner.launch("k", {{1}, {32}}, memory));
  for (int n = 0; n < 64; ++n) ASSERT_EQ(memory[n], matrix[n % 8 * 8 + n / 8]) << n;
}

TEST_P(MatrixPrograms, ARowOutsideOfSharedMemoryStopsTheKernel) {
  kernel_runner runner({".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data) {\n.shared "
                        ".align 16 .b8 box[64];\n.reg .b32 %r<9>;\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, box;\nmad.lo.u32 "
                        "%r1, %r0, 16, %r1;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];\nret;\n}\n"},
                       GetParam());
  const auto stopped = runner.launch("k", {{1}, {32}}, runner.allocate(16));
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->why, trap::reason::address);
  EXPECT_EQ(stopped->thread.x, 4U);
  EXPECT_NE(stopped->message().find("ldmatrix"), std::string::npos);
}

TEST(Matrices, UnsupportedShapesAreRefusedAtLoading) {
  for (const char* const statement :
       {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0}, {%r0, %r0}, {%r0, "
        "%r0}, {%r0, %r0, %r0, %r0, %r0, %r0, %r0, %r0};",
        "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r0}, {%r0}, {%r0}, {%r0};", "wgmma.fence.sync.aligned;"}) {
    try {
      static_cast<void>(parse({fmt::format(
          ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n.reg .b32 %r<9>;\n{}\nret;\n}}\n",
          statement)}));
      ADD_FAILURE() << statement;
    } catch (const error& e) {
      EXPECT_EQ(e.status(), HPE_ERROR_NOT_SUPPORTED) << e.what();
      EXPECT_NE(std::string(e.what()).find("PTX line 6"), std::string::npos) << e.what();
    }
  }
}

// wmma shapes that exist for a single type. A, B and C are loaded, and D is stored, by rows or by columns.
struct wide_product {
  const char *shape, *operand, *sum, *rounding;
  int m, n, k;
  int a, b, c;  // number of registers of a thread
};

constexpr wide_product wide_products[] = {{"m16n16k8", "tf32", "f32", "", 16, 16, 8, 4, 4, 8},
                                          {"m8n8k4", "f64", "f64", ".rn", 8, 8, 4, 1, 1, 2}};

std::string registers_of(const std::string& name, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}{}", i == 0 ? "" : ", ", name, i);
  return text + "}";
}

std::string text_of(const wide_product& p, const char* a_by, const char* b_by, const char* d_by) {
  const bool doubles = std::string(p.operand) == "f64";
  const std::string c = registers_of("%c", p.c), a = registers_of("%a", p.a), b = registers_of("%b", p.b);
  const std::string of_operands = doubles ? "f64" : "b32", of_sums = doubles ? "f64" : "f32";
  return fmt::format(R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{
  .reg .b64 %rd<5>;
  .reg .{8} %a<4>, %b<4>;
  .reg .{9} %c<8>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u64 %rd4, [d];
  wmma.load.a.sync.aligned.{0}.{3}.global.{4} {10}, [%rd1], {13};
  wmma.load.b.sync.aligned.{1}.{3}.global.{4} {11}, [%rd2], {14};
  wmma.load.c.sync.aligned.row.{3}.global.{5} {12}, [%rd3], {15};
  wmma.mma.sync.aligned.{0}.{1}.{3}.{5}.{4}.{4}.{5}{6} {12}, {10}, {11}, {12};
  wmma.store.d.sync.aligned.{2}.{3}.global.{5} [%rd4], {12}, {15};
  ret;
}}
)",
                     a_by, b_by, d_by, p.shape, p.operand, p.sum, p.rounding, "", of_operands, of_sums, a, b, c,
                     std::string(a_by) == "row" ? p.k : p.m, std::string(b_by) == "row" ? p.n : p.k, p.n);
}

template <class T>
void expect_product(const wide_product& p, engine_kind engine, std::mt19937& random) {
  for (const char* const a_by : {"row", "col"})
    for (const char* const b_by : {"row", "col"})
      for (const char* const d_by : {"row", "col"}) {
        kernel_runner runner({text_of(p, a_by, b_by, d_by)}, engine);
        const auto numbers = [&](int count) {
          std::vector<T> made(static_cast<std::size_t>(count));
          for (T& each : made) each = static_cast<T>(static_cast<int>(random() % 41) - 20);
          return made;
        };
        const std::vector<T> a = numbers(p.m * p.k), b = numbers(p.k * p.n), c = numbers(p.m * p.n);
        auto* const d = static_cast<T*>(runner.allocate(c.size() * sizeof(T)));
        EXPECT_RUNS(runner.launch("k", {{1}, {32}}, runner.upload(a), runner.upload(b), runner.upload(c), d));
        const bool a_rows = *a_by == 'r', b_rows = *b_by == 'r', d_rows = *d_by == 'r';
        for (int row = 0; row < p.m; ++row)
          for (int column = 0; column < p.n; ++column) {
            T sum = c[row * p.n + column];
            for (int k = 0; k < p.k; ++k)
              sum += a[a_rows ? row * p.k + k : k * p.m + row] * b[b_rows ? k * p.n + column : column * p.k + k];
            // The stride of D is that of C, and both shapes have as many rows as columns.
            ASSERT_EQ(d[d_rows ? row * p.n + column : column * p.n + row], sum)
                << p.shape << ' ' << a_by << ' ' << b_by << ' ' << d_by << ' ' << row << ' ' << column;
          }
      }
}

TEST_P(MatrixPrograms, WmmaOfTf32AndOfDoubles) {
  expect_product<float>(wide_products[0], GetParam(), random_);
  expect_product<double>(wide_products[1], GetParam(), random_);
}

TEST_P(MatrixPrograms, WmmaOfTf32IgnoresTheLowBits) {
  kernel_runner runner({text_of(wide_products[0], "row", "col", "row")}, GetParam());
  const std::vector<float> a(16 * 8, std::bit_cast<float>(0x3f801fffU)), b(8 * 16, 1), c(16 * 16, 0);
  auto* const d = static_cast<float*>(runner.allocate(c.size() * sizeof(float)));
  EXPECT_RUNS(runner.launch("k", {{1}, {32}}, runner.upload(a), runner.upload(b), runner.upload(c), d));
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(d[i], 8) << i;
}

INSTANTIATE_FOR_ENGINES(MatrixPrograms);

}  // namespace
}  // namespace hpe::ptx::test
