#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hpe::scan {

/// A file of lines "value key" with the results of searches. If the path is empty, no result is stored. A file that
/// cannot be read or written is ignored; the search is then repeated.
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
