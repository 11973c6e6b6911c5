#pragma once

/// Appends the instructions of a statement to a function: resolves names, and splits instructions that have several
/// results.

#include "runtime/ptx/program/scope.h"
#include "runtime/ptx/program/statement.h"

namespace hpe::ptx {

/// The parser's state for the function that it is parsing.
struct function_context {
  ptx::program& program;
  ptx::function& function;
  ptx::scope& names;

  function_context(ptx::program& p, ptx::function& f, ptx::scope& n) : program(p), function(f), names(n) {}

  std::uint32_t scratch_top = 0;
  std::uint32_t source_file = 0, source_line = 0;
  // Labels are numbered in order of appearance. Branch targets are these numbers until resolve_labels replaces them by
  // positions.
  std::unordered_map<std::string_view, std::uint32_t> label_numbers;
  std::vector<std::uint32_t> label_positions;  // `unplaced` until the parser reads the label
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> branch_tables;  // .branchtargets
  std::size_t table_targets = 0;  // the targets of all brx.idx branches together; each branch has a copy of its list
  static constexpr std::uint32_t unplaced = ~0U;
  // The predicate register that contains the carry flag; empty until an instruction uses the flag.
  std::optional<std::uint32_t> carry;

  std::uint32_t label(std::string_view name);
  std::uint32_t new_register(type t, std::string_view name = "");
  std::uint32_t new_scratch(std::uint32_t size);
};

class builder {
 public:
  builder(function_context& context, const statement& s) : context_(context), statement_(s) {}
  /// Appends the statement's instructions to the function. Throws HPE_ERROR_INVALID_ARGUMENT or
  /// HPE_ERROR_NOT_SUPPORTED; the message names the line, the instruction and the reason.
  void build();

 private:
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void unsupported(const std::string& what) const;

  // Operands:
  operand lookup(const operand_syntax& syntax, type t);
  operand result(const operand_syntax& syntax);  // returns an empty operand for "_"
  operand address(const operand_syntax& syntax);
  operand special_register(const operand_syntax& syntax);
  std::vector<operand> elements(const operand_syntax& syntax, type t, bool results);
  std::vector<operand> texture_place(const operand_syntax& where, type coordinates);
  unsigned vector_length() const;
  const operand_syntax& written(std::size_t n) const;
  void expect(std::size_t at_least, std::size_t at_most) const;

  // Instructions:
  instruction make(opcode op, type t = type::none) const;
  instruction make() const;  // returns an instruction with the statement's opcode, types and modifiers
  void add_implied(instruction& i) const;
  void append(instruction i);
  void append(opcode op, type t, std::vector<operand> results, std::vector<operand> sources);
  operand temporary(type t);

  // Forms:
  void build_pure();
  void build_mov();
  void build_setp();
  void build_carry();
  void build_load();
  void build_store();
  void build_atomic();
  void build_address_space();
  void build_copy_async();
  void build_routine();
  void build_store_async();
  void build_texture();
  void build_texture_read();
  void build_texture_query();
  void build_surface_access();
  void build_branch();
  void build_call();
  void build_warp();
  void build_barrier();
  void build_matrix();
  void build_wmma();
  void build_mma();
  void build_matrix_move();
  void require_bits(const std::vector<operand>& fragment, unsigned bits) const;
  argument call_argument(const operand_syntax& syntax, bool is_result, std::vector<instruction>& after);

  function_context& context_;
  const statement& statement_;
  operand guard_;
};

/// Replaces label numbers by positions. Throws HPE_ERROR_INVALID_ARGUMENT for a label that is not defined.
void resolve_labels(function_context& context);
/// Inserts a pause before each backward jump of a loop that may wait for another thread, so that the other thread can
/// run. A loop may wait if it contains a volatile or ordered load, a load with .mmio or .cv, a load with .cg from an
/// address that the loop does not compute, an atomic operation whose result the function uses, or an mbarrier test. A
/// loop may also wait if it contains loads and a barrier or fence, but neither stores nor atomic operations. Call
/// before resolve_labels.
void insert_pauses(function_context& context);
/// Inserts a pause before each backward jump of a loop that calls a function that may wait for another thread. Call
/// after the parser has read all functions.
void insert_pauses_at_calls(program& p);
/// Inserts meetings before stores, and before loads that may run after a store. All lanes of the warp that can reach a
/// meeting wait there. Therefore no lane executes an access before the other lanes have executed the accesses that
/// precede it in the code. Lanes that diverged at a branch run in the order of their positions in the code. Call after
/// resolve_labels.
void insert_convergence(function& f);

}  // namespace hpe::ptx
