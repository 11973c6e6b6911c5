#include <array>
#include <cstring>

#include "runtime/device/soft/softd/crash_guard.h"
#include "runtime/ptx/execution/block_range.h"

namespace hpe::device::soft {

namespace {

// The index in gregs of each general register, by the register's number in instructions.
constexpr std::array<int, 16> registers{REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

bool is_legacy_prefix(std::uint8_t byte) noexcept {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3: return true;
    default: return false;
  }
}

// An instruction's prefixes: `base` and `index` are added to the register numbers in the operand's encoding.
struct prefixes {
  unsigned base = 0;
  unsigned index = 0;
  const std::uint8_t* opcode = nullptr;  // the opcode, which follows prefixes and escape bytes
  unsigned map = 0;                      // of a VEX or EVEX instruction: the number of its opcode map
};

// Gathers and scatters add up a general register and the elements of a vector register.
bool has_vector_index(const prefixes& front) noexcept {
  constexpr unsigned map_0f38 = 2;
  const unsigned group = *front.opcode & 0xfcU;
  return front.map == map_0f38 && (group == 0x90 || group == 0xa0);
}

prefixes read_prefixes(const std::uint8_t* at) noexcept {
  constexpr std::uint8_t escape = 0x0f, vex2 = 0xc5, vex3 = 0xc4, evex = 0x62;
  const auto inverted = [](const std::uint8_t* byte, unsigned length, unsigned map) {
    return prefixes{(*byte & 0x20) != 0 ? 0U : 8U, (*byte & 0x40) != 0 ? 0U : 8U, byte + length, map};
  };
  while (is_legacy_prefix(*at)) ++at;
  if (*at == vex2) return {0, 0, at + 2};
  if (*at == vex3) return inverted(at + 1, 2, at[1] & 0x1fU);
  if (*at == evex) return inverted(at + 1, 3, at[1] & 0x07U);
  prefixes result;
  if ((*at & 0xf0) == 0x40) {
    result.base = (*at & 1) != 0 ? 8 : 0;
    result.index = (*at & 2) != 0 ? 8 : 0;
    ++at;
  }
  if (*at == escape) {
    ++at;
    if (*at == 0x38 || *at == 0x3a) ++at;
  }
  result.opcode = at;
  return result;
}

template <class T>
std::int64_t read(const std::uint8_t* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

std::uintptr_t operand_address(const ucontext_t& context) noexcept {
  const auto value_of = [&](unsigned number) {
    return static_cast<std::uint64_t>(context.uc_mcontext.gregs[registers[number]]);
  };
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the program counter
  const prefixes front = read_prefixes(reinterpret_cast<const std::uint8_t*>(context.uc_mcontext.gregs[REG_RIP]));
  if (has_vector_index(front)) return ptx::unknown_address;
  const std::uint8_t opcode = *front.opcode;
  if (opcode == 0xa4 || opcode == 0xa5 || opcode == 0xaa || opcode == 0xab) return value_of(7);  // movs, stos: rdi

  const std::uint8_t* at = front.opcode + 1;
  const unsigned form = *at >> 6U, low = *at & 7U;
  ++at;
  constexpr unsigned in_register = 3, with_index = 4, without_base = 5, no_index = 4;
  if (form == in_register || (form == 0 && low == without_base)) return 0;
  std::uint64_t address = 0;
  unsigned base = low;
  if (low == with_index) {
    base = *at & 7U;
    const unsigned index = (*at >> 3U & 7U) + front.index;
    if (index != no_index) address += value_of(index) << (*at >> 6U);
    ++at;
  }
  const bool only_displacement = form == 0 && low == with_index && base == without_base;
  if (!only_displacement) address += value_of(base + front.base);
  if (form == 1) address += static_cast<std::uint64_t>(read<std::int8_t>(at));
  if (form == 2 || only_displacement) address += static_cast<std::uint64_t>(read<std::int32_t>(at));
  return address;
}

}  // namespace hpe::device::soft
