#pragma once

/// Emits LLVM code for PTX instructions. Only the compiler includes this file.

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <array>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "runtime/ptx/compiler/objects/link_names.h"
#include "runtime/ptx/flow/flow.h"
#include "runtime/ptx/flow/lanes.h"
#include "runtime/ptx/program/image.h"

namespace hpe::ptx {

/// The *loose* registers, which may contain an f32 NaN with any bits. Arithmetic instructions read such a NaN
/// unchanged, so loops of arithmetic have no extra cost. Any other instruction reads the canonical NaN instead, because
/// it could expose the bits. f64 has no canonical NaN; each f64 operation returns the NaN of scalar_float.cpp.
class loose_floats {
 public:
  loose_floats(const std::vector<instruction>& code, std::size_t registers);
  /// Returns type::f32 for a loose register, type::none for any other register.
  [[nodiscard]] type of(std::uint32_t r) const { return types_[r]; }

 private:
  std::vector<type> types_;
};

/// Returns whether the compiler emits an instruction as f32 operations whose NaN results are not canonical.
[[nodiscard]] bool is_loose_operation(const instruction& i);

/// Returns whether a function's parameters, and its result if it has one, fit into registers. In this case, the type of
/// the LLVM function is i64(block_context*, i32 thread, i64 local, i64 local_end, i64...), and the function returns the
/// result or 0. Otherwise the type is void(block_context*, i32 thread, i64 local, i64 local_end, ptr).
[[nodiscard]] bool has_scalar_parameters(const function& f);

/// Returns whether an operand of a load or store is in the memory of parameters or of arguments of calls, which
/// compiled code allocates.
[[nodiscard]] inline bool is_runtime_memory(const operand& o) {
  return o.what == operand::kind::formal || o.what == operand::kind::scratch;
}

/// Calls `body` for each operand that is a register and that the instruction reads.
template <class Body>
void for_each_read(const instruction& i, const Body& body) {
  if (i.guard.is_register()) body(i.guard.index);
  for (const operand& o : i.sources)
    if (o.is_register()) body(o.index);
}

/// Returns the LLVM predicate for a comparison of integers; BAD_ICMP_PREDICATE if `how` is not such a comparison.
[[nodiscard]] llvm::CmpInst::Predicate integer_predicate(modifier how, bool is_signed);

/// Returns the alignment, in bytes, for which the emitted code must check an access; 1 if it need not check, for
/// example because find_in_cluster checks.
[[nodiscard]] unsigned alignment_of(const instruction& i);

/// State that all functions of one LLVM module share.
struct module_context {
  const ptx::image& image;
  const link_names& names;
  llvm::Module& module;
  llvm::MDNode* invariant = nullptr;  // the empty metadata node for !invariant.load
  llvm::MDNode* own_scope = nullptr;  // the alias scope of hpe's own memory: block_context::frame, next and current
  std::map<std::uint32_t, llvm::Function*> functions;  // device functions, by number
  std::map<const function*, std::uint32_t> numbers;
  std::vector<std::uint32_t> targets_of_pointers;
  unsigned lane_count = 1;            // number of lanes in the loops of regions; if 1, threads run one by one
  bool has_half_conversions = false;  // whether the CPU has instructions that convert between f16 and f32
  bool has_fast_gathers = false;      // whether the CPU has fast gather and scatter instructions

  module_context(const ptx::image& i, const link_names& n, llvm::Module& m);
  /// Returns an LLVM constant for an address. link_names must have a name for the address.
  [[nodiscard]] llvm::Constant* pointer(const void* p) const;
  /// Returns an LLVM constant for the address of a variable in global or constant memory.
  [[nodiscard]] llvm::Constant* variable(std::uint32_t symbol) const;
};

class emitter {
 public:
  emitter(module_context& shared, llvm::Function* into, const std::vector<instruction>& code,
          const std::vector<type>& registers, const loose_floats& loose);

