#pragma once

/// What a program sends to another one to name exported bytes: plain data, 64 bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "hpe/node.h"

namespace hpe::node {

/// Names one process among all that ever were: random, chosen when it first shares something.
struct process_key {
  std::uint64_t words[2] = {0, 0};

  friend bool operator==(const process_key&, const process_key&) = default;
  friend bool operator<(const process_key& a, const process_key& b) noexcept {
    return a.words[0] != b.words[0] ? a.words[0] < b.words[0] : a.words[1] < b.words[1];
  }
};

/// A number that nobody guesses, and never 0. Throws HPE_ERROR_SYSTEM.
[[nodiscard]] std::uint64_t random_number();

struct handle {
  process_key process;
  std::uint32_t entry = 0;  ///< in the process's export table
  std::uint64_t token = 0;  ///< of this one export; random
};

[[nodiscard]] hpeExport encode(const handle& h) noexcept;

/// Empty for bytes that encode() did not give. What passes may still be stale, or made up by somebody who knows the
/// form.
[[nodiscard]] std::optional<handle> decode(const hpeExport& e) noexcept;

}  // namespace hpe::node
