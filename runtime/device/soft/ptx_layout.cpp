#include "runtime/device/soft/ptx_layout.h"

#include <algorithm>

namespace hpe::device::soft {

std::vector<std::uint64_t> ptx_layout::addresses(std::uintptr_t globals, std::uintptr_t constants) const {
  std::vector<std::uint64_t> result;
  result.reserve(places.size());
  for (const place& p : places)
    result.push_back(p.is_there ? (p.part == ptx_part::global ? globals : constants) + p.offset : 0);
  return result;
}

ptx_layout lay_out(const ptx::program& program) {
  ptx_layout result;
  for (const ptx::symbol& s : program.symbols) {
    ptx_layout::place& p = result.places.emplace_back();
    if (s.where == ptx::symbol::space::shared || s.size == 0) continue;
    p.is_there = true;
    p.part = s.where == ptx::symbol::space::constant ? ptx_part::constant : ptx_part::global;
    std::size_t& end = p.part == ptx_part::global ? result.global_bytes : result.constant_bytes;
    const std::size_t alignment = std::max<std::size_t>(s.alignment, 1);
    p.offset = (end + alignment - 1) / alignment * alignment;
    end = p.offset + s.size;
  }
  return result;
}

}  // namespace hpe::device::soft
