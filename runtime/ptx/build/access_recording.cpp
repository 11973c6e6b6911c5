// The stores follow the access, so an invalid access faults before anything is recorded. An address that is not known
// to be in global memory (a generic address) may lie in shared or local memory; its store is guarded by a comparison
// with the recorded range.

#include "runtime/ptx/build/access_recording.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::ptx {

namespace {

struct recorded_access {
  recorded_use use = recorded_use::read;
  std::size_t address = 0;  // the position of the address in the instruction's sources
  unsigned bytes = 0;
};

bool is_ordered_access(const instruction& i) {
  using enum modifier;
  return i.modifiers.one_of(volatile_, relaxed, acquire, release, mmio, cv) != count;
}

std::optional<recorded_access> recorded(const program& p, const instruction& i) {
  recorded_access result;
  switch (i.kind) {
    case kind::load:
    case kind::store:
      if (i.op == opcode::wmma) return std::nullopt;
      result.use = i.kind == kind::load ? recorded_use::read : recorded_use::write;
      if (is_ordered_access(i)) result.use = recorded_use::atomic;
      result.bytes = bytes_of(i.types[0]) * i.vector;
      break;
    case kind::atomic:
      result.use = recorded_use::atomic;
      result.bytes = bytes_of(i.types[0]);
      break;
    case kind::copy_async: {  // the sources are the destination in shared memory, the source, and the number of bytes
      if (i.sources.size() != 3 || i.sources[2].what != operand::kind::immediate) return std::nullopt;
      result.address = 1;
      result.bytes = static_cast<unsigned>(i.sources[2].value);
      if (result.bytes != 4 && result.bytes != 8 && result.bytes != 16) return std::nullopt;
      break;
    }
    default: return std::nullopt;
  }
  if (i.kind != kind::copy_async && i.modifiers.one_of(modifier::shared, modifier::shared_cta, modifier::shared_cluster,
                                                       modifier::local, modifier::constant, modifier::param,
                                                       modifier::param_entry, modifier::param_func) != modifier::count)
    return std::nullopt;
  const operand& at = i.sources[result.address];
  const bool is_variable = at.what == operand::kind::symbol && p.symbols[at.index].where == symbol::space::global;
  if (!is_variable && !at.is_register()) return std::nullopt;
  if (result.bytes == 0 || result.bytes > 32) return std::nullopt;
  return result;
}

operand immediate(std::uint64_t value) { return {operand::kind::immediate, false, 0, value}; }

class recorder {
 public:
  recorder(program& p, function& f, const record_places& where, recorded_reads reads)
      : program_(p), function_(f), where_(where), reads_(reads) {}

  void run(std::size_t& sites) {
    std::vector<std::uint32_t> positions;
    positions.reserve(function_.code.size() + 1);
    for (instruction& i : function_.code) {
      positions.push_back(static_cast<std::uint32_t>(code_.size()));
      const auto access = recorded(program_, i);
      if (!access) {
        code_.push_back(std::move(i));
        continue;
      }
      record(std::move(i), *access, 1 + sites++ % most_site_numbers);
    }
    positions.push_back(static_cast<std::uint32_t>(code_.size()));
    for (instruction& i : code_)
      for (std::uint32_t& target : i.targets) target = positions[target];
    function_.code = std::move(code_);
  }

 private:
  operand new_register(type t) {
    function_.registers.push_back(t);
    function_.register_names.emplace_back("%recorded" + std::to_string(function_.registers.size()));
    return {operand::kind::reg, false, static_cast<std::uint32_t>(function_.registers.size() - 1), 0};
  }

  // Returns an instruction at the place of another one in the source.
  static instruction like(const instruction& at, opcode op, type t) {
    instruction made;
    made.op = op;
    made.kind = form_of(op).kind;
    made.types[0] = t;
    made.line = at.line;
    made.source_file = at.source_file;
    made.source_line = at.source_line;
    made.text_begin = at.text_begin;
    made.text_end = at.text_end;
    return made;
  }

  void add_pure(instruction i) {
    set_scalar(i);
    code_.push_back(std::move(i));
  }

  // Adds a condition to a store.
  void guard(instruction& store, const operand& condition) {
    if (!store.guard.is_register()) {
      store.guard = condition;
      return;
    }
    if (store.guard.negated) {  // only guards may be negated, not the sources of and.pred
      instruction opposite = like(store, opcode::not_, type::pred);
      const operand turned = new_register(type::pred);
      opposite.results = {turned};
      opposite.sources = {{operand::kind::reg, false, store.guard.index, 0}};
      add_pure(std::move(opposite));
      store.guard = turned;
    }
    instruction both = like(store, opcode::and_, type::pred);
    const operand guarded = new_register(type::pred);
    both.results = {guarded};
    both.sources = {condition, store.guard};
    add_pure(std::move(both));
    store.guard = guarded;
  }

