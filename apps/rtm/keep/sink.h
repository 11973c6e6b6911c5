#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace hpe::rtm {

/// A store of bytes outside device memory. Pointers may point to hpe memory, which libc's calls accept (docs/files.md).
/// Only one thread at a time may use a sink. Failures throw std::runtime_error.
class sink {
 public:
  virtual ~sink() = default;
  virtual void write(const void* from, std::size_t bytes, std::size_t at) = 0;
  virtual void read(void* to, std::size_t bytes, std::size_t at) = 0;
};

/// Returns a sink that is a file without a name in a folder, opened with O_DIRECT if the file system supports it.
/// Addresses, sizes and offsets must be multiples of `sector`. Reserves the space if the file system can do so. Throws
/// bad_input if the folder cannot be written or has too little space.
[[nodiscard]] std::unique_ptr<sink> file_in(const std::string& folder, std::size_t bytes);

/// Returns a sink in ordinary memory.
[[nodiscard]] std::unique_ptr<sink> host_memory(std::size_t bytes);

}  // namespace hpe::rtm
