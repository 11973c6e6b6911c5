// The size of an access follows from the opcode and the prefixes, the address from the ModRM and SIB bytes (Intel's
// Software Developer's Manual, volume 2, chapters 2 and 3). An unknown instruction only makes a touch less exact, so
// the tables contain what compilers and libc use.

#include "runtime/os/accessed_bytes.h"

#include <array>

namespace hpe::os {

#if defined(__x86_64__)

namespace {

using byte = std::uint8_t;

constexpr std::size_t unknown = 0;

enum class prefix : byte { none, p66, pf3, pf2 };  // the values of field pp of VEX

/// The registers by their numbers in instructions.
constexpr std::array<int, 16> registers{REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

class decoder {
 public:
  explicit decoder(const ucontext_t& context)
      : context_(context), at_(reinterpret_cast<const byte*>(context.uc_mcontext.gregs[REG_RIP])) {}

  std::optional<accessed_bytes> run() {
    read_prefixes();
    if (is_string_instruction()) return string_access();
    const byte modrm = *at_;
    const std::size_t bytes = has_modrm() && (modrm >> 6) != 3 ? size(modrm) : unknown;
    if (bytes == unknown || has_segment_) return std::nullopt;
    return accessed_bytes{address(bytes), bytes};
  }

 private:
  enum class map : byte { one_byte, two_bytes = 1, x38 = 2, x3a = 3 };  // two_bytes ...: the values of field mmmmm

  void read_prefixes() {
    bool more = true;
    while (more) switch (*at_) {
        case 0x66: has_66_ = true, ++at_; break;
        case 0xf2:
        case 0xf3: last_f_ = *at_++; break;
        case 0x64:
        case 0x65: has_segment_ = true, ++at_; break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0xf0: ++at_; break;
        case 0x67: has_segment_ = true, ++at_; break;  // 32-bit addresses
        default: more = false;
      }
    pp_ = last_f_ == 0xf3 ? prefix::pf3 : last_f_ == 0xf2 ? prefix::pf2 : has_66_ ? prefix::p66 : prefix::none;
    if ((*at_ & 0xf0) == 0x40) set_rex(*at_++);
    switch (*at_) {
      case 0xc5: return read_vex2();
      case 0xc4: return read_vex3();
      case 0x62: return read_evex();
      default: break;
    }
    opcode_ = *at_++;
    if (opcode_ != 0x0f) return;
    opcode_ = *at_++;
    map_ = opcode_ == 0x38 ? map::x38 : opcode_ == 0x3a ? map::x3a : map::two_bytes;
    if (map_ != map::two_bytes) opcode_ = *at_++;
  }

  void set_rex(byte rex) {
    w_ = (rex & 8) != 0;
    x_ = (rex & 2) != 0;
    b_ = (rex & 1) != 0;
  }
  void read_vex2() {
    map_ = map::two_bytes;
    set_vector(at_[1]);
    opcode_ = at_[2];
    at_ += 3;
  }
  void read_vex3() {
    x_ = (at_[1] & 0x40) == 0;
    b_ = (at_[1] & 0x20) == 0;
    map_ = static_cast<map>(at_[1] & 3);
    w_ = (at_[2] & 0x80) != 0;
    set_vector(at_[2]);
    opcode_ = at_[3];
    at_ += 4;
  }
  void set_vector(byte last) {
    is_vector_ = true;
    pp_ = static_cast<prefix>(last & 3);
    vector_ = (last & 4) != 0 ? 32 : 16;
  }
  void read_evex() {
    x_ = (at_[1] & 0x40) == 0;
    b_ = (at_[1] & 0x20) == 0;
    map_ = static_cast<map>(at_[1] & 3);
    w_ = (at_[2] & 0x80) != 0;
    pp_ = static_cast<prefix>(at_[2] & 3);
    is_vector_ = is_evex_ = true;
    vector_ = std::size_t{16} << (at_[3] >> 5 & 3);
    is_broadcast_ = (at_[3] & 0x10) != 0;
    is_masked_ = (at_[3] & 7) != 0;
    opcode_ = at_[4];
    at_ += 5;
  }

  [[nodiscard]] bool is_string_instruction() const {
    if (is_vector_ || map_ != map::one_byte) return false;
    return (opcode_ >= 0xa4 && opcode_ <= 0xa7) || (opcode_ >= 0xaa && opcode_ <= 0xaf);
  }
  /// movs and cmps access two places; the fault tells which one.
  [[nodiscard]] std::optional<accessed_bytes> string_access() const {
    const std::size_t bytes = (opcode_ & 1) == 0 ? 1 : operand();
    const auto fault = static_cast<std::uintptr_t>(context_.uc_mcontext.gregs[REG_CR2]);
    for (const int each : {REG_RSI, REG_RDI}) {
      const auto begin = static_cast<std::uintptr_t>(context_.uc_mcontext.gregs[each]);
      if (fault - begin < bytes) return accessed_bytes{begin, bytes};
    }
    return std::nullopt;
  }

  [[nodiscard]] bool has_modrm() const {
    if (map_ != map::one_byte) return true;
    return (opcode_ < 0x40 && (opcode_ & 7) < 4) || opcode_ == 0x63 || opcode_ == 0x69 || opcode_ == 0x6b ||
           (opcode_ >= 0x80 && opcode_ <= 0x8f) || opcode_ == 0xc0 || opcode_ == 0xc1 || opcode_ == 0xc6 ||
           opcode_ == 0xc7 || (opcode_ >= 0xd0 && opcode_ <= 0xdf) || opcode_ == 0xf6 || opcode_ == 0xf7 ||
           opcode_ >= 0xfe;
  }

  [[nodiscard]] std::size_t operand() const { return w_ ? 8 : has_66_ ? 2 : 4; }
  [[nodiscard]] std::size_t word() const { return w_ ? 8 : 4; }
  [[nodiscard]] std::size_t scalar() const { return pp_ == prefix::pf3 ? 4 : 8; }
  [[nodiscard]] bool is_scalar() const { return pp_ == prefix::pf3 || pp_ == prefix::pf2; }
  /// A whole register: of MMX without a prefix.
  [[nodiscard]] std::size_t integers() const { return !is_vector_ && pp_ == prefix::none ? 8 : vector_; }

  [[nodiscard]] std::size_t size(byte modrm) const {
    if (is_masked_) return unknown;
    switch (map_) {
      case map::one_byte: return opcode_ >= 0xd8 && opcode_ <= 0xdf ? size_of_x87(modrm) : size_of_one_byte();
      case map::two_bytes: return size_of_two_bytes();
      case map::x38: return size_of_38();
      case map::x3a: return size_of_3a();
    }
    return unknown;
  }

  [[nodiscard]] std::size_t size_of_one_byte() const {
    if (opcode_ == 0x63) return 4;
    if (opcode_ == 0x69 || opcode_ == 0x6b || opcode_ == 0x83) return operand();
    if (opcode_ == 0x8d) return unknown;  // lea
    if (opcode_ == 0x8c || opcode_ == 0x8e) return 2;
    if (opcode_ == 0x8f) return 8;
    return (opcode_ & 1) == 0 ? 1 : operand();
  }

  [[nodiscard]] std::size_t size_of_x87(byte modrm) const {
    const int which = modrm >> 3 & 7;
    switch (opcode_) {
      case 0xd8:
      case 0xda: return 4;
      case 0xd9: return which < 4 ? 4 : (which & 1) != 0 ? 2 : unknown;
      case 0xdb: return which < 4 ? 4 : 10;
      case 0xdc: return 8;
      case 0xdd: return which < 4 ? 8 : which == 7 ? 2 : unknown;
      case 0xde: return 2;
      default: return which < 4 ? 2 : (which & 1) != 0 ? 8 : 10;
    }
  }

  [[nodiscard]] std::size_t size_of_two_bytes() const {
    if (is_evex_ && is_broadcast_) return word();
    const byte row = opcode_ >> 4;
    switch (opcode_) {
      case 0x10:
      case 0x11: return is_scalar() ? scalar() : vector_;
      case 0x12: return pp_ == prefix::pf2 && vector_ == 16 ? 8 : is_scalar() ? vector_ : 8;
      case 0x13:
      case 0x17: return 8;
      case 0x16: return pp_ == prefix::pf3 ? vector_ : 8;
      case 0x14:
      case 0x15:
      case 0x28:
      case 0x29:
      case 0x2b:
      case 0xc6: return vector_;
      case 0x2a: return is_scalar() ? word() : 8;
      case 0x2c:
      case 0x2d: return is_scalar() ? scalar() : pp_ == prefix::p66 ? 16 : 8;
      case 0x2e:
      case 0x2f: return pp_ == prefix::p66 ? 8 : 4;
      case 0x5a: return is_scalar() ? scalar() : pp_ == prefix::none ? vector_ / 2 : vector_;
      case 0x6e: return word();
      case 0x7e: return pp_ == prefix::pf3 ? 8 : word();
      case 0xa3:
      case 0xab:
      case 0xb3:
      case 0xbb: return unknown;  // the bit may be far from the address
      case 0xb0:
      case 0xb6:
      case 0xbe:
      case 0xc0: return 1;
      case 0xb7:
      case 0xbf:
      case 0xc4: return 2;
      case 0xc3: return word();
      case 0xc7: return w_ ? 16 : 8;
      case 0xd6: return 8;
      case 0xe6: return pp_ == prefix::pf3 ? vector_ / 2 : vector_;
      default: break;
    }
    if (row == 5 || opcode_ == 0xc2) return is_scalar() ? scalar() : vector_;
    if (row == 6 || row == 7 || row >= 0xd) return integers();
    if (row == 9) return 1;  // setcc
    if (row == 4 || row == 0xa || row == 0xb || opcode_ == 0xc1) return operand();
    return unknown;
  }

  [[nodiscard]] std::size_t size_of_38() const {
    const bool widens = (opcode_ >= 0x20 && opcode_ <= 0x25) || (opcode_ >= 0x30 && opcode_ <= 0x35);
    if (widens) {
      constexpr std::array<byte, 6> parts{2, 4, 8, 2, 4, 2};
      return vector_ / parts[opcode_ & 7];
    }
    const bool is_fma = opcode_ >= 0x96 && opcode_ <= 0xbf;
    if (is_fma) return (opcode_ & 9) == 9 ? word() : is_broadcast_ ? word() : vector_;
    switch (opcode_) {
      case 0x13: return vector_ / 2;
      case 0x18:
      case 0x58: return 4;
      case 0x19:
      case 0x59: return 8;
      case 0x1a:
      case 0x5a: return 16;
      case 0x78: return 1;
      case 0x79: return 2;
      case 0x2c:
      case 0x2d:
      case 0x2e:
      case 0x2f:
      case 0x8c:
      case 0x8e:
      case 0x90:
      case 0x91:
      case 0x92:
      case 0x93: return unknown;  // masked
      case 0xf0: return is_vector_ ? unknown : pp_ == prefix::pf2 ? 1 : operand();
      case 0xf1:
      case 0xf2:
      case 0xf3:
      case 0xf5:
      case 0xf6:
      case 0xf7: return operand();
      default: return is_broadcast_ ? word() : opcode_ < 0xf0 ? integers() : unknown;
    }
  }

  [[nodiscard]] std::size_t size_of_3a() const {
    switch (opcode_) {
      case 0x14:
      case 0x20: return 1;
      case 0x15: return 2;
      case 0x0a:
      case 0x17:
      case 0x21: return 4;
      case 0x0b: return 8;
      case 0x16:
      case 0x22: return word();
      case 0x18:
      case 0x19:
      case 0x38:
      case 0x39: return 16;
      case 0x1a:
      case 0x1b:
      case 0x3a:
      case 0x3b: return 32;
      case 0x1d: return vector_ / 2;
      case 0xf0: return operand();
      default: return is_broadcast_ ? word() : integers();
    }
  }

  /// Reads the ModRM byte and what follows it.
  [[nodiscard]] std::uintptr_t address(std::size_t bytes) {
    const byte modrm = *at_++;
    const int mode = modrm >> 6, low = modrm & 7;
    std::uintptr_t sum = 0;
    bool has_base = true, is_relative = false;
    if (low == 4) {
      const byte sib = *at_++;
      const int index = (sib >> 3 & 7) | (x_ ? 8 : 0), base = (sib & 7) | (b_ ? 8 : 0);
      if (index != 4) sum += value_of(index) << (sib >> 6);
      has_base = mode != 0 || (sib & 7) != 5;
      if (has_base) sum += value_of(base);
    } else if (mode == 0 && low == 5) {
      has_base = false;
      is_relative = true;
    } else {
      sum += value_of(low | (b_ ? 8 : 0));
    }
    if (mode == 1) {
      // NOLINTNEXTLINE(bugprone-signed-char-misuse): a displacement is a signed number
      const auto offset = static_cast<std::int64_t>(static_cast<std::int8_t>(*at_++));
      // The one-byte offsets of EVEX count in units of the access.
      sum += static_cast<std::uintptr_t>(offset * (is_evex_ ? static_cast<std::int64_t>(bytes) : 1));
    } else if (mode == 2 || !has_base) {
      std::uint32_t offset = 0;
      for (unsigned i = 0; i < 4; ++i) offset |= static_cast<std::uint32_t>(*at_++) << (8 * i);
      sum += static_cast<std::uintptr_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(offset)));
    }
    if (is_relative) sum += reinterpret_cast<std::uintptr_t>(at_) + bytes_of_constant();
    return sum;
  }

