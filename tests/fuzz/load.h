#pragma once

/// The steps from PTX text to a kernel that can be compiled, for the targets of libFuzzer; and a limit on the memory
/// that these steps use.

#include <cstddef>
#include <string>
#include <vector>

namespace hpe::fuzz {

/// Parses and verifies the texts, assigns addresses, analyses and patches the kernels, and flattens them as the
/// compiler does. Also returns normally if hpe refuses the texts with an error.
void load_ptx(std::vector<std::string> texts);

/// While an object exists, the program may allocate `fixed_bytes` bytes plus `most_ratio` times the size of the input.
/// If the program allocates more, it is aborted with a message.
class memory_limit {
 public:
  static constexpr std::size_t fixed_bytes = 128 << 20;
  static constexpr std::size_t most_ratio = 8192;

  explicit memory_limit(std::size_t input_bytes);
  memory_limit(const memory_limit&) = delete;
  memory_limit& operator=(const memory_limit&) = delete;
  ~memory_limit();
};

}  // namespace hpe::fuzz
