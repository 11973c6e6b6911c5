// A libFuzzer target for nvcc's containers of device code, and for files that contain such containers. For any bytes,
// hpe either reads them, decompresses their PTX and loads the PTX, or refuses them with an error.

#include "runtime/ptx/files/fat_binary.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hpe/error.hpp"
#include "runtime/ptx/files/device_code.h"
#include "tests/fuzz/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const hpe::fuzz::memory_limit limit(size);
  // A copy of the exact size, so that AddressSanitizer notices a read beyond the end.
  const std::vector<std::uint8_t> bytes(data, data + size);
  try {
    hpe::fuzz::load_ptx({hpe::ptx::choose_ptx(hpe::ptx::read_fat_binary(bytes.data(), bytes.size())).text});
  } catch (const hpe::error&) {
    // hpe refuses this input, which is correct.
  }
  try {
    const hpe::ptx::file_bytes content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const auto& texts : hpe::ptx::device_code_in(content, "input").modules) hpe::fuzz::load_ptx(texts);
  } catch (const hpe::error&) {
    // hpe refuses this input, which is correct.
  }
  return 0;
}
