#pragma once

/// LLVM code for PTX instructions. Private to the compiler.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <set>
#include <span>

#include "runtime/ptx/compiler/flow.h"
#include "runtime/ptx/image.h"

namespace hpe::ptx {

/// Which registers hold an f32 whose NaN has not been made the canonical one yet. Arithmetic reads them as they are;
/// everything else, what shows the bits, reads the canonical NaN. So loops of arithmetic pay nothing. f64 has no
/// canonical NaN: there each operation makes the right one.
class loose_floats {
 public:
  loose_floats(const std::vector<instruction>& code, std::size_t registers);
  /// f32 or none.
  [[nodiscard]] type of(std::uint32_t r) const { return types_[r]; }

 private:
  std::vector<type> types_;
};

/// Whether the compiler emits it as operations of f32 whose NaN is not canonical.
[[nodiscard]] bool is_loose_operation(const instruction& i);

/// Whether a function's parameters, and its result if it has one, fit registers. Then it is i64(block_context*, i32
/// thread, i64 local, i64 local_end, i64...), with the result or 0; else void(block_context*, i32 thread, i64 local,
/// i64 local_end, ptr).
[[nodiscard]] bool has_scalar_parameters(const function& f);

/// Whether an operand of a load or store is memory that the compiled code made itself, for parameters and arguments.
[[nodiscard]] inline bool is_runtime_memory(const operand& o) {
  return o.what == operand::kind::formal || o.what == operand::kind::scratch;
}

/// What all functions of one LLVM module share.
struct module_context {
  const ptx::image& image;
  llvm::Module& module;
  llvm::MDNode* invariant = nullptr;                   // empty node of !invariant.load
  llvm::MDNode* own_scope = nullptr;                   // of accesses to the runtime's own memory: frames, next, current
  std::map<std::uint32_t, llvm::Function*> functions;  // device functions, by number
  std::map<const function*, std::uint32_t> numbers;
  std::vector<std::uint32_t> targets_of_pointers;

  module_context(const ptx::image& i, llvm::Module& m);
  [[nodiscard]] llvm::Constant* pointer(const void* p) const;
};

class emitter {
 public:
  emitter(module_context& shared, llvm::Function* into, const std::vector<instruction>& code,
          const std::vector<type>& registers, const loose_floats& loose);

  // set by who emits the frame around the code
  llvm::Value* context = nullptr;    // block_context*
  llvm::Value* thread = nullptr;     // i32
  llvm::Value* local = nullptr;      // i64: the address of the function's local memory, a multiple of 16
  llvm::Value* local_end = nullptr;  // i64: where the thread's local memory ends
  llvm::Value* formals = nullptr;    // ptr
  llvm::Value* scratch = nullptr;    // ptr
  bool formals_are_invariant = false;
  std::uint32_t local_size = 0;
  llvm::IRBuilder<> at;

  /// Emits one instruction that neither meets nor ends the block.
  void emit(const instruction& i);
  /// Emits such instructions of one basic block. They outlive the emitter's code.
  void emit(std::span<const instruction> code);

  // registers
  llvm::Value* get(const operand& o, unsigned bits);  // the canonical bits
  llvm::Value* get_float(const operand& o, type t);   // NaN as it is
  llvm::Value* get_raw(std::uint32_t r);
  void set(const operand& o, llvm::Value* value);  // an integer, cut or zero-extended
  /// Of f32 or f64. is_loose: the value's NaN is not canonical, and is made so where the register shows it.
  void set_float(const operand& o, llvm::Value* value, bool is_loose);
  void set_raw(std::uint32_t r, llvm::Value* value) { at.CreateStore(value, slot(r)); }
  llvm::Value* condition(const operand& guard);
  [[nodiscard]] llvm::IntegerType* type_of(std::uint32_t r) {
    return at.getIntNTy(std::max(1U, bits_of(registers_[r])));
  }
  /// Forgets all registers: they read as zero. At the beginning of a thread.
  void clear_registers();

