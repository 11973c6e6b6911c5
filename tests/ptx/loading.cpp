// Loading: fat binaries, and messages for text that is no PTX or not supported.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <lz4.h>
#include <sys/resource.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "hpe/error.hpp"
#include "runtime/ptx/files/fat_binary.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::ptx {
namespace {

std::string text_with(const std::string& body) {
  return ".version 8.6\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .b32 %r<4>;\n.reg "
         ".b64 %rd<4>;\n.reg .pred %p<3>;\n" +
         body + "\nret;\n}\n";
}

// The status and message of the error that parsing throws.
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
  expect_refusal("@%r1 bra x; x:", HPE_ERROR_INVALID_ARGUMENT, {"no predicate"});
  expect_refusal("ld.global.v4.u32 {%r1, %r2}, [%rd1];", HPE_ERROR_INVALID_ARGUMENT, {"2 registers for a vector of 4"});
  expect_refusal("call missing;", HPE_ERROR_INVALID_ARGUMENT, {"missing"});
  const auto [status, sentence] = refusal(
      ".version 8.6\n.target sm_75\n.address_size 64\n.extern .func "
      "__cudaCDP2DeviceSynchronize();\n.visible .entry k() { call "
      "__cudaCDP2DeviceSynchronize; ret; }\n");
  EXPECT_EQ(status, HPE_ERROR_NOT_SUPPORTED);
  EXPECT_NE(sentence.find("dynamic parallelism"), std::string::npos) << sentence;
}

// The types of a register that ptxas of CUDA 13 accepts in the place of @; it refuses all others.
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
  // Cut off inside of a word, it may name an instruction or a directive that hpe does not know.
  for (std::size_t n = whole.find(".visible") + 1; n + 3 < whole.size(); ++n) {
    const auto [status, sentence] = refusal(whole.substr(0, n));
    EXPECT_TRUE(status == HPE_ERROR_INVALID_ARGUMENT || status == HPE_ERROR_NOT_SUPPORTED) << whole.substr(0, n);
    EXPECT_NE(sentence.find("line "), std::string::npos) << sentence;
  }
}

// Each of these would take more stack than there is.
TEST(Parsing, RefusesDeepNesting) {
  const std::string many(1 << 20, ' ');
  for (const char c : {'{', '!', '(', '['}) {
    std::string deep = many;
    std::fill(deep.begin(), deep.end(), c);
    expect_refusal((c == '{' ? "" : "add.s32 %r1, ") + deep, HPE_ERROR_INVALID_ARGUMENT, {"inside each other"});
  }
  std::string blocks = "add.s32 %r1, %r2, %r3;";
  for (int n = 0; n < 200; ++n) blocks = "{" + blocks + "}";
  EXPECT_EQ(refusal(text_with(blocks)).first, HPE_SUCCESS);
}

// Texts that declare more than they use: a register of a family exists once it is named.
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
  expect_refusal(".shared .align 3 .b8 a[4];", HPE_ERROR_INVALID_ARGUMENT, {"an alignment of 3"});
  std::string table = "T: .branchtargets L";
  for (int n = 0; n < 2000; ++n) table += ", L";
  std::string uses;
  for (int n = 0; n < 2000; ++n) uses += "brx.idx %r1, T;\n";
  expect_refusal(table + ";\n" + uses + "L:", HPE_ERROR_INVALID_ARGUMENT, {"1048576 targets of branches"});
}

// Each kernel may use each shared variable, because their addresses are initial values. Took minutes.
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

// As nvcc -rdc=true writes them: outside of the kernels.
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

// A container in nvcc's format.
std::string container(const std::string& ptx, std::uint64_t flags) {
  std::string body = ptx;
  if ((flags & 0x8000) != 0) {
    body.resize(ZSTD_compressBound(ptx.size()));
    body.resize(ZSTD_compress(body.data(), body.size(), ptx.data(), ptx.size(), 3));
  } else if ((flags & 0x2000) != 0) {
    body.resize(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(ptx.size()))));
    body.resize(static_cast<std::size_t>(
        LZ4_compress_default(ptx.data(), body.data(), static_cast<int>(ptx.size()), static_cast<int>(body.size()))));
  }
  std::string entry(64, '\0');
  const auto put = [](std::string& to, std::size_t at, auto value) {
    std::memcpy(to.data() + at, &value, sizeof value);
  };
  put(entry, 0, std::uint16_t{1});
  put(entry, 4, std::uint32_t{64});
  put(entry, 8, std::uint64_t{body.size()});
  put(entry, 16, static_cast<std::uint32_t>((flags & 0xa000) != 0 ? body.size() : 0));
  put(entry, 28, std::uint32_t{75});
  put(entry, 40, flags);
  put(entry, 56, std::uint64_t{ptx.size()});
  std::string cubin(64, '\0');
  put(cubin, 0, std::uint16_t{2});
  put(cubin, 4, std::uint32_t{64});
  put(cubin, 8, std::uint64_t{8});
  cubin += "machine.";
  std::string head(16, '\0');
  put(head, 0, std::uint32_t{0xba55ed50});
  put(head, 4, std::uint16_t{1});
  put(head, 6, std::uint16_t{16});
  put(head, 8, std::uint64_t{cubin.size() + entry.size() + body.size()});
  return head + cubin + entry + body;
}