  // Set by the code that emits the function around the instructions:
  llvm::Value* context = nullptr;    // block_context*
  llvm::Value* thread = nullptr;     // i32
  llvm::Value* block_x = nullptr;    // i32: ctaid.x, if the function runs several blocks; otherwise null
  llvm::Value* local = nullptr;      // i64: address of the function's local memory, a multiple of 16
  llvm::Value* local_end = nullptr;  // i64: end of the thread's local memory
  llvm::Value* formals = nullptr;    // ptr
  llvm::Value* scratch = nullptr;    // ptr
  bool formals_are_invariant = false;
  std::uint32_t local_size = 0;
  // For code that runs in lanes. In this code, `thread` is the thread of lane 0.
  const lane_analysis* lanes = nullptr;
  llvm::Value* mask = nullptr;         // vector of lane_count() i1: the lanes that run; null if all run
  const register_set* kept = nullptr;  // registers whose values must not change in the lanes that do not run
  llvm::IRBuilder<> at;

  /// Emits one instruction that is not a meeting and does not end its basic block.
  void emit(const instruction& i);
  /// Emits several such instructions of one basic block. The instructions must outlive the emitted code.
  void emit(std::span<const instruction> code);
  /// Like emit, for code that runs in lanes. `end` emits the end of the basic block. If this saves tests, emits the
  /// code and its end in two versions. The first version has a null mask and is for groups whose lanes all run and
  /// access contiguous, aligned memory. The second version is for all other groups.
  void emit_in_lanes(std::span<const instruction> code, const std::function<void()>& end);

  // Registers:
  llvm::Value* get(const operand& o, unsigned bits);  // returns the canonical bits
  llvm::Value* get_float(const operand& o, type t);   // may return a NaN that is not canonical
  llvm::Value* get_raw(std::uint32_t r);
  void set(const operand& o, llvm::Value* value);  // `value` is an integer, which is truncated or zero-extended
  /// Sets an f32 or f64. `is_loose`: whether `value` may be a NaN that is not canonical. If the register is not loose,
  /// the emitted code makes such a NaN canonical.
  void set_float(const operand& o, llvm::Value* value, bool is_loose);
  void set_raw(std::uint32_t r, llvm::Value* value);
  llvm::Value* condition(const operand& guard);
  [[nodiscard]] llvm::IntegerType* type_of(std::uint32_t r) {
    return at.getIntNTy(std::max(1U, bits_of(registers_[r])));
  }
  /// Sets a register to values from memory, one value for each lane. Returns an i1: whether the values agree with the
  /// register's shape (lane_shape).
  llvm::Value* restore(std::uint32_t r, llvm::Value* values);
  /// Returns the values of a register in all lanes: the raw bits, or the canonical bits.
  llvm::Value* in_all_lanes(std::uint32_t r, bool is_raw);
  /// any() returns an i1: whether any lane of a mask is set. all() returns an i1: whether all lanes are set. A null
  /// mask means that all lanes are set.
  llvm::Value* any(llvm::Value* mask);
  llvm::Value* all(llvm::Value* mask);
  /// Returns the running lanes in which a guard holds, as a mask.
  llvm::Value* lanes_where(const operand& guard);
  /// The result of testing a condition for all lanes with a few scalar instructions. `all` is an i1 that is true only
  /// if the condition holds in every lane. `none` is an i1 that is true only if the condition holds in no lane. Both
  /// may be false.
  struct certainty {
    llvm::Value *all, *none;
  };
  /// Emits a test of a condition at the end of a basic block. `before`: the instructions of the basic block, which must
  /// have been emitted.
  [[nodiscard]] certainty certainty_of(const operand& condition, std::span<const instruction> before);
  [[nodiscard]] unsigned lane_count() const { return lanes->count(); }
  /// Returns an i1: whether all lanes run and the meeting needs all lanes.
  llvm::Value* is_of_all_lanes(const instruction& i);
  /// The members of meetings: the lanes that meet with each lane that runs.
  struct members_of_meeting {
    llvm::Value* are_there;  ///< i1: whether all members run and name the same members; if false, `lanes` is not valid
    llvm::Value* lanes;  ///< the members as bits: one i32 if all running lanes have the same meeting, otherwise one i32
                         ///< for each lane
  };
  /// Emits code that finds the members of the meeting `i`. `alive`: an i32 with the lanes that have not ended; a
  /// meeting waits only for these lanes, and if it names lanes, only for the named ones among them.
  [[nodiscard]] members_of_meeting find_members(const instruction& i, llvm::Value* alive);
  /// Emits a meeting of the lanes that run. `members`: see members_of_meeting::lanes.
  void emit_meeting(const instruction& i, llvm::Value* members);
  /// Returns the lanes of a mask as the bits of an integer. A null mask means all lanes.
  llvm::Value* lane_bits(llvm::Value* of);
  llvm::Value* splat(llvm::Value* value) { return at.CreateVectorSplat(lane_count(), value); }
  /// Emits code that sets all registers to zero, at the beginning of a thread.
  void clear_registers();

