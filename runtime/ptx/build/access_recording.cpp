// The stores follow the access, so an invalid access faults before anything is recorded. An address that is not known
// to be in global memory (a generic address) may lie in shared or local memory; its store is guarded by a comparison
// with the recorded range.

#include "runtime/ptx/build/access_recording.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::ptx {

namespace {

struct recorded_access {
  recorded_use use = recorded_use::read;
  std::size_t address = 0;  // the position of the address in the instruction's sources
  unsigned bytes = 0;
  bool records_itself = false;  // see record_range()
};

// Whether the instruction certainly accesses no global memory.
bool is_in_other_memory(const instruction& i) {
  return i.modifiers.one_of(modifier::shared, modifier::shared_cta, modifier::shared_cluster, modifier::local,
                            modifier::constant, modifier::param, modifier::param_entry,
                            modifier::param_func) != modifier::count;
}

std::optional<recorded_access> recorded_by_itself(const instruction& i, recorded_use use) {
  if (i.has(modifier::shared) || i.has(modifier::shared_cta))
    if (i.op == opcode::wmma) return std::nullopt;
  return recorded_access{use, 0, 0, true};
}

std::optional<recorded_access> recorded(const program& p, const instruction& i) {
  recorded_access result;
  switch (i.kind) {
    case kind::load:
    case kind::store:
      result.use = i.kind == kind::load ? recorded_use::read : recorded_use::write;
      if (i.op == opcode::wmma) return recorded_by_itself(i, result.use);
      if (i.is_strong()) result.use = i.kind == kind::load ? recorded_use::strong_read : recorded_use::atomic;
      result.bytes = bytes_of(i.types[0]) * i.vector;
      break;
    case kind::atomic:
      result.use = recorded_use::atomic;
      result.bytes = bytes_of(i.types[0]) * i.vector;
      break;
    case kind::texture:
      if (i.op == opcode::sust) return recorded_by_itself(i, recorded_use::write);
      if (i.results.empty() || i.op == opcode::txq || i.op == opcode::suq) return std::nullopt;
      return recorded_by_itself(i, recorded_use::read);
    case kind::routine:
      if (i.op != opcode::cp || !i.has(modifier::bulk)) return std::nullopt;
      if (i.has(modifier::bulk_group)) return recorded_by_itself(i, recorded_use::write);
      if (i.has(modifier::global)) return recorded_by_itself(i, recorded_use::read);
      return std::nullopt;
    case kind::copy_async: {  // the sources are the destination in shared memory, the source, and the number of bytes
      if (i.sources.size() != 3 || i.sources[2].what != operand::kind::immediate) return std::nullopt;
      result.address = 1;
      result.bytes = static_cast<unsigned>(i.sources[2].value);
      if (result.bytes != 4 && result.bytes != 8 && result.bytes != 16) return std::nullopt;
      break;
    }
    default: return std::nullopt;
  }
  if (i.kind != kind::copy_async && is_in_other_memory(i)) return std::nullopt;
  const operand& at = i.sources[result.address];
  const bool is_variable = at.what == operand::kind::symbol && p.symbols[at.index].where == symbol::space::global;
  if (!is_variable && !at.is_register()) return std::nullopt;
  if (result.bytes == 0 || result.bytes > 32) return std::nullopt;
  return result;
}

// Whether the accesses of a block after this instruction may be ordered after accesses of other blocks.
bool may_order(const instruction& i) {
  switch (i.kind) {
    case kind::load: return i.is_strong() && !is_in_other_memory(i);
    case kind::atomic:
      return !i.results.empty() && i.results[0].is_register() && !i.has(modifier::shared) &&
             !i.has(modifier::shared_cta);
    case kind::barrier: return i.has(modifier::cluster);
    case kind::routine: return i.op == opcode::mbarrier && !i.results.empty();
    default: return false;
  }
}

operand immediate(std::uint64_t value) { return {operand::kind::immediate, false, 0, value}; }

/// The registers of a function that have the same value in all threads of a launch, because one instruction sets them,
/// to a constant or to a parameter of the kernel.
class common_values {
 public:
  explicit common_values(const function& f) : values_(f.registers.size()) {
    std::vector<unsigned> writes(f.registers.size());
    for (const instruction& i : f.code)
      for (const operand& o : i.results)
        if (o.is_register()) ++writes[o.index];
    for (const instruction& i : f.code) {
      if (i.results.size() != 1 || !i.results[0].is_register() || writes[i.results[0].index] != 1) continue;
      if (i.guard.is_register() || i.sources.size() != 1) continue;
      const operand& from = i.sources[0];
      auto& value = values_[i.results[0].index];
      constexpr std::uint64_t of_parameter = std::uint64_t{1} << 63;
      if (i.op == opcode::mov && from.what == operand::kind::immediate)
        value = from.value & ~of_parameter;
      else if (i.op == opcode::mov && from.is_register() && !from.negated)
        value = values_[from.index];
      else if (f.is_kernel && i.kind == kind::load && from.what == operand::kind::formal)
        value = of_parameter | from.value;
    }
  }