TEST(FatBinary, ReadsAllCompressions) {
  const std::string ptx = text_with("add.s32 %r1, %r2, %r3;");
  for (const std::uint64_t flags : {0x0ULL, 0x2000ULL, 0x8000ULL}) {
    const std::string bytes = container(ptx, flags);
    const auto entries = read_fat_binary(bytes.data(), bytes.size());
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].what, fat_binary_entry::kind::cubin);
    EXPECT_EQ(choose_ptx(entries).text, ptx);
    EXPECT_EQ(choose_ptx(entries).architecture, 75U);
    struct {
      std::uint32_t magic, version;
      const void* data;
      void* unused;
    } const wrapper{0x466243b1, 1, bytes.data(), nullptr};
    EXPECT_EQ(choose_ptx(read_fat_binary(&wrapper, sizeof wrapper)).text, ptx);
  }
}

TEST(FatBinary, SurvivesDamage) {
  const std::string good = container(text_with("add.s32 %r1, %r2, %r3;"), 0x8000);
  for (std::size_t n = 0; n < good.size(); n += 5) {
    EXPECT_THROW(static_cast<void>(read_fat_binary(good.data(), n)), error) << n;
  }
  std::string bad = good;
  bad[bad.size() - 20] = static_cast<char>(bad[bad.size() - 20] ^ 0x55);
  try {
    EXPECT_NE(choose_ptx(read_fat_binary(bad.data(), bad.size())).text, text_with("add.s32 %r1, %r2, %r3;"));
  } catch (const error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_THROW(static_cast<void>(read_fat_binary("\x7f"
                                                 "ELF............",
                                                 16)),
               error);
}

// Found by libFuzzer (tests/fuzz).
TEST(FatBinary, TakesNoMemoryForASizeThatItsBytesCannotHave) {
  constexpr std::size_t entry = 16 + 64 + 8;  // behind the container's header and the cubin
  constexpr std::uint64_t stated = 0x70000000;
  const auto most_kib = [] {
    struct rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  for (const std::uint64_t flags : {0x2000ULL, 0x8000ULL}) {
    std::string bytes = container(text_with("add.s32 %r1, %r2, %r3;"), flags);
    std::memcpy(bytes.data() + entry + 56, &stated, sizeof stated);
    const long before = most_kib();
    EXPECT_THROW(static_cast<void>(read_fat_binary(bytes.data(), bytes.size())), error);
    EXPECT_LT(most_kib() - before, 256 << 10);
  }
}

TEST(FatBinary, ReadsTextsOfSeveralMebibytes) {
  const std::string ptx = text_with(std::string(3 << 20, ' ') + "add.s32 %r1, %r2, %r3;");
  for (const std::uint64_t flags : {0x2000ULL, 0x8000ULL}) {
    const std::string bytes = container(ptx, flags);
    EXPECT_EQ(choose_ptx(read_fat_binary(bytes.data(), bytes.size())).text, ptx);
  }
}

TEST(FatBinary, RefusesATextThatIsFarLargerThanItsBytes) {
  const std::string bytes = container(text_with(std::string(64 << 20, ' ')), 0x8000);
  ASSERT_LT(bytes.size(), 32U << 10);
  EXPECT_THROW(static_cast<void>(read_fat_binary(bytes.data(), bytes.size())), error);
}

TEST(FatBinary, OfSeveralTextsTheOneForTheNewestArchitectureIsTaken) {
  std::vector<fat_binary_entry> entries;
  for (const std::uint32_t architecture : {70U, 90U, 80U})
    entries.push_back({fat_binary_entry::kind::ptx, architecture, std::to_string(architecture)});
  EXPECT_EQ(choose_ptx(entries).text, "90");
  std::reverse(entries.begin(), entries.end());
  EXPECT_EQ(choose_ptx(entries).text, "90");
}

TEST(FatBinary, TellsHowToGetPtx) {
  try {
    static_cast<void>(choose_ptx({{fat_binary_entry::kind::cubin, 90, ""}}));
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.status(), HPE_ERROR_NOT_SUPPORTED);
    EXPECT_NE(std::string(e.what()).find("-arch=compute_75"), std::string::npos);
  }
}

}  // namespace
}  // namespace hpe::ptx
