// Loading: messages for text that is not PTX, or that hpe does not support.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "hpe/error.hpp"
#include "runtime/ptx/text/lexer.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::ptx {
namespace {

std::string text_with(const std::string& body) {
  return ".version 8.6\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .b32 %r<4>;\n.reg "
         ".b64 %rd<4>;\n.reg .pred %p<3>;\n" +
         body + "\nret;\n}\n";
}

// Returns the status and the message of the error that parsing throws.
std::pair<hpeStatus, std::string> refusal(const std::string& text) {
  try {
    static_cast<void>(parse({text}));
  } catch (const error& e) {
    return {e.status(), e.what()};
  }
  return {HPE_SUCCESS, ""};
}

void expect_refusal(const std::string& body, hpeStatus status, const std::vector<std::string>& words) {
  const auto [got, sentence] = refusal(text_with(body));
  EXPECT_EQ(got, status) << body << ": " << sentence;
  for (const std::string& word : words)
    EXPECT_NE(sentence.find(word), std::string::npos) << sentence << " lacks " << word;
}

TEST(Parsing, NamesTheInstructionAndItsLine) {
  EXPECT_EQ(refusal(text_with("add.s32 %r1, %r2, %r3;")).first, HPE_SUCCESS);
  expect_refusal("tcgen05.alloc.cta %r1;", HPE_ERROR_NOT_SUPPORTED,
                 {"line 8", "'tcgen05.alloc.cta %r1;'", "in k", "tcgen05"});
  expect_refusal("add.rn.s17 %r1, %r2, %r3;", HPE_ERROR_NOT_SUPPORTED, {"line 8", ".s17"});
  expect_refusal("\nfma.f32 %r1, %r2, %r3, %r1;", HPE_ERROR_NOT_SUPPORTED, {"line 9", "'fma.f32 %r1, %r2, %r3, %r1;'"});
  expect_refusal("add.s64 %rd1, %r2, %rd3;", HPE_ERROR_INVALID_ARGUMENT,
                 {"line 8", "the operand %r2 is declared .b32", ".s64"});
  expect_refusal("add.s32 %r1, %r2;", HPE_ERROR_INVALID_ARGUMENT, {"2 operands, expected 3"});
  expect_refusal("add.s32 %r1, %r9, 1;", HPE_ERROR_INVALID_ARGUMENT, {"'%r9' is not declared"});
  expect_refusal("bra nowhere;", HPE_ERROR_INVALID_ARGUMENT, {"nowhere"});
  expect_refusal("@%r1 bra x; x:", HPE_ERROR_INVALID_ARGUMENT, {"not a predicate"});
  expect_refusal("ld.global.v4.u32 {%r1, %r2}, [%rd1];", HPE_ERROR_INVALID_ARGUMENT, {"2 registers for a vector of 4"});
  expect_refusal("call missing;", HPE_ERROR_INVALID_ARGUMENT, {"missing"});
  const auto [status, sentence] = refusal(
      ".version 8.6\n.target sm_75\n.address_size 64\n.extern .func "
      "__cudaCDP2DeviceSynchronize();\n.visible .entry k() { call "
      "__cudaCDP2DeviceSynchronize; ret; }\n");
  EXPECT_EQ(status, HPE_ERROR_NOT_SUPPORTED);
  EXPECT_NE(sentence.find("dynamic parallelism"), std::string::npos) << sentence;
}

// The types of a register that ptxas of CUDA 13 accepts at the position of @; it refuses all others.
struct accepted {
  const char* instruction;
  const char* types;
};
constexpr accepted as_ptxas[] = {
    {"add.s32 @,%rs1,%rs2;", "b32 u32 s32"},
    {"add.s32 %rs1,@,%rs2;", "b32 u32 s32"},
    {"add.f32 @,%rf1,%rf2;", "b32 f32"},
    {"add.f32 %rf1,@,%rf2;", "b32 f32"},
    {"and.b32 @,%rb1,%rb2;", "b32 u32 s32 f32"},
    {"and.b32 %rb1,@,%rb2;", "b32 u32 s32 f32"},
    {"add.f16 @,%hb1,%hb2;", "b16 f16"},
    {"add.f16 %hb1,@,%hb1;", "b16 f16"},
    {"add.f16x2 @,%rb1,%rb1;", "b32"},
    {"add.f16x2 %rb1,@,%rb1;", "b32"},
    {"add.bf16 @,%hb1,%hb2;", "b16"},
    {"add.bf16 %hb1,@,%hb1;", "b16"},
    {"add.u16 @,%hb1,%hb2;", "b16 u16 s16"},
    {"add.u16 %hb1,@,%hb1;", "b16 u16 s16"},
    {"mov.b32 @,%rb1;", "b32 u32 s32 f32"},
    {"mov.b32 %rb1,@;", "b32 u32 s32 f32"},
    {"mov.u32 @,%rb1;", "b32 u32 s32"},
    {"mov.u32 %rb1,@;", "b32 u32 s32"},
    {"mov.f32 @,%rf1;", "b32 f32"},
    {"mov.f32 %rf1,@;", "b32 f32"},
    {"selp.f32 @,%rf1,%rf1,%p1;", "b32 f32"},
    {"selp.f32 %rf1,@,%rf1,%p1;", "b32 f32"},
    {"selp.b32 @,%rb1,%rb1,%p1;", "b32 u32 s32 f32"},
    {"selp.b32 %rb1,@,%rb1,%p1;", "b32 u32 s32 f32"},
    {"ld.global.f32 @,[g];", "b32 f32 b64"},
    {"st.global.f32 [g],@;", "b32 f32 b64"},
    {"ld.global.b32 @,[g];", "b32 u32 s32 f32 b64 u64 s64 f64"},
    {"st.global.b32 [g],@;", "b32 u32 s32 f32 b64 u64 s64 f64"},
    {"ld.global.u32 @,[g];", "b32 u32 s32 b64 u64 s64"},
    {"st.global.u32 [g],@;", "b32 u32 s32 b64 u64 s64"},
    {"ld.global.u8 @,[g];", "b16 u16 s16 b32 u32 s32 b64 u64 s64 b8 u8 s8"},
    {"st.global.u8 [g],@;", "b16 u16 s16 b32 u32 s32 b64 u64 s64 b8 u8 s8"},
    {"ld.global.b8 @,[g];", "b16 u16 s16 f16 b32 u32 s32 f32 b64 u64 s64 f64 b8 u8 s8"},
    {"st.global.b8 [g],@;", "b16 u16 s16 f16 b32 u32 s32 f32 b64 u64 s64 f64 b8 u8 s8"},
    {"ld.global.b16 @,[g];", "b16 u16 s16 f16 b32 u32 s32 f32 b64 u64 s64 f64"},
    {"st.global.b16 [g],@;", "b16 u16 s16 f16 b32 u32 s32 f32 b64 u64 s64 f64"},
    {"ld.global.s16 @,[g];", "b16 u16 s16 b32 u32 s32 b64 u64 s64"},
    {"st.global.s16 [g],@;", "b16 u16 s16 b32 u32 s32 b64 u64 s64"},
    {"ld.global.f64 @,[g];", "b64 f64"},
    {"st.global.f64 [g],@;", "b64 f64"},
    {"ld.global.f16 @,[g];", ""},
    {"st.global.f16 [g],@;", ""},
    {"ld.global.f16x2 @,[g];", ""},
    {"st.global.f16x2 [g],@;", ""},
    {"ld.global.bf16 @,[g];", ""},
    {"cvt.rzi.s32.f32 @,%rf1;", "b32 u32 s32 b64 u64 s64"},
    {"cvt.rn.f32.s32 %rf1,@;", "b32 u32 s32 b64 u64 s64"},
    {"cvt.rn.f32.s32 @,%rs1;", "b32 f32 b64"},
    {"cvt.rzi.s32.f32 %rs1,@;", "b32 f32 b64"},
    {"cvt.u8.u32 @,%ru1;", "b16 u16 s16 b32 u32 s32 b64 u64 s64 b8 u8 s8"},
    {"cvt.u32.u8 %ru1,@;", "b16 u16 s16 b32 u32 s32 b64 u64 s64 b8 u8 s8"},
    {"cvt.u64.u32 @,%ru1;", "b64 u64 s64"},
    {"cvt.u64.u32 %du1,@;", "b32 u32 s32 b64 u64 s64"},
    {"cvt.rn.f16.f32 @,%rf1;", "b16 f16 b32 b64"},
    {"cvt.f32.f16 %rf1,@;", "b16 f16 b32 b64"},
    {"atom.global.add.u32 @,[g],%ru1;", "b32 u32 s32"},
    {"atom.global.add.u32 %ru1,[g],@;", "b32 u32 s32"},
    {"atom.global.add.f32 @,[g],%rf1;", "b32 f32"},
    {"atom.global.add.f32 %rf1,[g],@;", "b32 f32"},
    {"atom.global.exch.b32 @,[g],%rb1;", "b32 u32 s32 f32"},
    {"atom.global.exch.b32 %rb1,[g],@;", "b32 u32 s32 f32"},
    {"shl.b32 @,%rb1,%ru1;", "b32 u32 s32 f32"},
    {"shl.b32 %rb1,%rb1,@;", "b32 u32 s32"},
    {"setp.eq.s32 @,%rs1,%rs2;", "pred"},
    {"setp.eq.s32 %p1,@,%rs1;", "b32 u32 s32"},
    {"setp.eq.f32 @,%rf1,%rf2;", "pred"},
    {"setp.eq.f32 %p1,@,%rf1;", "b32 f32"},
    {"mul.wide.s32 @,%rs1,%rs1;", "b64 u64 s64"},
    {"mul.wide.s32 %ds1,@,%rs1;", "b32 u32 s32"},
    {"popc.b64 @,%db1;", "b32 u32 s32"},
    {"popc.b64 %rb1,@;", "b64 u64 s64 f64"},
    {"shfl.sync.idx.b32 @,%rb1,0,31,-1;", "b32 u32 s32 f32"},
    {"shfl.sync.idx.b32 %rb1,@,0,31,-1;", "b32 u32 s32 f32"},
    {"cvta.global.u64 @,%du1;", "b64 u64 s64"},
    {"cvta.global.u64 %du1,@;", "b64 u64 s64"},
    {"bfe.u32 @,%ru1,%ru1,%ru1;", "b32 u32 s32"},
    {"bfe.u32 %ru1,%ru1,@,%ru1;", "b32 u32 s32"},
    {"vote.sync.ballot.b32 @,%p1,-1;", "b32 u32 s32 f32"},
    {"vote.sync.ballot.b32 %rb1,@,-1;", "pred"},
    {"slct.f32.s32 @,%rf1,%rf1,%rs1;", "b32 f32"},
    {"slct.f32.s32 %rf1,%rf1,%rf1,@;", "b32 u32 s32"},
    {"set.eq.f32.s32 @,%rs1,%rs1;", "b32 f32"},
    {"set.eq.f32.s32 %rf1,@,%rs1;", "b32 u32 s32"},
    {"set.eq.u32.f32 @,%rf1,%rf1;", "b32 u32 s32"},
    {"set.eq.u32.f32 %ru1,@,%rf1;", "b32 f32"},
};

TEST(Parsing, AcceptsTheTypesThatPtxasAccepts) {
  const std::vector<std::pair<std::string, std::string>> registers{
      {"pred", "p"}, {"b8", "cb"},  {"u8", "cu"},  {"s8", "cs"},  {"b16", "hb"}, {"u16", "hu"},
      {"s16", "hs"}, {"f16", "hf"}, {"b32", "rb"}, {"u32", "ru"}, {"s32", "rs"}, {"f32", "rf"},
      {"b64", "db"}, {"u64", "du"}, {"s64", "ds"}, {"f64", "df"}};
  std::string head =
      ".version 8.6\n.target sm_90\n.address_size 64\n.global .align 16 .b8 g[64];\n.visible .entry k() {\n";
  for (const auto& [type, name] : registers)
    head.append(".reg .").append(type).append(" %").append(name).append("<4>;\n");
  for (const auto& [instruction, types] : as_ptxas) {
    std::string found;
    for (const auto& [type, name] : registers) {
      std::string text = instruction;
      text.replace(text.find('@'), 1, "%" + name + "3");
      const auto [status, sentence] = refusal(head + text + "\nret;\n}\n");
      if (status == HPE_SUCCESS) {
        found += (found.empty() ? "" : " ") + type;
      } else if (*types != '\0') {
        EXPECT_NE(sentence.find("%" + name + "3 is declared ." + type), std::string::npos) << sentence;
      }
    }
    std::vector<std::string> expected, got;
    std::istringstream wanted(types), seen(found);
    for (std::string t; wanted >> t;) expected.push_back(t);
    for (std::string t; seen >> t;) got.push_back(t);
    std::sort(expected.begin(), expected.end());
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, expected) << instruction;
  }
  expect_refusal("mul.wide.f32 %rd1, %r1, %r2;", HPE_ERROR_INVALID_ARGUMENT, {"line 8", "are for integers"});
  expect_refusal("mul.wide.s64 %rd1, %rd1, %rd2;", HPE_ERROR_NOT_SUPPORTED, {"line 8", "combination of types"});
  expect_refusal("ld.shared.f16x2 %r1, [%r2];", HPE_ERROR_NOT_SUPPORTED, {"line 8", ".f16x2 of ld"});
}

