// mincore fails with ENOMEM if any page of a range is unmapped. Therefore mapped_bytes halves the range after each
// failure, until it has found the first unmapped page.

#include "runtime/ptx/files/mapped_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace hpe::ptx {

std::size_t mapped_bytes(const void* address, std::size_t most) {
  constexpr std::uintptr_t page = 4096;
  std::array<unsigned char, 1024> states{};
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  if (begin > UINTPTR_MAX - page) return 0;
  const std::uintptr_t end = begin + std::min(most, UINTPTR_MAX - page - begin);
  std::uintptr_t at = begin & ~(page - 1);
  for (std::uintptr_t pages = states.size(); at < end && pages > 0;) {
    pages = std::min(pages, (end - at + page - 1) / page);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): `at` is the address of a page
    if (::mincore(reinterpret_cast<void*>(at), pages * page, states.data()) == 0) {
      at += pages * page;
    } else {
      pages /= 2;
    }
  }
  return std::min(std::max(at, begin), end) - begin;
}

}  // namespace hpe::ptx
