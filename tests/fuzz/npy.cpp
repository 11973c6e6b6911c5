// A libFuzzer target for NumPy's files. The reader must read or refuse any input, and must read no more elements than
// the file contains.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "apps/files/element_file.h"
#include "tests/fuzz/as_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const hpe::fuzz::input_file file("input.npy");
  try {
    const hpe::files::description d = hpe::files::describe(file.with(data, size));
    if (!d.npy || d.begin + d.bytes != size) std::abort();
    for (const std::size_t element : {4, 8, 16}) try {
        const std::uint64_t count = d.elements(element);
        if (count * element != d.bytes) std::abort();
        std::vector<std::byte> all(d.bytes);
        hpe::files::read(d, all.data());
      } catch (const hpe::files::bad_input&) {
        // The file's elements have another size.
      }
  } catch (const hpe::files::bad_input&) {
    // The reader refuses this input, which is correct.
  }
  return 0;
}
