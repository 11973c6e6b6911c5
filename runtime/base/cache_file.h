#pragma once

/// Small results that a process stores in files for later processes of the same user.

#include <filesystem>
#include <optional>
#include <string>

namespace hpe {

/// A line of text that is stored under a key, in a file of its own. load() returns nullopt if the file is missing,
/// unreadable or malformed. If the file cannot be written, the text is not stored. Processes may read and write the
/// file at the same time: a reader never sees a part of a text.
class cache_file {
 public:
  /// folder: the result of own_cache_folder(); if it is empty, nothing is stored. name: the first part of the file's
  /// name.
  cache_file(std::filesystem::path folder, const std::string& name, std::string key);

  /// Identifies this machine and its NVIDIA driver, for keys of results that depend on both.
  [[nodiscard]] static std::string machine();

  [[nodiscard]] std::optional<std::string> load() const;
  void store(const std::string& text) const;

 private:
  std::filesystem::path folder_, file_;
  std::string key_;
};

}  // namespace hpe