  /// The bytes of the instruction behind the address.
  [[nodiscard]] std::size_t bytes_of_constant() const {
    if (map_ == map::x3a) return 1;
    if (map_ == map::two_bytes)
      return opcode_ == 0xba || opcode_ == 0xa4 || opcode_ == 0xac || opcode_ == 0xc2 || opcode_ == 0xc4 ||
             opcode_ == 0xc6 || (opcode_ >= 0x70 && opcode_ <= 0x73);
    if (map_ == map::x38) return 0;
    const std::size_t full = has_66_ ? 2 : 4;
    switch (opcode_) {
      case 0x69:
      case 0x81:
      case 0xc7: return full;
      case 0x6b:
      case 0x80:
      case 0x83:
      case 0xc0:
      case 0xc1:
      case 0xc6: return 1;
      case 0xf6: return is_test() ? 1 : 0;
      case 0xf7: return is_test() ? full : 0;
      default: return 0;
    }
  }
  [[nodiscard]] bool is_test() const { return (at_[-5] >> 3 & 7) < 2; }  // a relative address has four bytes

  [[nodiscard]] std::uintptr_t value_of(int number) const {
    return static_cast<std::uintptr_t>(context_.uc_mcontext.gregs[registers[static_cast<std::size_t>(number)]]);
  }

  const ucontext_t& context_;
  const byte* at_;
  map map_ = map::one_byte;
  byte opcode_ = 0, last_f_ = 0;
  prefix pp_ = prefix::none;
  std::size_t vector_ = 16;
  bool has_66_ = false, has_segment_ = false, w_ = false, x_ = false, b_ = false;
  bool is_vector_ = false, is_evex_ = false, is_broadcast_ = false, is_masked_ = false;
};

}  // namespace

std::optional<accessed_bytes> bytes_accessed_by(const ucontext_t& context) noexcept { return decoder(context).run(); }

#else

std::optional<accessed_bytes> bytes_accessed_by(const ucontext_t& /*context*/) noexcept { return std::nullopt; }

#endif

}  // namespace hpe::os
