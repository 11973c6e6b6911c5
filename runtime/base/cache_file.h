#pragma once

/// Small results that processes of this user keep for later ones.

#include <filesystem>
#include <optional>
#include <string>

namespace hpe {

/// A line of text that is kept under a key, in a file of its own. An unreadable or malformed file counts as none. If
/// the file cannot be written, the text is not kept. Thread-safe between processes: a reader sees a whole text.
class cache_file {
 public:
  /// folder: as own_cache_folder() returns it; empty: nothing is kept. name: the first part of the file's name.
  cache_file(std::filesystem::path folder, const std::string& name, std::string key);

  /// This machine and its NVIDIA driver, for keys of results that depend on them.
  [[nodiscard]] static std::string machine();

  [[nodiscard]] std::optional<std::string> load() const;
  void store(const std::string& text) const;

 private:
  std::filesystem::path folder_, file_;
  std::string key_;
};

}  // namespace hpe
