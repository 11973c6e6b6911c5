#pragma once

/// Writes libFuzzer's inputs to files, for readers that open files.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace hpe::fuzz {

/// A file in its own folder; both are removed when the process ends.
class input_file {
 public:
  explicit input_file(const std::string& name) {
    std::string folder = std::filesystem::temp_directory_path() / "hpe-fuzz-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) std::abort();
    folder_ = folder;
    path_ = folder_ / name;
  }
  input_file(const input_file&) = delete;
  input_file& operator=(const input_file&) = delete;
  ~input_file() { std::filesystem::remove_all(folder_); }

  /// Writes these bytes to the file and returns its path.
  std::string with(const std::uint8_t* data, std::size_t size) const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    if (!file.flush()) std::abort();
    return path_;
  }

 private:
  std::filesystem::path folder_, path_;
};

}  // namespace hpe::fuzz
