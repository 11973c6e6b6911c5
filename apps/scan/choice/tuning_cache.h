#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hpe::scan {

/// A file with the results of searches, as lines "value key". If the path is empty, no result is stored. If the file
/// cannot be read or written, find() returns nullopt and keep() has no effect, so the next run searches again.
class tuning_cache {
 public:
  explicit tuning_cache(std::string path) : path_(std::move(path)) {}

  /// Returns the stored value of a key, or nullopt. A key is a single line.
  [[nodiscard]] std::optional<std::uint64_t> find(const std::string& key) const;
  /// Stores a value. Replaces the file as a whole, so that other processes find either the old or the new file.
  void keep(const std::string& key, std::uint64_t value) const;

 private:
  std::string path_;
};

}  // namespace hpe::scan
