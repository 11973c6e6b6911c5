#pragma once

/// The typed intermediate form of a PTX program. The parser creates it from PTX text, the interpreter executes it, and
/// the compiler translates it to native code.
///
/// This form is PTX in which all names are resolved: registers are numbers, labels are positions, each pure instruction
/// refers to the function that computes it, and a pure PTX instruction with several results is split into instructions
/// with one result each.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/ptx/program/instruction_table.h"

namespace hpe::ptx {

/// CUDA's limits along x, y and z: the blocks of a grid, and the threads of a block.
inline constexpr std::array<std::uint32_t, 3> most_blocks{0x7fffffff, 65535, 65535}, widest_block{1024, 1024, 64};

/// The number of lanes of a warp.
inline constexpr std::uint32_t warp_size = 32;

/// Computes one result from the raw bits of the operands. Values narrower than 64 bits are zero-extended; predicates
/// are 0 or 1.
using scalar_function = std::uint64_t (*)(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d);
/// Applies an atomic operation at an aligned address, and returns the old value. `c` is the new value of a
/// compare-and-swap.
using atomic_function = std::uint64_t (*)(void* address, std::uint64_t b, std::uint64_t c);

struct operand {
  enum class kind : std::uint8_t {
    none,
    reg,        // a register; in an address, the register plus `value`
    immediate,  // the constant is `value`
    symbol,     // the address of a variable plus `value`
    formal,     // `value` is an offset into the parameters of the function or kernel
    scratch,    // `value` is an offset into the arguments that the function passes to its callees
    local,      // `value` is an offset into the function's local memory
    function,   // the address of a function
  };
  kind what = kind::none;
  bool negated = false;  // for a predicate: whether the instruction uses the negation
  std::uint32_t index = 0;
  std::uint64_t value = 0;

  [[nodiscard]] bool is_register() const { return what == kind::reg; }
};

/// A call's argument or result: a range of bytes of the caller's scratch memory (operand::kind::scratch).
struct argument {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

enum class builtin : std::uint8_t { none, print, allocate, release, assertion, device_runtime };

struct instruction {
  opcode op = opcode::count;
  ptx::kind kind = kind::nothing;
  type types[4] = {type::none, type::none, type::none, type::none};
  modifier_set modifiers;
  std::uint8_t vector = 1;  // the number of elements of a load or store
  operand guard;            // none, or the predicate under which a thread executes the instruction
  std::vector<operand> results;
  std::vector<operand> sources;  // in a memory access, the address comes first
  scalar_function scalar = nullptr;
  // The fourth argument of `scalar`, if there are fewer than four sources (scalar.h). For access_recording.h: in a
  // store that records an access, the distance of the record; in an access that records itself, its number.
  std::uint64_t description = 0;
  atomic_function atomic = nullptr;
  std::vector<std::uint32_t> targets;  // branches: positions in the function's code
  std::uint32_t callee = 0;            // direct calls: the number of the called function
  std::vector<argument> arguments, returns;
  std::uint32_t line = 0;         // line in the PTX text
  std::uint32_t source_file = 0;  // number of the source file, from .loc; 0 if unknown
  std::uint32_t source_line = 0;
  std::uint32_t text_begin = 0, text_end = 0;  // offsets in the PTX text

