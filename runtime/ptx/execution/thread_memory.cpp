#include "runtime/ptx/execution/thread_memory.h"

#include <fmt/core.h>
#include <x86intrin.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <set>

#include "runtime/base/demangled.h"
#include "runtime/ptx/arithmetic/matrix.h"
#include "runtime/ptx/build/access_recording.h"

namespace hpe::ptx {

namespace {

std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

}  // namespace

std::uint64_t read_special(const block_context& block, std::uint32_t thread, special_register which) {
  const std::uint32_t lane = thread % 32;
  const std::uint64_t bit = std::uint64_t{1} << lane;
  const dimensions size = block.cluster == nullptr ? dimensions{} : block.cluster->size;
  using enum special_register;
  switch (which) {
    case tid_x: return block.tid_x[thread];
    case tid_y: return block.tid_y[thread];
    case tid_z: return block.tid_z[thread];
    case ntid_x: return block.ntid.x;
    case ntid_y: return block.ntid.y;
    case ntid_z: return block.ntid.z;
    case ctaid_x: return block.ctaid.x;
    case ctaid_y: return block.ctaid.y;
    case ctaid_z: return block.ctaid.z;
    case nctaid_x: return block.nctaid.x;
    case nctaid_y: return block.nctaid.y;
    case nctaid_z: return block.nctaid.z;
    case clusterid_x: return block.ctaid.x / size.x;
    case clusterid_y: return block.ctaid.y / size.y;
    case clusterid_z: return block.ctaid.z / size.z;
    case nclusterid_x: return block.nctaid.x / size.x;
    case nclusterid_y: return block.nctaid.y / size.y;
    case nclusterid_z: return block.nctaid.z / size.z;
    case cluster_ctaid_x: return block.ctaid.x % size.x;
    case cluster_ctaid_y: return block.ctaid.y % size.y;
    case cluster_ctaid_z: return block.ctaid.z % size.z;
    case cluster_nctaid_x: return size.x;
    case cluster_nctaid_y: return size.y;
    case cluster_nctaid_z: return size.z;
    case cluster_ctarank: return block.cluster_rank;
    case cluster_nctarank: return size.count();
    case is_explicit_cluster: return block.cluster != nullptr && block.cluster->is_explicit ? 1 : 0;
    case laneid: return lane;
    case warpid: return thread / 32;
    case nwarpid: return 64;
    case smid: return 0;
    case nsmid: return 1;
    case gridid: return block.configuration->number;
    case lanemask_eq: return bit;
    case lanemask_lt: return bit - 1;
    case lanemask_le: return 2 * bit - 1;
    case lanemask_gt: return 0xffffffffU & ~(2 * bit - 1);
    case lanemask_ge: return 0xffffffffU & ~(bit - 1);
    case clock: return static_cast<std::uint32_t>(__rdtsc());
    case clock_hi: return __rdtsc() >> 32;
    case clock64: return __rdtsc();
    case globaltimer: return nanoseconds();
    case globaltimer_lo: return static_cast<std::uint32_t>(nanoseconds());
    case globaltimer_hi: return nanoseconds() >> 32;
    case envreg1: return reinterpret_cast<std::uint64_t>(block.configuration->workspace) >> 32;
    case envreg2: return static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(block.configuration->workspace));
    case total_smem_size: return block.dynamic_shared_offset + block.dynamic_shared_size;
    case dynamic_smem_size: return block.dynamic_shared_size;
    default: return 0;
  }
}

std::uint64_t address_of_symbol(const block_context& block, std::uint32_t symbol) {
  const ptx::symbol& s = block.configuration->image->program().symbols[symbol];
  if (s.where != ptx::symbol::space::shared) return block.configuration->image->address_of(symbol);
  return s.is_dynamic_shared ? block.dynamic_shared_offset : s.shared_offset;
}

bool lies_in_shared(const block_context& block, std::uint64_t address) {
  return address >= reinterpret_cast<std::uint64_t>(block.shared) && address < block.shared_end();
}

bool lies_in_local(const block_context& block, std::uint32_t thread, std::uint64_t address) {
  return address - (reinterpret_cast<std::uint64_t>(block.local) + thread * block.local_stride) < block.local_stride;
}

const block_context* owner_of_shared(const block_context& block, std::uint64_t address) {
  if (lies_in_shared(block, address)) return &block;
  if (block.cluster == nullptr) return nullptr;
  for (const block_context* const other : block.cluster->blocks)
    if (lies_in_shared(*other, address)) return other;
  return nullptr;
}

namespace {

constexpr unsigned rank_shift = 24;
static_assert(most_shared_memory == 1 << rank_shift);

}  // namespace

