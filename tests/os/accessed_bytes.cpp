#include "runtime/os/accessed_bytes.h"

#include <gtest/gtest.h>

#include <vector>

namespace {

using hpe::os::bytes_accessed_by;
using instruction = std::vector<std::uint8_t>;

constexpr std::uintptr_t rbx = 0x100000, rcx = 0x10, r12 = 0x200000, rdi = 0x300000;

ucontext_t context_at(const instruction& code, std::uintptr_t fault = 0) {
  ucontext_t made{};
  auto& registers = made.uc_mcontext.gregs;
  registers[REG_RIP] = reinterpret_cast<greg_t>(code.data());
  registers[REG_RBX] = rbx;
  registers[REG_RCX] = rcx;
  registers[REG_R12] = r12;
  registers[REG_RDI] = rdi;
  registers[REG_CR2] = static_cast<greg_t>(fault);
  return made;
}

struct known {
  const char* text;
  instruction code;
  std::uintptr_t begin;
  std::size_t bytes;
};

}  // namespace

TEST(AccessedBytes, FollowFromTheInstruction) {
  const std::vector<known> all{
      {"mov eax, [rbx]", {0x8b, 0x03}, rbx, 4},
      {"mov rax, [rbx + 8]", {0x48, 0x8b, 0x43, 0x08}, rbx + 8, 8},
      {"mov [rbx + rcx], al", {0x88, 0x04, 0x0b}, rbx + rcx, 1},
      {"mov [rbx - 8], ax", {0x66, 0x89, 0x43, 0xf8}, rbx - 8, 2},
      {"mov dword [rbx + 256], 1", {0xc7, 0x83, 0, 1, 0, 0, 1, 0, 0, 0}, rbx + 256, 4},
      {"movzx eax, byte [rbx + 4 * rcx]", {0x0f, 0xb6, 0x04, 0x8b}, rbx + 4 * rcx, 1},
      {"movsxd rax, [rbx]", {0x48, 0x63, 0x03}, rbx, 4},
      {"lock xadd [rbx], eax", {0xf0, 0x0f, 0xc1, 0x03}, rbx, 4},
      {"add byte [rbx], 1", {0x80, 0x03, 0x01}, rbx, 1},
      {"movss [rbx], xmm0", {0xf3, 0x0f, 0x11, 0x03}, rbx, 4},
      {"movsd xmm0, [rbx]", {0xf2, 0x0f, 0x10, 0x03}, rbx, 8},
      {"addsd xmm0, [rbx]", {0xf2, 0x0f, 0x58, 0x03}, rbx, 8},
      {"movups [r12 + 16], xmm0", {0x41, 0x0f, 0x11, 0x44, 0x24, 0x10}, r12 + 16, 16},
      {"movdqa xmm0, [rbx]", {0x66, 0x0f, 0x6f, 0x03}, rbx, 16},
      {"movq [rbx], xmm0", {0x66, 0x0f, 0xd6, 0x03}, rbx, 8},
      {"fld qword [rbx]", {0xdd, 0x03}, rbx, 8},
      {"vmovdqu xmm0, [rbx]", {0xc5, 0xfa, 0x6f, 0x03}, rbx, 16},
      {"vmovdqu ymm0, [rbx + 32]", {0xc5, 0xfe, 0x6f, 0x43, 0x20}, rbx + 32, 32},
      {"vbroadcastss ymm0, [rbx]", {0xc4, 0xe2, 0x7d, 0x18, 0x03}, rbx, 4},
      {"vfmadd231ps ymm0, ymm1, [rbx]", {0xc4, 0xe2, 0x75, 0xb8, 0x03}, rbx, 32},
      {"vfmadd231sd xmm0, xmm1, [rbx]", {0xc4, 0xe2, 0xf1, 0xb9, 0x03}, rbx, 8},
      {"vmovdqu64 ymm0, [rbx + 32]", {0x62, 0xf1, 0xfe, 0x28, 0x6f, 0x43, 0x01}, rbx + 32, 32},
      {"vmovdqu64 [rbx - 64], zmm0", {0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x43, 0xff}, rbx - 64, 64},
  };
  for (const known& each : all) {
    const auto got = bytes_accessed_by(context_at(each.code));
    ASSERT_TRUE(got) << each.text;
    EXPECT_EQ(got->begin, each.begin) << each.text;
    EXPECT_EQ(got->bytes, each.bytes) << each.text;
  }
}

TEST(AccessedBytes, OfAddressesRelativeToTheInstructionCountFromItsEnd) {
  const instruction load{0x44, 0x8b, 0x2d, 0x10, 0, 0, 0};              // mov r13d, [rip + 16]
  const instruction store{0xc7, 0x05, 0x10, 0, 0, 0, 0x2a, 0, 0, 0};    // mov dword [rip + 16], 42
  const instruction compare{0x80, 0x3d, 0xf0, 0xff, 0xff, 0xff, 0x00};  // cmp byte [rip - 16], 0
  const auto end = [](const instruction& code) { return reinterpret_cast<std::uintptr_t>(code.data() + code.size()); };
  EXPECT_EQ(bytes_accessed_by(context_at(load))->begin, end(load) + 16);
  EXPECT_EQ(bytes_accessed_by(context_at(store))->begin, end(store) + 16);
  EXPECT_EQ(bytes_accessed_by(context_at(compare))->begin, end(compare) - 16);
}

TEST(AccessedBytes, OfStringInstructionsAreOneElement) {
  const auto got = bytes_accessed_by(context_at({0xf3, 0x48, 0xab}, rdi));  // rep stosq
  ASSERT_TRUE(got);
  EXPECT_EQ(got->begin, rdi);
  EXPECT_EQ(got->bytes, 8U);
}

TEST(AccessedBytes, AreUnknownForOtherInstructions) {
  EXPECT_FALSE(bytes_accessed_by(context_at({0x48, 0x8d, 0x03}))) << "lea rax, [rbx]";
  EXPECT_FALSE(bytes_accessed_by(context_at({0x62, 0xf1, 0x7f, 0x29, 0x7f, 0x03}))) << "vmovdqu8 [rbx]{k1}, ymm0";
  EXPECT_FALSE(bytes_accessed_by(context_at({0x64, 0x8b, 0x03}))) << "mov eax, fs:[rbx]";
  EXPECT_FALSE(bytes_accessed_by(context_at({0x89, 0xc3}))) << "mov ebx, eax";
}