  // Accesses to hpe's own memory:
  llvm::Value* member(std::size_t offset, llvm::Type* t, bool invariant = true);
  void set_member(std::size_t offset, llvm::Value* value);
  llvm::Instruction* own(llvm::Instruction* access);
  llvm::Value* call(const void* function, llvm::Type* result, llvm::ArrayRef<llvm::Value*> arguments,
                    bool pure = false);
  llvm::AllocaInst* allocate(llvm::Type* t, std::uint32_t alignment);
  llvm::Value* known_aligned(llvm::Value* address);
  void fail(std::uint32_t why, llvm::Value* address, const instruction& i);

  [[nodiscard]] llvm::Function* function() const { return function_; }
  [[nodiscard]] module_context& shared() { return shared_; }

 private:
  /// The lanes for which emitted code computes values: the first lane (or the only thread), lane lane_, or every lane.
  enum class view : std::uint8_t { first, one, every };
  static constexpr std::size_t views = 3;

  /// Sets the view until the object is destroyed.
  class in_view {
   public:
    in_view(emitter& e, view v) : emitter_(e), before_(std::exchange(e.view_, v)) {}
    in_view(const in_view&) = delete;
    in_view& operator=(const in_view&) = delete;
    ~in_view() { emitter_.view_ = before_; }

   private:
    emitter& emitter_;
    view before_;
  };

  /// Returns the views for which a register of this shape stores a value.
  [[nodiscard]] static std::vector<view> views_of(lane_shape::kind what);
  llvm::AllocaInst* slot(std::uint32_t r, view v);
  /// Returns the slot of a flag of a widened register: an i1 that is true if the register's values are linear.
  llvm::AllocaInst* linear_slot(std::uint32_t r);
  llvm::AllocaInst* allocate_slot(llvm::Type* t);
  [[nodiscard]] bool is_wide() const { return view_ == view::every; }
  llvm::Type* of_lanes(llvm::Type* t) { return is_wide() ? llvm::FixedVectorType::get(t, lane_count()) : t; }
  llvm::Type* ints(unsigned bits) { return of_lanes(at.getIntNTy(bits)); }
  llvm::Type* floats(unsigned bits) { return of_lanes(bits == 32 ? at.getFloatTy() : at.getDoubleTy()); }
  llvm::Constant* number(unsigned bits, std::uint64_t value) { return llvm::ConstantInt::get(ints(bits), value); }
  llvm::Value* spread(llvm::Value* value) { return is_wide() ? splat(value) : value; }
  llvm::Constant* steps(llvm::Type* element, std::int64_t step);
  [[nodiscard]] lane_shape shape_of(std::uint32_t r) const {
    return lanes == nullptr ? lane_shape{lane_shape::kind::uniform} : lanes->shape_of(r);
  }
  llvm::Value* canonical(llvm::Value* bits, type t);
  llvm::Value* address_value(const operand& o);