  // Returns a predicate that tells whether no write of the element at an address has been recorded.
  operand is_unwritten(const instruction& store, operand at, unsigned element) {
    const type loaded = element == 8 ? type::u64 : element == 4 ? type::u32 : element == 2 ? type::u16 : type::u8;
    const type compared = element == 1 ? type::u16 : loaded;
    instruction load = like(store, opcode::ld, loaded);
    const operand writer = new_register(compared), result = new_register(type::pred);
    load.guard = store.guard;
    load.modifiers.add(modifier::global);
    at.value += where_.distances[static_cast<std::size_t>(recorded_use::write)];
    load.results = {writer};
    load.sources = {at};
    code_.push_back(std::move(load));
    instruction compare = like(store, opcode::setp, compared);
    compare.modifiers.add(modifier::eq);
    compare.results = {result};
    compare.sources = {writer, immediate(0)};
    add_pure(std::move(compare));
    return result;
  }

  void record(instruction access, const recorded_access& how, std::size_t number) {
    instruction store = like(access, opcode::st, type::b8);
    store.guard = access.guard;
    operand at = access.sources[how.address];
    const auto is_same = [&](const operand& o) { return o.is_register() && o.index == at.index; };
    if (at.is_register() && std::any_of(access.results.begin(), access.results.end(), is_same)) {
      instruction copy = like(access, opcode::mov, type::b64);
      const operand kept = new_register(type::b64);
      copy.results = {kept};
      copy.sources = {{operand::kind::reg, false, at.index, 0}};
      add_pure(std::move(copy));
      at.index = kept.index;
    }
    const bool is_generic = at.is_register() && !access.has(modifier::global);
    const instruction place = like(access, opcode::st, type::b8);
    code_.push_back(std::move(access));
    if (is_generic) {
      instruction offset = like(place, opcode::add, type::u64);
      const operand distance = new_register(type::u64), is_inside = new_register(type::pred);
      offset.results = {distance};
      offset.sources = {{operand::kind::reg, false, at.index, 0}, immediate(at.value - where_.base)};
      add_pure(std::move(offset));
      instruction compare = like(place, opcode::setp, type::u64);
      compare.modifiers.add(modifier::lt);
      compare.results = {is_inside};
      compare.sources = {distance, immediate(where_.size)};
      add_pure(std::move(compare));
      guard(store, is_inside);
    }
    const unsigned element = how.bytes % 8 == 0 ? 8 : how.bytes % 4 == 0 ? 4 : how.bytes % 2 == 0 ? 2 : 1;
    if (how.use == recorded_use::read && reads_ == recorded_reads::first)
      guard(store, is_unwritten(store, at, element));
    store.modifiers.add(modifier::global);
    at.value += where_.distances[static_cast<std::size_t>(how.use)];
    store.sources = {at};
    store.types[0] = element == 8 ? type::b64 : element == 4 ? type::b32 : element == 2 ? type::b16 : type::b8;
    store.vector = static_cast<std::uint8_t>(how.bytes / element);
    if (store.vector == 2) store.modifiers.add(modifier::v2);
    if (store.vector == 4) store.modifiers.add(modifier::v4);
    const std::uint64_t all = 0x0101010101010101ULL * number;
    for (unsigned n = 0; n < store.vector; ++n)
      store.sources.push_back(immediate(element == 8 ? all : all & ((std::uint64_t{1} << (8 * element)) - 1)));
    code_.push_back(std::move(store));
  }

  program& program_;
  function& function_;
  const record_places& where_;
  const recorded_reads reads_;
  std::vector<instruction> code_;
};

}  // namespace

std::vector<access_site> find_access_sites(const program& p) {
  std::vector<access_site> result;
  for (const auto& f : p.functions)
    for (const instruction& i : f->code)
      if (const auto access = recorded(p, i)) result.push_back({f.get(), &i, access->use});
  return result;
}

bool writes_unrecorded(const program& p) {
  const auto is_unrecorded = [&](const instruction& i) {
    switch (i.kind) {
      case kind::store: return i.op == opcode::wmma;
      case kind::routine: return i.op == opcode::cp || i.op == opcode::st || i.op == opcode::red;
      case kind::texture: return i.results.empty();  // a store into a surface
      default: return false;
    }
  };
  return std::any_of(p.functions.begin(), p.functions.end(),
                     [&](const auto& f) { return std::any_of(f->code.begin(), f->code.end(), is_unrecorded); });
}

void record_accesses(program& p, const record_places& where, recorded_reads reads) {
  std::size_t sites = 0;
  for (const auto& f : p.functions) recorder(p, *f, where, reads).run(sites);
  // The texts are a part of the name under which compiled kernels are kept.
  p.texts.push_back(fmt::format("// accesses recorded: {:#x} {:#x} {:#x} {:#x} {:#x}{}\n", where.base, where.size,
                                where.distances[0], where.distances[1], where.distances[2],
                                reads == recorded_reads::first ? ", first reads" : ""));
}

}  // namespace hpe::ptx
