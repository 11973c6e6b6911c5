// Updates of memory in lanes: a load, an integer operation and a store to the same address, such as ++count[key]. On
// processors with slow gathers, each lane updates its element with scalar instructions, because this takes fewer
// instructions than a vector of loaded values and a vector of stored values.

#include "runtime/ptx/compiler/emitter.h"
#include "runtime/ptx/execution/thread_memory.h"

namespace hpe::ptx {

using llvm::Value;

namespace {

llvm::Instruction::BinaryOps operation_of(const instruction& i) {
  switch (i.op) {
    case opcode::add: return llvm::Instruction::Add;
    case opcode::sub: return llvm::Instruction::Sub;
    case opcode::and_: return llvm::Instruction::And;
    case opcode::or_: return llvm::Instruction::Or;
    case opcode::xor_: return llvm::Instruction::Xor;
    default: return llvm::Instruction::BinaryOpsEnd;
  }
}

bool is_same(const operand& a, const operand& b) {
  return a.what == b.what && a.index == b.index && a.value == b.value && a.negated == b.negated;
}

bool is_simple_access(const instruction& i, kind what, unsigned bytes) {
  return i.kind == what && i.op != opcode::wmma && i.vector == 1 && !i.guard.is_register() &&
         i.sources[0].is_register() && bytes_of(i.types[0]) == bytes;
}

}  // namespace

std::uint32_t emitter::reads_of(std::uint32_t r) {
  if (reads_.empty()) {
    reads_.resize(registers_.size());
    for (const instruction& i : code_) for_each_read(i, [&](std::uint32_t read) { ++reads_[read]; });
  }
  return reads_[r];
}

// Whether the first three instructions are an update, and no other code reads the result of the operation.
bool emitter::is_update(std::span<const instruction* const> code) {
  if (code.size() < 3 || mask != nullptr || shared_.has_fast_gathers) return false;
  const instruction &load = *code[0], &change = *code[1], &store = *code[2];
  const unsigned bytes = bytes_of(load.types[0]);
  if (bytes < 4 || !is_simple_access(load, kind::load, bytes) || !is_simple_access(store, kind::store, bytes) ||
      window_of(load) != window_of(store) || !is_same(load.sources[0], store.sources[0]))
    return false;
  if (shape_of(load.sources[0].index).what != lane_shape::kind::varying) return false;
  if (change.kind != kind::pure || change.guard.is_register() || change.has(modifier::sat) ||
      is_float(change.types[0]) || bytes_of(change.types[0]) != bytes || change.sources.size() != 2 ||
      operation_of(change) == llvm::Instruction::BinaryOpsEnd)
    return false;
  const operand &loaded = load.results[0], &changed = change.results[0];
  if (!loaded.is_register() || !changed.is_register() || loaded.index == changed.index ||
      loaded.index == load.sources[0].index || changed.index == load.sources[0].index)
    return false;
  const auto is_plain = [&](const operand& o, const operand& of) {
    return o.is_register() && o.index == of.index && !o.negated;
  };
  const bool is_second = is_plain(change.sources[1], loaded);
  const operand& other = change.sources[is_second ? 0 : 1];
  if (!is_second && !is_plain(change.sources[0], loaded)) return false;
  if (is_plain(other, loaded) || (other.is_register() && shape_of(other.index).what == lane_shape::kind::widened))
    return false;
  return is_plain(store.sources[1], changed) && reads_of(changed.index) == 1;
}

std::size_t emitter::emit_update(std::span<const instruction* const> code) {
  if (!is_update(code)) return 0;
  const instruction &load = *code[0], &change = *code[1];
  const operand& loaded = load.results[0];
  const bool is_second = change.sources[1].is_register() && change.sources[1].index == loaded.index;
  const operand& other = change.sources[is_second ? 0 : 1];
  const unsigned bits = bits_of(load.types[0]);
  check_alignment_in_lanes(load);
  const auto pointer_of_lane = pointers_of_lanes(load, nullptr);
  std::function<Value*(unsigned)> other_of_lane = [&](unsigned lane) {
    const in_view one(*this, view::one);
    lane_ = at.getInt32(lane);
    return get(other, bits);
  };
  if (other.is_register() && shape_of(other.index).what == lane_shape::kind::varying) {
    const in_view every(*this, view::every);
    other_of_lane = values_of_lanes(get(other, bits), 1);
  }
  const llvm::Align alignment(bits / 8);
  Value* values = llvm::Constant::getNullValue(llvm::FixedVectorType::get(at.getIntNTy(bits), lane_count()));
  for (unsigned lane = 0; lane < lane_count(); ++lane) {
    Value* const pointer = pointer_of_lane(lane);
    Value* const before = users(at.CreateAlignedLoad(at.getIntNTy(bits), pointer, alignment));
    Value* const by = other_of_lane(lane);
    Value* const after = at.CreateBinOp(operation_of(change), is_second ? by : before, is_second ? before : by);
    users(at.CreateAlignedStore(after, pointer, alignment));
    values = at.CreateInsertElement(values, before, lane);
  }
  if (reads_of(loaded.index) > 1) {
    llvm::Type* const wide = llvm::FixedVectorType::get(at.getInt64Ty(), lane_count());
    set_every(loaded, is_signed(load.types[0]) ? at.CreateSExt(values, wide) : at.CreateZExt(values, wide));
  }
  return 3;
}

}  // namespace hpe::ptx