  // Instructions in lanes:
  void emit_in_lanes(const instruction& i);
  void emit_in_views(const instruction& i);
  void emit_load_in_lanes(const instruction& i);
  void emit_store_in_lanes(const instruction& i);
  llvm::Value* offset_of(const instruction& i, view v);  // returns the address; for shared memory, the offset
  llvm::Value* low_offset_of(const instruction& i, view v);
  llvm::Value* pointers_of(const instruction& i, view v);
  llvm::Value* keeps_step(const instruction& i);
  llvm::Value* stays_in_range(llvm::Value* first, std::int64_t step, bool is_signed);
  llvm::Value* is_linear(const operand& o);
  llvm::Value* has_linear_result(const instruction& i);
  [[nodiscard]] certainty certainty_at(const operand& condition, std::span<const instruction> code, std::size_t end,
                                       std::size_t& left);
  [[nodiscard]] certainty certainty_of_comparison(const instruction& i);
  [[nodiscard]] bool is_simple_if_full(const instruction& i) const;
  llvm::Value* are_simple(std::span<const instruction* const> accesses);
  void check_alignment_in_lanes(const instruction& i);
  [[nodiscard]] bool is_update(std::span<const instruction* const> code);
  /// If the code begins with an update of memory, emits the update and returns the number of its instructions;
  /// otherwise returns 0.
  std::size_t emit_update(std::span<const instruction* const> code);
  std::uint32_t reads_of(std::uint32_t r);  // returns the number of reads of a register in the code
  llvm::AllocaInst* lane_memory(llvm::Type* of_lane, std::size_t n);
  /// Emits code that stores a vector in lane memory number `n`. The result emits the load of one lane's value.
  std::function<llvm::Value*(unsigned lane)> values_of_lanes(llvm::Value* values, std::size_t n);
  std::function<llvm::Value*(unsigned lane)> pointers_of_lanes(const instruction& i, llvm::Value* pointers);
  void copy_reads(const instruction& i);
  void for_each_lane(const instruction& i, const std::function<void()>& body);
  void for_all_lanes(const instruction& i, const std::function<void()>& body);
  void set_every(const operand& o, llvm::Value* values);
  llvm::Value* mask_of_elements(unsigned of_each_lane);
  llvm::Value* happens_to_be_contiguous(const instruction& i);
  /// Emits an access in two versions. contiguous(pointer) emits the version for lanes that together access one
  /// contiguous range of memory, from `pointer` on. with_gaps() emits this version if there are gaps between the lanes'
  /// ranges; if it is null, scattered() does. scattered(pointers) emits the version for all other addresses.
  void access_contiguous_or_scattered(const instruction& i, const std::function<void(llvm::Value*)>& contiguous,
                                      const std::function<void()>& with_gaps,
                                      const std::function<void(llvm::Value*)>& scattered);
  void prefetch_record_of(const instruction& i);
  llvm::Value* load_with_gaps(const instruction& i, llvm::Value* pointer);

  // Meetings that lanes pass:
  void emit_shuffle(const instruction& i, llvm::Value* members);
  void emit_vote(const instruction& i, llvm::Value* members);
  void emit_match(const instruction& i, llvm::Value* members);
  void emit_reduction(const instruction& i, llvm::Value* members);
  void for_each_meeting(llvm::Value* members, const std::function<void(llvm::Value* group)>& body);
  llvm::Value* is_member(llvm::Value* members, llvm::Value* lane);
  llvm::Value* in_each_lane(llvm::Value* members) {
    return members->getType()->isVectorTy() ? members : splat(members);
  }
  llvm::Value* permuted(llvm::Value* values, llvm::Value* from);
  void set_common(const operand& o, llvm::Value* value);