std::uint32_t address_in_cluster(std::uint32_t rank, std::uint64_t offset) {
  return (rank + 1) << rank_shift | static_cast<std::uint32_t>(offset);
}

cluster_address split_cluster_address(const block_context& block, std::uint64_t address) {
  const auto bits = static_cast<std::uint32_t>(address);
  const std::uint32_t tag = bits >> rank_shift, offset = bits & ((1U << rank_shift) - 1);
  if (tag == 0) return {&block, offset};
  if (block.cluster == nullptr) return {tag == 1 ? &block : nullptr, offset};
  return {tag <= block.cluster->blocks.size() ? block.cluster->blocks[tag - 1] : nullptr, offset};
}

std::uint8_t* reach(const block_context& block, std::uint32_t thread, address_window window, std::uint64_t address,
                    std::uint64_t bytes) {
  if (window != address_window::generic) {
    cluster_address at{&block, static_cast<std::uint32_t>(address)};
    if (window == address_window::cluster_shared) at = split_cluster_address(block, address);
    if (at.owner == nullptr) return nullptr;
    const std::uint64_t size = std::uint64_t{at.owner->dynamic_shared_offset} + at.owner->dynamic_shared_size;
    if (at.offset > size || bytes > size - at.offset) return nullptr;
    return at.owner->shared + at.offset;
  }
  auto* const memory = reinterpret_cast<std::uint8_t*>(address);
  if (owner_of_shared(block, address) != nullptr || lies_in_local(block, thread, address)) return memory;
  constexpr std::uint64_t workspace_bytes = 16;  // the size of launch_configuration::workspace
  const launch_configuration& c = *block.configuration;
  if (address - reinterpret_cast<std::uint64_t>(block.parameters) < c.kernel->formals_size ||
      address - reinterpret_cast<std::uint64_t>(c.workspace) < workspace_bytes)
    return memory;
  return !c.surroundings->may_touch || c.surroundings->may_touch(address, bytes) ? memory : nullptr;
}

namespace {

// Whether a write of one of the bytes has been recorded that the block may know (recorded_reads::first).
bool is_written(const block_context& block, const record_places& places, std::uint64_t offset, std::uint64_t bytes) {
  const auto any = [](std::uint64_t begin, std::uint64_t end) {
    const auto* const from = reinterpret_cast<const std::uint8_t*>(begin);  // NOLINT(performance-no-int-to-ptr)
    return std::any_of(from, from + (end - begin), [](std::uint8_t number) { return number != 0; });
  };
  const std::uint64_t own = block.record_colour / places.colour_stride();
  for (std::uint64_t colour = own == ordered_colour ? 0 : own; colour <= own; ++colour) {
    const std::uint64_t words = places.begin + places.words_of(recorded_use::write, colour);
    const std::uint64_t single = places.begin + places.bytes_of(recorded_use::write, colour);
    if (any(words + offset / record_places::word, words + (offset + bytes - 1) / record_places::word + 1)) return true;
    if (any(single + offset, single + offset + bytes)) return true;
  }
  return false;
}

}  // namespace

void record_range(const block_context& block, const instruction& i, const void* at, std::uint64_t bytes, bool writes) {
  if (i.description == 0) return;
  const recorded_addresses& r = block.configuration->image->program().recorded;
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(at) - r.base;
  if (bytes == 0 || offset >= r.size || bytes > r.size - offset) return;
  const record_places places{r.base, r.size, r.begin};
  const recorded_use use = writes ? recorded_use::write : recorded_use::read;
  const std::uint64_t begin = r.begin + block.record_colour;
  if (!writes && r.only_first_reads && is_written(block, places, offset, bytes)) return;
  const bool has_words = offset % record_places::word == 0 && bytes % record_places::word == 0;
  const std::uint64_t place =
      has_words ? places.words_of(use, 0) + offset / record_places::word : places.bytes_of(use, 0) + offset;
  std::memset(reinterpret_cast<void*>(begin + place), static_cast<int>(i.description),
              has_words ? bytes / record_places::word : bytes);
}

void record_fragment(const block_context& block, const instruction& i, std::uint32_t lane, const void* matrix,
                     std::uint64_t stride) {
  if (i.description == 0) return;
  const unsigned bytes = bytes_of(part_of(i, *matrix_shape_of(i)).element);
  for (const std::uint64_t offset : fragment_offsets(i, lane, stride))
    record_range(block, i, static_cast<const std::uint8_t*>(matrix) + offset, bytes, i.kind == kind::store);
}

bool is_shared_access(const instruction& i) { return window_of(i) == address_window::own_shared; }