TEST(Parsing, ReadsTheClusterDirectivesOfAKernel) {
  const auto kernel = [](const std::string& directives) {
    return ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k()\n" + directives + "\n{ ret; }\n";
  };
  const auto parsed = [&](const std::string& directives) { return parse({kernel(directives)}); };
  const auto plain = parsed(".maxntid 32, 1, 1");
  EXPECT_EQ(plain->find_kernel("k")->cluster[0], 0U);
  EXPECT_EQ(plain->find_kernel("k")->max_cluster, 0U);
  EXPECT_FALSE(plain->find_kernel("k")->needs_cluster);
  const auto declared = parsed(".explicitcluster\n.reqnctapercluster 4, 2");
  EXPECT_EQ(declared->find_kernel("k")->cluster, (std::array<std::uint32_t, 3>{4, 2, 1}));
  EXPECT_TRUE(declared->find_kernel("k")->needs_cluster);
  EXPECT_EQ(parsed(".maxntid 64, 1, 1\n.minnctapersm 1\n.maxclusterrank 4")->find_kernel("k")->max_cluster, 4U);
  const auto [status, sentence] = refusal(kernel(".reqntid 32\n.reqnctapercluster 2\n.blocksareclusters"));
  EXPECT_EQ(status, HPE_ERROR_NOT_SUPPORTED);
  EXPECT_NE(sentence.find(".blocksareclusters"), std::string::npos) << sentence;
}

