// libFuzzer: containers of nvcc, and files with such containers. For any bytes, hpe reads them, decompresses their PTX
// and loads it, or refuses them with an error.

#include "runtime/ptx/files/fat_binary.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hpe/error.hpp"
#include "runtime/ptx/files/device_code.h"
#include "tests/fuzz/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const hpe::fuzz::memory_limit limit(size);
  // The exact size, so that AddressSanitizer sees a read behind the end.
  const std::vector<std::uint8_t> bytes(data, data + size);
  try {
    hpe::fuzz::load_ptx({hpe::ptx::choose_ptx(hpe::ptx::read_fat_binary(bytes.data(), bytes.size())).text});
  } catch (const hpe::error&) {
    // Refused, as it should be.
  }
  try {
    const hpe::ptx::file_bytes content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const auto& texts : hpe::ptx::device_code_in(content, "input").modules) hpe::fuzz::load_ptx(texts);
  } catch (const hpe::error&) {
    // Likewise.
  }
  return 0;
}
