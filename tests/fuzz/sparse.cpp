// A libFuzzer target for files of matrices and graphs. The reader must read or refuse any input, and all entries that
// it reads must be inside the matrix.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "apps/sparse/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto read : {hpe::sparse::matrix_of, hpe::sparse::graph_of}) {
    try {
      const hpe::sparse::contents c = read(text, "input");
      for (const hpe::sparse::element& e : c.elements)
        if (e.row >= c.rows || e.column >= c.columns) std::abort();
      if (c.source >= c.rows) std::abort();
    } catch (const hpe::sparse::bad_input&) {
      // The reader refuses this input, which is correct.
    }
  }
  return 0;
}
