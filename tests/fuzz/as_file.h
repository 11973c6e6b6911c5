#pragma once

/// Writes libFuzzer's inputs to files, for readers that open files.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/temporary_folder.h"

namespace hpe::fuzz {

/// A file in its own folder; both are removed when the process ends.
class input_file {
 public:
  explicit input_file(const std::string& name) : path_(folder_ / name) {}

  /// Writes these bytes to the file and returns its path.
  std::string with(const std::uint8_t* data, std::size_t size) const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    if (!file.flush()) std::abort();
    return path_;
  }

 private:
  const temporary_folder folder_;
  const std::string path_;
};

}  // namespace hpe::fuzz
