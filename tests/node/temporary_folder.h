#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace node_test {

/// A folder that is removed at the end; it must then be empty.
struct temporary_folder {
  temporary_folder() {
    if (::mkdtemp(name.data()) == nullptr) std::abort();
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() { std::filesystem::remove(name); }
  std::string name = (std::filesystem::temp_directory_path() / "hpe-exports-test-XXXXXX").string();
};

}  // namespace node_test