  [[nodiscard]] std::optional<std::uint64_t> stored_by(const instruction& i) const {
    if (i.kind != kind::store || i.vector != 1 || i.sources.size() != 2) return std::nullopt;
    const operand& what = i.sources[1];
    if (what.what == operand::kind::immediate) return what.value;
    return what.is_register() ? values_[what.index] : std::nullopt;
  }

 private:
  std::vector<std::optional<std::uint64_t>> values_;  // by register
};

/// The records in which a program records writes.
struct recorded_writes {
  bool words = false;
  bool bytes = false;
  bool may_be_ordered = false;  // whether accesses of blocks may be ordered
};

recorded_writes find_writes(const program& p) {
  recorded_writes result;
  for (const auto& f : p.functions)
    for (const instruction& i : f->code) {
      const auto access = recorded(p, i);
      if (access && access->use == recorded_use::write) {
        const bool has_words = access->bytes % record_places::word == 0;
        result.words |= access->records_itself || has_words;
        result.bytes |= access->records_itself || !has_words;
      }
      result.may_be_ordered |= may_order(i);
    }
  return result;
}

class recorder {
 public:
  /// `writes`: if only first reads are recorded, where their bytes may have been recorded as written.
  recorder(program& p, function& f, const record_places& where, std::optional<recorded_writes> writes)
      : program_(p), function_(f), where_(where), writes_(writes) {}

