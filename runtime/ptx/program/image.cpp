#include "runtime/ptx/program/image.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "runtime/base/error.h"

namespace hpe::ptx {

image::image(std::shared_ptr<const ptx::program> program, const allocator& allocate)
    : program_(std::move(program)), addresses_(program_->symbols.size(), 0) {
  for (std::uint32_t n = 0; n < program_->symbols.size(); ++n) {
    const symbol& s = program_->symbols[n];
    if (s.where == symbol::space::shared || s.size == 0) continue;
    addresses_[n] = reinterpret_cast<std::uint64_t>(allocate(s.size, s.alignment));
  }
  for (std::uint32_t n = 0; n < program_->symbols.size(); ++n) {
    if (addresses_[n] == 0) continue;
    const std::vector<std::uint8_t> bytes = contents_of(n);
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    std::memset(reinterpret_cast<void*>(addresses_[n]), 0, program_->symbols[n].size);
    if (!bytes.empty())
      std::memcpy(reinterpret_cast<void*>(addresses_[n]), bytes.data(),
                  bytes.size());  // NOLINT(performance-no-int-to-ptr)
  }
}

image::image(std::shared_ptr<const ptx::program> program, std::vector<std::uint64_t> addresses)
    : program_(std::move(program)), addresses_(std::move(addresses)) {
  HPE_INVARIANT(addresses_.size() == program_->symbols.size());
}

const function* image::function_at(std::uint64_t address) const {
  const std::uint64_t number = (address - first_function) / function_step;
  const bool is_one = address >= first_function && number < program_->functions.size() &&
                      address == address_of_function(static_cast<std::uint32_t>(number));
  return is_one ? program_->functions[number].get() : nullptr;
}

std::vector<std::uint8_t> image::contents_of(std::uint32_t symbol) const {
  const ptx::symbol& s = program_->symbols[symbol];
  std::vector<std::uint8_t> bytes = s.initial;
  for (const ptx::symbol::relocation& r : s.relocations)
    bytes.resize(std::max<std::size_t>(bytes.size(), std::size_t{r.offset} + r.size));
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
    std::memcpy(bytes.data() + r.offset, &value, r.size);
  }
  return bytes;
}

}  // namespace hpe::ptx
