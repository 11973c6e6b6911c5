// libFuzzer: containers of nvcc. For any bytes, hpe reads them and decompresses their PTX, or refuses them with an
// error.

#include "runtime/ptx/files/fat_binary.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hpe/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A wrapper has a pointer to its container, which only a program's own registration can give.
  constexpr std::uint32_t wrapper_magic = 0x466243b1;
  if (size >= sizeof wrapper_magic && std::memcmp(data, &wrapper_magic, sizeof wrapper_magic) == 0) return -1;
  // The exact size, so that AddressSanitizer sees a read behind the end.
  const std::vector<std::uint8_t> bytes(data, data + size);
  try {
    static_cast<void>(hpe::ptx::choose_ptx(hpe::ptx::read_fat_binary(bytes.data(), bytes.size())));
  } catch (const hpe::error&) {
    // Refused, as it should be.
  }
  return 0;
}
