#include <emmintrin.h>

#include <cstdint>
#include <cstring>

#include "runtime/os/copy.h"

namespace hpe::os {

namespace {

// The least number of bytes that are copied past the caches. For fewer bytes, the fence takes more time than the stores
// save.
constexpr std::size_t smallest = std::size_t{1} << 10;
constexpr std::size_t line = 64;
constexpr std::size_t ahead = 2048;

}  // namespace

void copy_past_caches(void* destination, const void* source, std::size_t bytes) noexcept {
  if (bytes < smallest) {
    std::memcpy(destination, source, bytes);
    return;
  }
  auto* to = static_cast<char*>(destination);
  const auto* from = static_cast<const char*>(source);
  const std::size_t head = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
  std::memcpy(to, from, head);
  to += head;
  from += head;
  const std::size_t lines = (bytes - head) / line;
  for (std::size_t i = 0; i < lines; ++i, to += line, from += line) {
    _mm_prefetch(from + ahead, _MM_HINT_T0);  // a hint; the address may lie past the end
    for (std::size_t k = 0; k < line; k += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
  }
  _mm_sfence();  // before another thread or device can learn that the copy is complete
  std::memcpy(to, from, (bytes - head) % line);
}

}  // namespace hpe::os
