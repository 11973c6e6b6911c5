// A libFuzzer target for Spatter's JSON patterns. The reader must read or refuse any input, and no pattern may have
// more indices than allowed.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "apps/gather/index_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t most = 1 << 16;
  try {
    const auto indices = hpe::gather::indices_of_json({reinterpret_cast<const char*>(data), size}, 0, "input", most);
    if (indices.empty() || indices.size() > most) std::abort();
  } catch (const hpe::gather::bad_input&) {
    // The reader refuses this input, which is correct.
  }
  return 0;
}