  void run(std::span<const access_site>& sites) {
    std::vector<std::uint32_t> positions;
    positions.reserve(function_.code.size() + 1);
    for (instruction& i : function_.code) {
      positions.push_back(static_cast<std::uint32_t>(code_.size()));
      const auto access = recorded(program_, i);
      const bool orders = may_order(i);
      instruction note = like(i, opcode::membar, type::none);
      note.guard = i.guard;
      note.modifiers.add(modifier::recorded_order);
      if (access) {
        record(std::move(i), *access, sites.front().number);
        sites = sites.subspan(1);
      } else {
        code_.push_back(std::move(i));
      }
      if (orders) code_.push_back(std::move(note));
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

  // Returns an operation on operands with 64 bits.
  operand computed(const instruction& place, opcode op, type t, std::initializer_list<operand> sources) {
    instruction made = like(place, op, t);
    made.results = {new_register(t)};
    made.sources = sources;
    const operand result = made.results[0];
    add_pure(std::move(made));
    return result;
  }

  // Returns a predicate that tells whether the record has no write of the bytes at an address by the thread's block, or
  // by a block that may be ordered before it.
  operand is_unwritten(const instruction& store, const operand& at, unsigned bytes) {
    constexpr unsigned most = 8;  // bytes of the record in one load
    operand writers = immediate(0);
    const auto add = [&](modifier record, modifier colour, const operand& place, unsigned size) {
      instruction load = like(store, opcode::ld,
                              size == 8   ? type::u64
                              : size == 4 ? type::u32
                              : size == 2 ? type::u16
                                          : type::u8);
      load.guard = store.guard;
      load.modifiers.add(modifier::global);
      load.modifiers.add(record);
      if (colour != modifier::count) load.modifiers.add(colour);
      load.description = description(record == modifier::recorded_words, recorded_use::write);
      load.results = {new_register(type::u64)};
      load.sources = {place};
      const operand writer = load.results[0];
      code_.push_back(std::move(load));
      writers = computed(store, opcode::or_, type::b64, {writer, writers});
    };
    constexpr std::array colours{modifier::count, modifier::recorded_colour_0, modifier::recorded_colour_1};
    for (const modifier colour : std::span(colours).first(writes_->may_be_ordered ? colours.size() : 1)) {
      if (writes_->bytes) add(modifier::recorded_bytes, colour, at, std::min(bytes, most));
      if (!writes_->words) continue;
      const bool has_words = bytes % record_places::word == 0;
      add(modifier::recorded_words, colour, has_words ? at : word_of(store, at),
          has_words ? bytes / unsigned{record_places::word} : 1);
    }
    instruction compare = like(store, opcode::setp, type::u64);
    compare.modifiers.add(modifier::eq);
    compare.results = {new_register(type::pred)};
    compare.sources = {writers, immediate(0)};
    const operand result = compare.results[0];
    add_pure(std::move(compare));
    return result;
  }

  // Returns the address of the word that contains a byte.
  operand word_of(const instruction& place, const operand& at) {
    const operand address = at.is_register() ? computed(place, opcode::add, type::u64,
                                                        {{operand::kind::reg, false, at.index, 0}, immediate(at.value)})
                                             : computed(place, opcode::mov, type::u64, {at});
    return computed(place, opcode::and_, type::b64, {address, immediate(~(record_places::word - 1))});
  }

  // A record of words is at (address >> 2) + description + the distance of the block's colour.
  [[nodiscard]] std::uint64_t description(bool of_words, recorded_use how) const {
    return where_.begin + (of_words ? where_.words_of(how, 0) - where_.base / record_places::word
                                    : where_.bytes_of(how, 0) - where_.base);
  }

  void record(instruction access, const recorded_access& how, std::size_t number) {
    if (how.records_itself) {
      access.description = number;
      code_.push_back(std::move(access));
      return;
    }
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
    const bool has_words = how.bytes % record_places::word == 0;
    const unsigned bytes = has_words ? how.bytes / record_places::word : how.bytes;
    if (how.use == recorded_use::read && writes_) guard(store, is_unwritten(store, at, how.bytes));
    store.modifiers.add(has_words ? modifier::recorded_words : modifier::recorded_bytes);
    store.modifiers.add(modifier::global);
    store.description = description(has_words, how.use);
    store.types[0] = bytes == 8 ? type::b64 : bytes == 4 ? type::b32 : bytes == 2 ? type::b16 : type::b8;
    const std::uint64_t all = 0x0101010101010101ULL * number;
    store.sources = {at, immediate(bytes == 8 ? all : all & ((std::uint64_t{1} << (8 * bytes)) - 1))};
    code_.push_back(std::move(store));
  }

  program& program_;
  function& function_;
  const record_places& where_;
  const std::optional<recorded_writes> writes_;
  std::vector<instruction> code_;
};

}  // namespace

std::vector<access_site> find_access_sites(const program& p) {
  std::vector<access_site> result;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint8_t> numbers;  // by file and line
  std::size_t next = 0;
  const auto new_number = [&next] { return static_cast<std::uint8_t>(1 + next++ % most_site_numbers); };
  for (const auto& f : p.functions) {
    const common_values values(*f);
    for (const instruction& i : f->code) {
      const auto access = recorded(p, i);
      if (!access) continue;
      access_site made{f.get(), &i, access->use};
      if (i.source_line == 0) {
        made.number = new_number();
      } else {
        std::uint8_t& known = numbers[{i.source_file, i.source_line}];
        if (known == 0) known = new_number();
        made.number = known;
      }
      made.value = values.stored_by(i);
      made.adds = i.kind == kind::atomic &&
                  i.modifiers.one_of(modifier::op_add, modifier::op_inc, modifier::op_dec) != modifier::count;
      result.push_back(made);
    }
  }
  return result;
}

site_pairs::site_pairs(const std::vector<access_site>& sites) {
  for (const access_site& each : sites) {
    known& k = numbers_[each.number];
    if (each.value) k.values.push_back(*each.value);
    if (each.use == recorded_use::atomic) k.replaces = k.replaces || !each.adds;
  }
}

bool site_pairs::race(recorded_use how, std::uint8_t number, recorded_use other_how, std::uint8_t other_number) const {
  using enum recorded_use;
  if (how > other_how) return race(other_how, other_number, how, number);
  const known &a = numbers_[number], &b = numbers_[other_number];
  if (how == read) return other_how == write || (other_how == atomic && !b.replaces);
  if (how != write || other_how == strong_read) return false;
  return other_how == atomic || std::none_of(a.values.begin(), a.values.end(), [&](std::uint64_t value) {
           return std::find(b.values.begin(), b.values.end(), value) != b.values.end();
         });
}

bool writes_unrecorded(const program& p) {
  return std::any_of(p.functions.begin(), p.functions.end(),
                     [](const auto& f) { return f->system_call == builtin::device_runtime; });
}

void record_accesses(program& p, const record_places& where, recorded_reads reads) {
  const std::vector<access_site> sites = find_access_sites(p);
  std::span<const access_site> left(sites);
  std::optional<recorded_writes> writes;
  if (reads == recorded_reads::first) writes = find_writes(p);
  for (const auto& f : p.functions) recorder(p, *f, where, writes).run(left);
  p.recorded = {where.base, where.size, where.begin, where.colour_stride(), reads == recorded_reads::first};
  // The texts are a part of the name under which compiled kernels are kept.
  p.texts.push_back(fmt::format("// words and bytes recorded: {:#x} {:#x} {:#x}{}\n", where.base, where.size,
                                where.begin, reads == recorded_reads::first ? ", first reads" : ""));
}

}  // namespace hpe::ptx
