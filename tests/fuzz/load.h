#pragma once

/// What hpe does with PTX before a kernel runs, for the targets of libFuzzer, with a limit of the memory that it takes.

#include <cstddef>
#include <string>
#include <vector>

namespace hpe::fuzz {

/// Parses and verifies the texts, assigns addresses, analyses and patches the kernels, and flattens them as the
/// compiler does. Returns also if the texts are refused with an error.
void load_ptx(std::vector<std::string> texts);

/// Ends the program if it allocates more memory meanwhile than `fixed_bytes` and `most_ratio` times the bytes of the
/// input.
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