  // memory of the runtime
  llvm::Value* member(std::size_t offset, llvm::Type* t, bool invariant = true);
  void set_member(std::size_t offset, llvm::Value* value);
  llvm::Instruction* own(llvm::Instruction* access);
  llvm::Value* call(const void* function, llvm::Type* result, llvm::ArrayRef<llvm::Value*> arguments,
                    bool pure = false);
  llvm::Value* allocate(llvm::Type* t, std::uint32_t alignment);
  llvm::Value* known_aligned(llvm::Value* address);
  void fail(std::uint32_t why, llvm::Value* address, const instruction& i);

  [[nodiscard]] llvm::Function* function() const { return function_; }
  [[nodiscard]] module_context& shared() { return shared_; }

 private:
  llvm::AllocaInst* slot(std::uint32_t r);
  llvm::Value* canonical(llvm::Value* bits, type t);
  llvm::Value* address_value(const operand& o);

  // pure instructions; null where there is no own code, and the scalar function is called
  llvm::Value* emit_scalar(const instruction& i);
  llvm::Value* emit_integer(const instruction& i);
  llvm::Value* emit_bits(const instruction& i);
  llvm::Value* emit_compare(const instruction& i);
  llvm::Value* emit_conversion(const instruction& i);
  llvm::Value* emit_float(const instruction& i);  // a float or double
  llvm::Value* emit_conversion_to_float(const instruction& i);
  llvm::Value* emit_approximate(const instruction& i);
  llvm::Value* emit_extreme(bool minimum, llvm::Value* a, llvm::Value* b);
  llvm::Value* to_integral(const instruction& i, llvm::Value* value);
  llvm::Value* with_exact_nan(llvm::Value* result, llvm::ArrayRef<llvm::Value*> in_order);
  llvm::Value* emit_float_conversion(const instruction& i);
  llvm::Value* call_scalar(const instruction& i);
  llvm::Value* flushed(llvm::Value* value, bool ftz);
  llvm::Value* quotient(const instruction& i, bool rest);
  void emit_pure(const instruction& i);

  // memory and calls
  llvm::Value* address_of(const operand& o);  // i64; of a shared one the offset
  llvm::Value* pointer_of(const instruction& i, const operand& o);
  /// Of an access, whose address is checked first if it is not one of checked_.
  llvm::Value* aligned_pointer_of(const instruction& i);
  void check_alignment(std::span<const instruction* const> accesses);
  llvm::BasicBlock* misaligned_block();
  llvm::Instruction* users(llvm::Instruction* access);
  void emit_load(const instruction& i);
  void emit_store(const instruction& i);
  void emit_fragment(const instruction& i);
  void emit_atomic(const instruction& i);
  llvm::Value* emit_atomic_inline(const instruction& i, llvm::Value* pointer);
  void emit_copy(const instruction& i);
  void emit_texture(const instruction& i);
  void emit_address_space(const instruction& i);
  void emit_special(const instruction& i);
  void emit_routine(const instruction& i);
  void emit_fence(const instruction& i);
  void emit_call(const instruction& i);
  void emit_scalar_call(const instruction& i, const ptx::function& callee, std::uint32_t number);
  void emit_call_to(const instruction& i, const ptx::function& callee, std::uint32_t number);

  module_context& shared_;
  llvm::Function* function_;
  const std::vector<instruction>& code_;
  const std::vector<type>& registers_;
  const loose_floats& loose_;
  std::vector<llvm::AllocaInst*> slots_;
  std::vector<std::uint32_t> used_;
  std::set<const instruction*> checked_;    // accesses whose alignment was checked ahead
  llvm::BasicBlock* misaligned_ = nullptr;  // tells of an access whose address is not aligned, and does not return
  llvm::PHINode* misaligned_address_ = nullptr;
  llvm::PHINode* misaligned_access_ = nullptr;
};

}  // namespace hpe::ptx
