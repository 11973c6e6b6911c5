// A libFuzzer target for PTX. For any text, alone and linked with itself, hpe either parses it and analyses, patches
// and flattens its kernels, or refuses it with an error.

#include <cstddef>
#include <cstdint>

#include "tests/fuzz/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const hpe::fuzz::memory_limit limit(size);
  const std::string text(reinterpret_cast<const char*>(data), size);
  hpe::fuzz::load_ptx({text});
  hpe::fuzz::load_ptx({text, text});
  return 0;
}
