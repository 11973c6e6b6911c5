// A libFuzzer target for PNG pictures. The reader must read or refuse any input. A picture that it reads must have as
// many values as its size demands.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "apps/command_line/program.h"
#include "apps/pictures/picture.h"
#include "tests/fuzz/as_file.h"

/// Replaces the applications' check_room, which needs libhpe. Refuses pictures that are too large for the memory of a
/// fuzzer.
void hpe::command_line::check_room(const std::string& what, const demand& need, int /*devices*/,
                                   const std::filesystem::path& /*root*/) {
  if (need.on_host > 0x1p26) throw bad_input(what + " is too large");
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const hpe::fuzz::input_file file("input.png");
  const std::string path = file.with(data, size);
  for (const bool colour : {false, true}) {
    try {
      const hpe::pictures::pixels p = hpe::pictures::read_png(path, colour);
      const auto wanted = static_cast<std::size_t>(p.width * p.height * p.channels);
      if (wanted == 0 || p.values.size() != wanted) std::abort();
    } catch (const hpe::command_line::bad_input&) {
      // The reader may refuse any input.
    }
  }
  return 0;
}
