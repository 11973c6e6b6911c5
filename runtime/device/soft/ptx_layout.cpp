#include "runtime/device/soft/ptx_layout.h"

#include <algorithm>

namespace hpe::device::soft {

namespace {

ptx_part part_of(const ptx::symbol& s) {
  if (s.where == ptx::symbol::space::constant) return ptx_part::constant;
  return s.is_managed ? ptx_part::managed : ptx_part::global;
}

}  // namespace

std::vector<std::uint64_t> ptx_layout::addresses(const ptx_addresses& parts) const {
  std::vector<std::uint64_t> result;
  result.reserve(places.size());
  for (const place& p : places) result.push_back(p.is_there ? parts[static_cast<std::size_t>(p.part)] + p.offset : 0);
  return result;
}

ptx_layout lay_out(const ptx::program& program) {
  ptx_layout result;
  for (const ptx::symbol& s : program.symbols) {
    ptx_layout::place& p = result.places.emplace_back();
    if (s.where == ptx::symbol::space::shared || s.size == 0) continue;
    p.is_there = true;
    p.part = part_of(s);
    std::size_t& end = result.bytes[static_cast<std::size_t>(p.part)];
    const std::size_t alignment = std::max<std::size_t>(s.alignment, 1);
    p.offset = (end + alignment - 1) / alignment * alignment;
    end = p.offset + s.size;
  }
  return result;
}

}  // namespace hpe::device::soft