address_window window_of(const instruction& i) {
  if (i.has(modifier::shared) || i.has(modifier::shared_cta)) return address_window::own_shared;
  return i.has(modifier::shared_cluster) ? address_window::cluster_shared : address_window::generic;
}

std::uint64_t convert_address(const block_context& block, const instruction& i, std::uint64_t address) {
  const bool shared = is_shared_access(i), in_cluster = i.has(modifier::shared_cluster);
  if (i.op == opcode::cvta) {
    if (!shared && !in_cluster) return address;
    if (i.has(modifier::to)) {
      // A pointer into the shared memory of another block becomes an address in shared::cluster.
      const block_context* const owner = owner_of_shared(block, address);
      if (owner == nullptr || owner == &block) return address - reinterpret_cast<std::uint64_t>(block.shared);
      return address_in_cluster(owner->cluster_rank, address - reinterpret_cast<std::uint64_t>(owner->shared));
    }
    if (shared) return address + reinterpret_cast<std::uint64_t>(block.shared);
    const cluster_address at = split_cluster_address(block, address);
    return at.owner == nullptr ? 0 : reinterpret_cast<std::uint64_t>(at.owner->shared) + at.offset;
  }
  const bool local = lies_in_local(block, block.current, address);
  if (shared) return lies_in_shared(block, address) ? 1 : 0;
  if (in_cluster) return owner_of_shared(block, address) != nullptr ? 1 : 0;
  if (i.has(modifier::local)) return local ? 1 : 0;
  const program& p = block.configuration->image->program();
  bool constant = false;
  for (std::uint32_t n = 0; n < p.symbols.size(); ++n)
    constant |= p.symbols[n].where == symbol::space::constant &&
                address - block.configuration->image->address_of(n) < p.symbols[n].size;
  if (i.has(modifier::constant)) return constant ? 1 : 0;
  const bool parameter =
      address - reinterpret_cast<std::uint64_t>(block.parameters) < block.configuration->kernel->formals_size;
  if (i.has(modifier::param) || i.has(modifier::param_entry)) return parameter ? 1 : 0;
  return owner_of_shared(block, address) == nullptr && !local && !constant && !parameter ? 1 : 0;
}

namespace {

// Returns the name of a variable in the source code. _ZZ6kernelPiE4tile is "kernel(int*)::tile" and becomes "tile". A
// name without _Z is not mangled, even a name such as "s", which is also the mangled name of a type.
std::string source_name(const std::string& name) {
  const std::string whole = demangled(name);
  const std::size_t colons = name.starts_with("_Z") ? whole.rfind("::") : std::string::npos;
  return colons == std::string::npos ? whole : whole.substr(colons + 2);
}

// Returns the shared variables that a kernel and the functions it calls by name use. Other variables, used by other
// kernels, may have the same offsets.
std::set<std::uint32_t> shared_variables_of(const program& p, const function& kernel) {
  std::set<std::uint32_t> variables;
  std::set<const function*> seen{&kernel};
  for (std::vector<const function*> open{&kernel}; !open.empty();) {
    const function& f = *open.back();
    open.pop_back();
    for (const instruction& i : f.code) {
      for (const operand& o : i.sources)
        if (o.what == operand::kind::symbol && p.symbols[o.index].where == symbol::space::shared)
          variables.insert(o.index);
      if (i.kind != kind::call || !i.sources.empty()) continue;
      const function* const callee = p.functions[i.callee].get();
      if (seen.insert(callee).second) open.push_back(callee);
    }
  }
  return variables;
}

}  // namespace

std::string name_of_shared(const program& p, const function& kernel, std::uint64_t offset) {
  const symbol* found = nullptr;
  std::uint64_t place = 0;
  for (const std::uint32_t n : shared_variables_of(p, kernel)) {
    const symbol& s = p.symbols[n];
    const std::uint64_t begin = s.is_dynamic_shared ? (kernel.shared_size + 15) / 16 * 16 : s.shared_offset;
    if (begin > offset || (found != nullptr && begin < place)) continue;
    found = &s;
    place = begin;
  }
  if (found == nullptr) return {};
  return offset == place ? source_name(found->name) : fmt::format("{} + {}", source_name(found->name), offset - place);
}

std::string place_of(const program& p, const function& f, const instruction& i) {
  std::string text = fmt::format("PTX line {}, '{}'", i.line, p.text_of(f, i));
  if (i.source_line != 0) text += fmt::format(", {}:{}", p.files[i.source_file], i.source_line);
  return text;
}

std::string place_of(const block_context& block, const instruction& i) {
  const launch_configuration& c = *block.configuration;
  return place_of(c.image->program(), *c.kernel, i);
}

}  // namespace hpe::ptx