TEST(Parsing, RefusesTextOtherThanPtx) {
  EXPECT_EQ(refusal("int main() {}").first, HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(refusal("").first, HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(refusal(".version 8.0\n.target sm_75\n.address_size 32\n").first, HPE_ERROR_NOT_SUPPORTED);
  const std::string whole = text_with("add.s32 %r1, %r2, %r3;");
  // If the text ends inside of a word, the rest may name an instruction or a directive that hpe does not know.
  for (std::size_t n = whole.find(".visible") + 1; n + 3 < whole.size(); ++n) {
    const auto [status, sentence] = refusal(whole.substr(0, n));
    EXPECT_TRUE(status == HPE_ERROR_INVALID_ARGUMENT || status == HPE_ERROR_NOT_SUPPORTED) << whole.substr(0, n);
    EXPECT_NE(sentence.find("line "), std::string::npos) << sentence;
  }
}

// If the parser used recursion, each of these texts would need more stack than the thread has.
TEST(Parsing, RefusesDeepNesting) {
  const std::string many(1 << 20, ' ');
  for (const char c : {'{', '!', '(', '['}) {
    std::string deep = many;
    std::fill(deep.begin(), deep.end(), c);
    expect_refusal((c == '{' ? "" : "add.s32 %r1, ") + deep, HPE_ERROR_INVALID_ARGUMENT, {"nested blocks or operands"});
  }
  std::string blocks = "add.s32 %r1, %r2, %r3;";
  for (int n = 0; n < 200; ++n) blocks = "{" + blocks + "}";
  EXPECT_EQ(refusal(text_with(blocks)).first, HPE_SUCCESS);
}

// These texts declare more registers than they use. hpe must create a register of a family only when an instruction
// names the register.
TEST(Parsing, TakesNoMemoryForDeclaredArraysWithoutValues) {
  std::string body;
  for (int n = 0; n < 200; ++n) body += fmt::format(".reg .b64 %a{}_<16000000>;\n", n);
  const auto program = parse({text_with(body + "add.s64 %a7_15999999, %a8_0, %a8_0;")});
  EXPECT_EQ(program->functions[0]->registers.size(), 2U);
  expect_refusal(body + "add.s64 %a7_16000000, %a8_0, %a8_0;", HPE_ERROR_INVALID_ARGUMENT, {"%a7_16000000"});
  expect_refusal(body + "add.s64 %a7_01, %a8_0, %a8_0;", HPE_ERROR_INVALID_ARGUMENT, {"%a7_01"});
  expect_refusal(".local .b8 a[4294967300];", HPE_ERROR_INVALID_ARGUMENT, {"line 8", "524288 bytes of local memory"});
  expect_refusal(".local .b8 a[400000];.local .b8 b[200000];", HPE_ERROR_INVALID_ARGUMENT,
                 {"524288 bytes of local memory"});
  expect_refusal("{.param .b8 a[4294967300];}", HPE_ERROR_INVALID_ARGUMENT, {"524288 bytes of local memory"});
  expect_refusal(".shared .b64 a[2305843009213693953];", HPE_ERROR_INVALID_ARGUMENT, {"too large"});
  expect_refusal(".shared .b8 a[1099511627776][1099511627776];", HPE_ERROR_INVALID_ARGUMENT, {"too large"});
  expect_refusal(".shared .align 3 .b8 a[4];", HPE_ERROR_INVALID_ARGUMENT, {"the alignment 3 is"});
  std::string table = "T: .branchtargets L";
  for (int n = 0; n < 2000; ++n) table += ", L";
  std::string uses;
  for (int n = 0; n < 2000; ++n) uses += "brx.idx %r1, T;\n";
  expect_refusal(table + ";\n" + uses + "L:", HPE_ERROR_INVALID_ARGUMENT, {"1048576 branch targets"});
}

// Each kernel may use each shared variable, because the addresses of the variables are initial values. The layout must
// not take minutes.
TEST(Parsing, LaysOutManySharedVariablesOfManyKernels) {
  constexpr unsigned most = 1500;
  std::string text = ".version 8.6\n.target sm_75\n.address_size 64\n";
  for (unsigned n = 0; n < most; ++n)
    text += fmt::format(".shared .u32 s{0};\n.global .u64 g{0} = s{0};\n.visible .entry k{0}() {{ ret; }}\n", n);
  const auto program = parse({text});
  EXPECT_EQ(program->find_kernel("k0")->shared_size, 4 * most);
  EXPECT_EQ(program->find_symbol(fmt::format("s{}", most - 1))->shared_offset, 4 * (most - 1));
}

TEST(Parsing, LinksTexts) {
  const std::string head = ".version 8.6\n.target sm_75\n.address_size 64\n";
  const std::string one = head +
                          ".extern .func (.param .b32 r) twice(.param .b32 a);\n.extern .global .align 4 .u32 "
                          "number;\n.visible .entry k() {\n.reg .b64 %rd1; mov.u64 %rd1, number;\nret; }\n";
  const std::string other =
      head +
      ".visible .global .align 4 .u32 number = 7;\n.visible .func (.param .b32 r) twice(.param .b32 a) { ret; }\n";
  const auto linked = parse({one, other});
  ASSERT_NE(linked->find_symbol("number"), nullptr);
  EXPECT_TRUE(linked->find_symbol("number")->is_defined);
  EXPECT_EQ(linked->symbols.size(), 1U);
  EXPECT_THROW(static_cast<void>(parse({one})), error);
  EXPECT_THROW(static_cast<void>(parse({other, other})), error);
}

// nvcc -rdc=true writes shared variables in this way: outside of the kernels.
TEST(Parsing, AKernelHasTheSharedVariablesThatItReaches) {
  const auto program = parse({R"(.version 8.6
.target sm_75
.address_size 64
.shared .align 4 .b8 of_one[40000];
.shared .align 4 .b8 of_two[40000];
.shared .align 8 .b8 of_callee[100];
.shared .align 4 .b8 of_pointed[200];
.shared .align 4 .b8 of_none[40000];
.func callee() { .reg .b32 %r1; ld.shared.u32 %r1, [of_callee]; ret; }
.func pointed() { .reg .b32 %r1; ld.shared.u32 %r1, [of_pointed+4]; ret; }
.visible .entry one() { .reg .b32 %r1; ld.shared.u32 %r1, [of_one]; call callee; ret; }
.visible .entry two() { .reg .b32 %r1; mov.u32 %r1, of_two; call callee; ret; }
.visible .entry takes_address() { .reg .b64 %rd1; mov.u64 %rd1, pointed; ret; }
.visible .entry calls_pointer() { .shared .align 16 .b8 own[20]; .reg .b64 %rd1;
prototype: .callprototype ()_ ();
call (), %rd1, (), prototype;
ret; }
)"});
  const auto bytes = [&](const char* kernel) { return program->find_kernel(kernel)->shared_size; };
  EXPECT_EQ(bytes("one"), 40100U);
  EXPECT_EQ(bytes("two"), 40100U);
  EXPECT_EQ(bytes("takes_address"), 0U);
  EXPECT_GE(bytes("calls_pointer"), 220U);
  EXPECT_LT(bytes("calls_pointer"), 240U);
  const auto offset = [&](const char* variable) { return program->find_symbol(variable)->shared_offset; };
  EXPECT_EQ(offset("of_callee"), 0U);
  EXPECT_EQ(offset("of_one"), 100U);
  EXPECT_EQ(offset("of_two"), 100U);

  const auto [status, sentence] = refusal(text_with(".shared .b8 huge[4294967300];"));
  EXPECT_EQ(status, HPE_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(sentence.find("huge needs 4294967300 bytes of shared memory"), std::string::npos) << sentence;
}

std::string why_not_read(const std::string& text) {
  try {
    for (lexer tokens(text); tokens.peek().what != token::kind::end;) tokens.take();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

TEST(Tokens, OfRandomTextsAreThoseThatWereWritten) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  using kind = token::kind;
  for (int round = 0; round < 300; ++round) {
    std::string text;
    std::vector<token> expected;
    std::uint32_t line = 1;
    for (int n = 0; n < 12; ++n) {
      const std::uint64_t number = random() >> random() % 64;
      std::string written;
      token t;
      t.value = number;
      switch (random() % 11) {
        case 0: written = fmt::format("{}", number), t.what = kind::integer; break;
        case 1:
          written = fmt::format("{}{:x}U", random() % 2 == 0 ? "0x" : "0X", number), t.what = kind::integer;
          break;
        case 2: written = fmt::format("{}{:b}", random() % 2 == 0 ? "0b" : "0B", number), t.what = kind::integer; break;
        case 3: written = fmt::format("0{:o}", number), t.what = kind::integer; break;
        case 4:
          written = fmt::format("{}{:08X}", random() % 2 == 0 ? "0f" : "0F", number & 0xffffffff),
          t.what = kind::float32, t.value &= 0xffffffff;
          break;
        case 5:
          written = fmt::format("{}{:016x}", random() % 2 == 0 ? "0d" : "0D", number), t.what = kind::float64;
          break;
        case 6: {
          const double value = static_cast<double>(number) / 1024;
          written = fmt::format("{:.17e}", value), t.what = kind::float64,
          t.value = std::bit_cast<std::uint64_t>(value);
          break;
        }
        case 7:
          written = fmt::format("{}{}$_{}", random() % 2 == 0 ? "%" : "", "aZ_$"[random() % 4], number),
          t.what = kind::word;
          break;
        case 8: written = fmt::format(".a{}::b", number), t.what = kind::dotted; break;
        case 9: written = fmt::format("\"a{}\"", number), t.what = kind::string; break;
        default: written = std::string(1, "{}[]()<>,;:+-!|@=*&~"[random() % 20]), t.what = kind::punctuation;
      }
      const bool has_value = t.what == kind::integer || t.what == kind::float32 || t.what == kind::float64;
      if (!has_value) t.value = 0;
      t.line = line;
      t.begin = static_cast<std::uint32_t>(text.size());
      text += written;
      t.end = static_cast<std::uint32_t>(text.size());
      expected.push_back(t);
      constexpr std::array blanks{" ", "\t\r", "\n", "\n\n", "// 1 */ x\n", "/* 2 \n * \n */", "/**/", "/*//*/"};
      const std::string between = blanks[random() % blanks.size()];
      line += static_cast<std::uint32_t>(std::count(between.begin(), between.end(), '\n'));
      text += between;
    }
    lexer tokens(text);
    for (const token& t : expected) {
      const token got = tokens.take();
      ASSERT_EQ(got.what, t.what) << text;
      ASSERT_EQ(got.value, t.value) << text;
      ASSERT_EQ(std::tuple(got.line, got.begin, got.end), std::tuple(t.line, t.begin, t.end)) << text;
      std::string_view written = std::string_view(text).substr(t.begin, t.end - t.begin);
      if (t.what == kind::dotted) written.remove_prefix(1);
      if (t.what == kind::string) written = written.substr(1, written.size() - 2);
      ASSERT_EQ(got.text, written) << text;
    }
    EXPECT_EQ(tokens.peek().what, kind::end);
    EXPECT_EQ(tokens.take().what, kind::end);
    EXPECT_EQ(tokens.take().what, kind::end);
  }
}

TEST(Tokens, EndAtTheirBordersAndAtZero) {
  EXPECT_EQ(lexer("").peek().what, token::kind::end);
  EXPECT_EQ(lexer(std::string_view("\0add", 4)).peek().what, token::kind::end);
  lexer last("a\n// to the end");
  last.take();
  EXPECT_EQ(last.peek().what, token::kind::end);
  EXPECT_EQ(last.peek().line, 2U);
  EXPECT_EQ(lexer("18446744073709551615").peek().value, ~std::uint64_t{0});
  EXPECT_EQ(why_not_read("\n\na 18446744073709551616"), "PTX line 3: '18446744073709551616' is not a number");
  EXPECT_EQ(why_not_read("0xg"), "PTX line 1: '0xg' is not a number");
  EXPECT_EQ(why_not_read("0x"), "PTX line 1: '0x' is not a number");
  EXPECT_EQ(why_not_read("0b2"), "PTX line 1: '0b2' is not a number");
  EXPECT_EQ(why_not_read("09"), "PTX line 1: '09' is not a number");
  EXPECT_EQ(why_not_read("0fx, and a long text behind it"), "PTX line 1: '0fx, and a long text' is not a number");
  EXPECT_EQ(why_not_read("a\n/* b\n * "), "PTX line 2: a comment does not end");
  EXPECT_EQ(why_not_read("/*/"), "PTX line 1: a comment does not end");
  EXPECT_EQ(why_not_read("\n\"b"), "PTX line 2: a string does not end");
  EXPECT_EQ(why_not_read("a #"), "PTX line 1: unexpected character '#'");
  EXPECT_EQ(why_not_read("a % b"), "PTX line 1: unexpected character '%'");
  EXPECT_EQ(why_not_read("a . b"), "PTX line 1: unexpected character '.'");
  EXPECT_EQ(why_not_read("/"), "PTX line 1: unexpected character '/'");
  lexer dotted(".a::b .c:d");
  EXPECT_EQ(dotted.take().text, "a::b");
  EXPECT_EQ(dotted.take().text, "c");
  EXPECT_TRUE(dotted.take().is(':'));
  lexer numbers("1.x 2e3 1.5 7U");
  EXPECT_EQ(numbers.peek().value, 1U);
}

const symbol& symbol_of(const program& p, const std::string& name) {
  const symbol* const found = p.find_symbol(name);
  EXPECT_NE(found, nullptr) << name;
  return *found;
}

TEST(Variables, HaveTheSizesAndValuesThatTheirDeclarationsSay) {
  const std::string head = ".version 8.6\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";
  const auto program = parse({head + R"(
.visible .global .u8 plain;
.visible .global .align 16 .u16 aligned[3][5];
.visible .global .v2 .f32 pair;
.visible .global .v4 .u32 four[2];
.visible .const .s32 numbers[4] = {1, -2, 0x10};
.visible .global .b16 open[] = {5, 6, 7};
.visible .global .u64 place = aligned;
.visible .global .u64 inside[2] = {0, generic(aligned)+6};
.visible .global .u8 bytes[2] = {0xFF(aligned), 0xFF00(aligned)};
.visible .global .f32 single = 0f3F800000;
.visible .global .f32 negative = -0f3F800000;
.visible .global .f64 wide = -0d3FF0000000000000;
.visible .global .attribute(.managed) .u32 managed = 3;
.visible .global .u64 function = k;
)"});
  const auto expect = [&](const char* name, std::size_t size, unsigned alignment,
                          const std::vector<std::uint8_t>& initial) {
    const symbol& s = symbol_of(*program, name);
    EXPECT_EQ(s.size, size) << name;
    EXPECT_EQ(s.alignment, alignment) << name;
    EXPECT_EQ(std::vector<std::uint8_t>(s.initial.begin(), s.initial.end()), initial) << name;
    EXPECT_EQ(s.is_managed, std::string(name) == "managed") << name;
    EXPECT_EQ(s.where, std::string(name) == "numbers" ? symbol::space::constant : symbol::space::global) << name;
    EXPECT_TRUE(s.is_defined);
  };
  expect("plain", 1, 1, {});
  expect("aligned", 30, 16, {});
  expect("pair", 8, 8, {});
  expect("four", 32, 16, {});
  expect("numbers", 16, 4, {1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 16, 0, 0, 0});
  expect("open", 6, 2, {5, 0, 6, 0, 7, 0});
  expect("place", 8, 8, std::vector<std::uint8_t>(8));
  expect("inside", 16, 8, std::vector<std::uint8_t>(16));
  expect("bytes", 2, 1, {0, 0});
  expect("single", 4, 4, {0, 0, 0x80, 0x3f});
  expect("negative", 4, 4, {0, 0, 0x80, 0xbf});
  expect("wide", 8, 8, {0, 0, 0, 0, 0, 0, 0xf0, 0xbf});
  expect("managed", 4, 4, {3, 0, 0, 0});
  const auto relocated = [&](const char* name, std::size_t n) { return symbol_of(*program, name).relocations.at(n); };
  EXPECT_EQ(relocated("place", 0).size, 8U);
  EXPECT_EQ(program->symbols[relocated("place", 0).target].name, "aligned");
  EXPECT_EQ(relocated("inside", 0).offset, 8U);
  EXPECT_EQ(relocated("inside", 0).addend, 6U);
  EXPECT_EQ(relocated("bytes", 0).mask, 0xffU);
  EXPECT_EQ(relocated("bytes", 0).offset, 0U);
  EXPECT_EQ(relocated("bytes", 1).mask, 0xff00U);
  EXPECT_EQ(relocated("bytes", 1).offset, 1U);
  EXPECT_EQ(relocated("bytes", 1).size, 1U);
  EXPECT_TRUE(relocated("function", 0).is_function);
  EXPECT_FALSE(relocated("place", 0).is_function);

  const auto refused = [&](const std::string& declaration, const char* words) {
    const auto [status, sentence] = refusal(head + declaration);
    EXPECT_NE(status, HPE_SUCCESS) << declaration;
    EXPECT_NE(sentence.find(words), std::string::npos) << declaration << ": " << sentence;
    EXPECT_NE(sentence.find("line 5"), std::string::npos) << sentence;
  };
  refused(".global .u8 a[2] = {1, 2, 3};", "a has more initial values than elements");
  refused(".global .f32 a = 1.5;", "a double for a float");
  refused(".global .u64 a = b;", "'b' is not declared");
  refused(".global a;", "a type expected");
  refused(".global .u99 a;", "a type expected");
  refused(".global .align 0 .u8 a;", "the alignment 0 is");
  refused(".global .align 131072 .u8 a;", "the alignment 131072 is");
  refused(".global .texref a;", "a variable of type .texref");
  refused(".global .u32 a<4>;", "a family of variables");
  refused(".global .attribute(.unified) .u32 a;", "this attribute");
  refused(".visible .global .u32 a; .visible .global .u32 a;", "the variable a is defined twice");
  refused(".visible .func f() { ret; } .visible .func f() { ret; }", "the function f is defined twice");
  refused(".global .b64 a[35184372088833];", "a variable is too large");
  EXPECT_EQ(refusal(head + ".global .align 65536 .u8 a; .weak .global .u32 b; .weak .global .u32 b;").first,
            HPE_SUCCESS);
}

TEST(Functions, HaveTheLimitsAndParametersThatTheyDeclare) {
  const std::string head = ".version 8.6\n.target sm_90\n.address_size 64\n";
  const auto program = parse({head + R"(
.visible .entry k(.param .u8 a, .param .u64 .ptr .global .align 4 b, .param .align 16 .b8 c[20], .param .u16 d)
.maxntid 4, 5, 6 .minnctapersm 2 .pragma "x"; .maxclusterrank 3
{ .local .align 16 .b8 own[5]; .local .u32 more; .shared .u32 s; ret; }
.visible .entry exact() .reqntid 8, 2 { ret; }
.visible .entry plain() { ret; }
.visible .func (.param .u32 r) f(.param .u8 a, .param .u64 b) { { .param .b8 x[17]; .param .b32 y; } { .param .b32 z; } ret; }
)"});
  const function& k = *program->find_kernel("k");
  std::vector<std::tuple<std::size_t, std::size_t>> places;
  for (const auto& p : k.formals) places.emplace_back(p.offset, p.size);
  EXPECT_EQ(places, (std::vector<std::tuple<std::size_t, std::size_t>>{{0, 1}, {8, 8}, {16, 20}, {36, 2}}));
  EXPECT_EQ(k.formals_size, 38U);
  EXPECT_EQ(k.max_threads, 120U);
  EXPECT_EQ(k.max_cluster, 3U);
  EXPECT_EQ(k.required_block[0], 0U);
  EXPECT_EQ(k.local_size, 12U);
  EXPECT_EQ(k.shared_size, 4U);
  const function& exact = *program->find_kernel("exact");
  EXPECT_EQ(exact.required_block, (std::array<std::uint32_t, 3>{8, 2, 1}));
  EXPECT_EQ(exact.max_threads, 16U);
  EXPECT_EQ(program->find_kernel("plain")->max_threads, 0U);
  EXPECT_EQ(program->find_kernel("f"), nullptr);
  const auto found = std::find_if(program->functions.begin(), program->functions.end(),
                                  [](const auto& each) { return each->name == "f"; });
  ASSERT_NE(found, program->functions.end());
  const function& f = **found;
  places.clear();
  for (const auto& p : f.formals) places.emplace_back(p.offset, p.size);
  EXPECT_EQ(places, (std::vector<std::tuple<std::size_t, std::size_t>>{{0, 4}, {16, 1}, {32, 8}}));
  EXPECT_TRUE(f.formals[0].is_result);
  EXPECT_FALSE(f.formals[1].is_result);
  EXPECT_EQ(f.scratch_size, 48U);  // the second block has the same place as the first

  const auto refused = [&](const std::string& text, const char* words) {
    const auto [status, sentence] = refusal(head + text);
    EXPECT_NE(status, HPE_SUCCESS) << text;
    EXPECT_NE(sentence.find(words), std::string::npos) << text << ": " << sentence;
  };
  refused(".visible .func f(.reg .u32 a) { ret; }", "a parameter in a register");
  refused(".visible .func f(.u32 a) { ret; }", "a parameter expected");
  refused(".visible .entry k() { .reg .v4 %r; ret; }", "a register of type .v4");
  refused(".visible .entry k() { .reg %r; ret; }", "a type expected");
  refused(".visible .entry k() { .reg .b32 %r<16777217>; ret; }", "too many registers");
  refused(".visible .entry k() { .nothing; ret; }", "the directive .nothing");
  refused(".visible .entry k() { ret;", "'}' expected");
  refused(".visible .entry k(.param .b8 a[524289]) { ret; }", "more than 524288 bytes of local memory or parameters");
  refused(".visible .entry k(.param .b8 a[524288], .param .b8 b) { ret; }", "more than 524288 bytes");
  EXPECT_EQ(refusal(head + ".visible .entry k(.param .b8 a[524288]) { .reg .b32 %r<16777216>; ret; }").first,
            HPE_SUCCESS);
}

}  // namespace
}  // namespace hpe::ptx