  // Pure instructions. A null result means that the function has emitted no code; the caller then emits a call of the
  // scalar function (scalar.h).
  llvm::Value* emit_scalar(const instruction& i);
  llvm::Value* emit_integer(const instruction& i);
  llvm::Value* emit_bits(const instruction& i);
  llvm::Value* emit_compare(const instruction& i);
  llvm::Value* emit_half(const instruction& i);
  llvm::Value* emit_conversion_to_half(const instruction& i);
  /// Returns an f16 or bf16 operand, converted to f32; null if the compiler has no code for the conversion.
  llvm::Value* single_of_half(const operand& o, type t, bool ftz);
  llvm::Value* limited(const instruction& i, llvm::Value* value);  // returns the value, limited by .sat and .relu
  llvm::Value* emit_conversion(const instruction& i);
  llvm::Value* emit_float(const instruction& i);  // returns an LLVM float or double
  llvm::Value* emit_conversion_to_float(const instruction& i);
  llvm::Value* emit_approximate(const instruction& i);
  llvm::Value* emit_extreme(bool minimum, llvm::Value* a, llvm::Value* b);
  llvm::Value* to_integral(const instruction& i, llvm::Value* value);
  llvm::Value* saturated(llvm::Value* value, bool is_wanted);
  llvm::Value* fused_rounded_down(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* power_of_two(llvm::Value* x);  // `x` is an f32, converted to f64
  llvm::Value* with_exact_nan(llvm::Value* result, llvm::ArrayRef<llvm::Value*> in_order);
  /// Emits the pure instructions at the beginning of the code, and returns their number.
  std::size_t emit_pure_sequence(std::span<const instruction* const> code);
  llvm::Value* emit_float_conversion(const instruction& i);
  llvm::Value* call_scalar(const instruction& i);
  llvm::Value* flushed(llvm::Value* value, bool ftz);
  llvm::Value* quotient(const instruction& i, bool rest);
  void emit_pure(const instruction& i);

  // Memory and calls:
  llvm::Value* address_of(
      const operand& o);  // returns an i64; for shared memory, an offset of which only the low 32 bits are valid
  llvm::Value* shared_offset_of(const operand& o);         // returns an i64 with a magnitude below 4 GiB
  llvm::Value* narrow_shared_offset_of(const operand& o);  // returns an i32, which may wrap
  llvm::Value* pointer_of(const instruction& i, const operand& o);
  llvm::Value* record_pointer_of(const instruction& i, const operand& o);
  llvm::Value* record_colour();
  llvm::Value* record_colour(const instruction& i);
  /// Returns the pointer of an access. Before that, emits code that checks the alignment of the address, unless the
  /// access is in checked_.
  llvm::Value* aligned_pointer_of(const instruction& i);
  void check_alignment(std::span<const instruction* const> accesses);
  llvm::BasicBlock* misaligned_block();
  llvm::Instruction* users(llvm::Instruction* access);
  void emit_load(const instruction& i);
  void emit_store(const instruction& i);
  void emit_fragment(const instruction& i);
  void emit_atomic(const instruction& i);
  void emit_atomic_in_lanes(const instruction& i);
  [[nodiscard]] static bool is_inline_atomic(const instruction& i);
  llvm::Value* sum_of_bits(type t, llvm::Value* a, llvm::Value* b);
  llvm::Value* emit_atomic_sum(type t, llvm::Value* pointer, llvm::Value* with);
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
  std::array<std::vector<llvm::AllocaInst*>, views> slots_;
  std::vector<llvm::AllocaInst*> linear_slots_;  // by register
  view view_ = view::first;
  llvm::Value* lane_ = nullptr;  // i32
  std::map<std::pair<llvm::Type*, std::size_t>, llvm::AllocaInst*> lane_memory_;
  std::map<std::uint32_t, llvm::AllocaInst*> copies_;  // by register: lane memory that contains its values
  std::vector<llvm::AllocaInst*> used_;
  bool is_exact_ = true;                  // whether emitted code selects the bits of an f64 NaN (emit_nan.cpp)
  std::vector<std::uint32_t> reads_;      // by register: see reads_of(); empty until the first use
  std::set<const instruction*> checked_;  // accesses whose alignment earlier code has checked
  std::set<const instruction*> simple_;   // accesses in lanes that earlier code has found to be aligned and contiguous
  llvm::BasicBlock* misaligned_ = nullptr;  // a block that reports a misaligned access and does not return
  llvm::PHINode* misaligned_address_ = nullptr;
  llvm::PHINode* misaligned_access_ = nullptr;
};

}  // namespace hpe::ptx
