#pragma once

/// A handle of exported bytes, which programs send to each other: plain data, 64 bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "hpe/node.h"

namespace hpe::node {

/// A random number that identifies one process among all past and present processes. It is chosen when the process
/// first shares memory.
struct process_key {
  std::uint64_t words[2] = {0, 0};

  friend bool operator==(const process_key&, const process_key&) = default;
  friend bool operator<(const process_key& a, const process_key& b) noexcept {
    return a.words[0] != b.words[0] ? a.words[0] < b.words[0] : a.words[1] < b.words[1];
  }
};

/// Returns a random number that cannot be guessed and is never 0. Throws HPE_ERROR_SYSTEM.
[[nodiscard]] std::uint64_t random_number();

struct handle {
  process_key process;
  std::uint32_t entry = 0;  ///< index in the process's export table
  std::uint64_t token = 0;  ///< random, different for each export
};

[[nodiscard]] hpeExport encode(const handle& h) noexcept;

/// Returns nullopt for bytes that encode() did not produce. A decoded handle may still be stale, or forged by someone
/// who knows the layout.
[[nodiscard]] std::optional<handle> decode(const hpeExport& e) noexcept;

}  // namespace hpe::node
