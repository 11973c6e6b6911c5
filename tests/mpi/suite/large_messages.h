#pragma once

/// Common parts of the tests of large messages.

#include <cstdlib>
#include <optional>

#include "tests/mpi/ranks.h"

namespace large_messages_tests {

// The number of words of a message: 2.8 MB, which is not a multiple of any chunk size.
inline constexpr int n = 700'001;
inline constexpr int tag = 9;
inline const MPI_Comm world = MPI_COMM_WORLD;

inline std::vector<std::byte> numbered(std::size_t words, word first) {
  std::vector<std::byte> result(words * sizeof(word));
  for (std::size_t i = 0; i < words; ++i) {
    const word w = first + word(i) * 2654435761U;
    std::memcpy(result.data() + i * sizeof w, &w, sizeof w);
  }
  return result;
}

/// Whether hpe sends each message as a whole, instead of in chunks or by direct copies.
inline bool whole_messages() {
  const char* const option = std::getenv("HPE_MPI_PIPELINE");
  return option != nullptr && std::strcmp(option, "off") == 0;
}

inline int words_in(const MPI_Status& status) {
  int count = 0;
  MPI_Get_count(&status, MPI_UINT32_T, &count);
  return count;
}

// A buffer in ordinary memory or in hpe memory.
class either {
 public:
  either(const std::vector<std::byte>& content, bool on_device)
      : host_(content),
        device_(on_device ? std::optional<device_bytes>(std::in_place, content, owner::device) : std::nullopt) {}
  [[nodiscard]] std::byte* data() const { return device_ ? device_->data() : host_.data(); }
  [[nodiscard]] std::vector<std::byte> content() const { return device_ ? device_->content() : host_; }

 private:
  mutable std::vector<std::byte> host_;
  std::optional<device_bytes> device_;
};

}  // namespace large_messages_tests
