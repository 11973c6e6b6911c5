#include "runtime/ptx/thread_memory.h"

#include <fmt/core.h>
#include <x86intrin.h>

#include <bit>
#include <chrono>

#include "runtime/ptx/texture.h"

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
  using enum special_register;
  switch (which) {
    case tid_x: return block.tid_x[thread];
    case tid_y: return block.tid_y[thread];
    case tid_z: return block.tid_z[thread];
    case ntid_x: return block.ntid.x;
    case ntid_y: return block.ntid.y;
    case ntid_z: return block.ntid.z;
    case ctaid_x:
    case clusterid_x: return block.ctaid.x;
    case ctaid_y:
    case clusterid_y: return block.ctaid.y;
    case ctaid_z:
    case clusterid_z: return block.ctaid.z;
    case nctaid_x:
    case nclusterid_x: return block.nctaid.x;
    case nctaid_y:
    case nclusterid_y: return block.nctaid.y;
    case nctaid_z:
    case nclusterid_z: return block.nctaid.z;
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
    case cluster_nctaid_x:
    case cluster_nctaid_y:
    case cluster_nctaid_z:
    case cluster_nctarank: return 1;
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

bool is_shared_access(const instruction& i) { return i.has(modifier::shared) || i.has(modifier::shared_cta); }

std::uint64_t convert_address(const block_context& block, const instruction& i, std::uint64_t address) {
  const bool shared = is_shared_access(i);
  if (i.op == opcode::cvta) {
    if (!shared) return address;
    const auto base = reinterpret_cast<std::uint64_t>(block.shared);
    return i.has(modifier::to) ? address - base : address + base;
  }
  const bool local = lies_in_local(block, block.current, address);
  if (shared) return lies_in_shared(block, address) ? 1 : 0;
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
  return !lies_in_shared(block, address) && !local && !constant && !parameter ? 1 : 0;
}

std::array<std::uint32_t, 4> read_texture_at(block_context& block, const instruction& i, std::uint64_t handle,
                                             std::uint64_t x, std::uint64_t y) {
  if (handle == 0) {
    block.record(fault::reason::address, handle, "a texture object of 0");
    block.stop();
  }
  const texture& t = *reinterpret_cast<const texture*>(handle);
  if (i.types[1] == type::f32)
    return read_texture(t, std::bit_cast<float>(static_cast<std::uint32_t>(x)),
                        std::bit_cast<float>(static_cast<std::uint32_t>(y)));
  return fetch_texture(t, static_cast<std::int32_t>(x), static_cast<std::int32_t>(y));
}

std::string place_of(const program& p, const function& f, const instruction& i) {
  std::string text = fmt::format("PTX line {}, '{}'", i.line, p.text_of(f, i));
  if (i.source_line != 0) text += fmt::format(", {}:{}", p.files[i.source_file], i.source_line);
  return text;
}

}  // namespace hpe::ptx
