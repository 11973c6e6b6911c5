#include "interpose/gpu/adopted/granule_marks.h"

namespace hpe::cuda_hooks {

granule_marks::granule_marks()
    : file_(os::create_memory_file("hpe-granules", granules / 8)), bits_(0, granules / 8, os::page_size()) {
  os::map_file(bits_.data(), granules / 8, os::page_protection::read_write, file_.get(), 0);
}

void granule_marks::set(std::uint64_t begin, std::uint64_t end, bool on) noexcept {
  for (std::uint64_t g = begin >> granule_bits; g < granules && g << granule_bits < end; ++g) {
    const std::uint64_t bit = std::uint64_t{1} << g % 64;
    on ? word(g).fetch_or(bit, std::memory_order_relaxed) : word(g).fetch_and(~bit, std::memory_order_relaxed);
  }
}

}  // namespace hpe::cuda_hooks