  [[nodiscard]] bool has(modifier m) const { return modifiers.has(m); }
  [[nodiscard]] type second_type() const { return types[1] == type::none ? types[0] : types[1]; }
  /// Whether a load or store has an order or is volatile, or a load reads memory anew (.cv, .mmio).
  [[nodiscard]] bool is_strong() const {
    return modifiers.one_of(modifier::relaxed, modifier::acquire, modifier::release, modifier::volatile_,
                            modifier::mmio, modifier::cv) != modifier::count;
  }
};

struct formal_parameter {
  std::string name;
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t alignment = 1;
  bool is_result = false;
};

struct function {
  std::string name;
  bool is_kernel = false;
  bool is_defined = false;
  builtin system_call = builtin::none;
  std::vector<type> registers;
  std::vector<std::string> register_names;
  std::vector<instruction> code;
  std::vector<formal_parameter> formals;  // results come before parameters
  std::uint32_t formals_size = 0;
  std::uint32_t scratch_size = 0;
  std::uint32_t local_size = 0;
  std::uint32_t shared_size = 0;                  // kernels only: bytes of static shared memory of a block
  std::uint32_t max_threads = 0;                  // .maxntid or .reqntid; 0 if not given
  std::array<std::uint32_t, 3> required_block{};  // .reqntid; zeros if not given
  std::array<std::uint32_t, 3> cluster{};         // .reqnctapercluster; zeros if not given
  std::uint32_t max_cluster = 0;                  // .maxclusterrank, in blocks; 0 if not given
  bool needs_cluster = false;                     // .explicitcluster: the kernel or its launch must define a cluster
  std::uint32_t text = 0;                         // index in program::texts
  std::string left_out;  // why hpe removed the code (unknown_code::left_out); empty if hpe did not remove it
};

/// A variable in global, constant or shared memory.
struct symbol {
  enum class space : std::uint8_t { global, constant, shared };
  struct relocation {
    std::uint32_t offset = 0;
    std::uint32_t size = 8;
    bool is_function = false;
    std::uint32_t target = 0;  // number of a symbol or function
    std::uint64_t addend = 0;
    std::uint64_t mask = ~std::uint64_t{0};  // for initial values of the form 0xFF00(name)
  };
  std::string name;
  space where = space::global;
  std::uint64_t size = 0;
  std::uint32_t alignment = 1;
  bool is_defined = true;
  bool is_managed = false;
  bool may_be_written = false;        // whether code of the program may write the variable (find_written_variables)
  bool is_dynamic_shared = false;     // declared `.extern .shared`: begins after the static shared variables
  std::uint32_t shared_offset = 0;    // offset of a static variable in the block's shared memory
  std::uint32_t owner = no_owner;     // the function that declares a shared variable
  std::vector<std::uint8_t> initial;  // the initial bytes; shorter than `size` if the other bytes are zero
  std::vector<relocation> relocations;
  static constexpr std::uint32_t no_owner = ~0U;

  /// Returns whether the symbol is a variable in global memory that no code of the program writes.
  [[nodiscard]] bool is_only_read() const {
    return where == space::global && size > 0 && is_defined && !is_managed && !may_be_written;
  }
};

/// The addresses whose accesses a program records (access_recording.h).
struct recorded_addresses {
  std::uint64_t base = 0;
  std::uint64_t size = 0;           // 0: nothing is recorded
  std::uint64_t begin = 0;          // where the record begins
  std::uint64_t colour_stride = 0;  // the distance between the records of two colours
  bool only_first_reads = false;    // whether reads of bytes with a recorded write are not recorded
};

/// One PTX text, or several that are linked.
struct program {
  std::vector<std::string> texts;
  std::vector<std::string> files;                    // the names in .file directives
  std::vector<std::unique_ptr<function>> functions;  // function pointers use their numbers (image::address_of_function)
  std::vector<symbol> symbols;
  bool in_lockstep = false;        // the parser has inserted meetings before stores and loads (warp_order)
  std::uint32_t architecture = 0;  // the highest .target of the texts: 75 for sm_75
  recorded_addresses recorded;     // the addresses whose accesses the program records

  /// Removes the code of a function, and stores the reason in function::left_out. Marks the variables that the code
  /// named as variables that may be written.
  void leave_out(function& f, const std::string& why);
  [[nodiscard]] const function* find_kernel(std::string_view name) const;
  [[nodiscard]] const symbol* find_symbol(std::string_view name) const;
  /// Returns the text of an instruction, for messages.
  [[nodiscard]] std::string text_of(const function& f, const instruction& i) const;
};

}  // namespace hpe::ptx
