#include "runtime/ptx/image.h"

#include <bit>
#include <cstring>

namespace hpe::ptx {

image::image(std::shared_ptr<const ptx::program> program, const allocator& allocate)
    : program_(std::move(program)), addresses_(program_->symbols.size(), 0) {
  for (std::uint32_t n = 0; n < program_->symbols.size(); ++n) {
    const symbol& s = program_->symbols[n];
    if (s.where == symbol::space::shared || s.size == 0) continue;
    addresses_[n] = reinterpret_cast<std::uint64_t>(allocate(s.size, s.alignment));
  }
  for (std::uint32_t n = 0; n < program_->functions.size(); ++n) functions_.insert(address_of_function(n));
  for (std::uint32_t n = 0; n < program_->symbols.size(); ++n) initialise(n);
}

const function* image::function_at(std::uint64_t address) const {
  return functions_.contains(address) ? reinterpret_cast<const function*>(address) : nullptr;
}

void image::initialise(std::uint32_t symbol) {
  if (addresses_[symbol] == 0) return;
  const ptx::symbol& s = program_->symbols[symbol];
  auto* const bytes = reinterpret_cast<std::uint8_t*>(addresses_[symbol]);
  std::memset(bytes, 0, s.size);
  if (!s.initial.empty()) std::memcpy(bytes, s.initial.data(), s.initial.size());
  for (const ptx::symbol::relocation& r : s.relocations) {
    std::uint64_t value = 0;
    if (r.is_function) {
      value = address_of_function(r.target);
    } else {
      const ptx::symbol& target = program_->symbols[r.target];
      value = target.where == ptx::symbol::space::shared ? target.shared_offset : addresses_[r.target];
    }
    value += r.addend;
    if (r.mask != ~std::uint64_t{0}) value = (value & r.mask) >> std::countr_zero(r.mask);
    std::memcpy(bytes + r.offset, &value, r.size);
  }
}

}  // namespace hpe::ptx
