#pragma once

/// Support for the tests of file calls: memory of every kind with known contents, and files of every kind.

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hpe/hpe.hpp"

namespace io_test {

enum class place { device, host_owned, striped, host, small, ordinary };
inline constexpr place all_places[] = {place::device, place::host_owned, place::striped,
                                       place::host,   place::small,      place::ordinary};
[[nodiscard]] const char* name_of(place where);
[[nodiscard]] std::string name_of_parameter(const testing::TestParamInfo<place>& info);

using content = std::vector<std::byte>;
[[nodiscard]] content random_content(std::size_t bytes);

/// Memory with random contents, and a model of the contents. In device memory, a kernel has made the last write, so the
/// host's copy is outdated. In memory of kind host_owned, the host has made the last write, so the home's copy is
/// outdated.
class memory {
 public:
  memory(place where, std::size_t bytes);

  [[nodiscard]] std::byte* data() const { return reinterpret_cast<std::byte*>(p_); }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] content part(std::size_t offset, std::size_t bytes) const;

  /// Writes new contents, from the same side (kernel or host) as the first contents.
  void renew();
  /// Records in the model the bytes that a call has written.
  void expect(std::size_t offset, const content& written);
  /// Compares the bytes that kernels see, and then those that the host sees, with the model.
  void check(const char* when) const;

 private:
  place where_;
  std::size_t bytes_;
  hpe::array<std::uint32_t> memory_;
  std::vector<std::uint32_t> ordinary_;
  std::uint32_t* p_;
  content model_;
};

/// Return the sizes to try in a kind of memory, and the number of bytes that the largest one needs.
[[nodiscard]] std::vector<std::size_t> sizes_for(place where);
[[nodiscard]] std::size_t room_for(place where);

/// A file without a name, which exists as long as the object.
class file {
 public:
  explicit file(int flags = 0, const char* folder = "/tmp");
  ~file();
  file(const file&) = delete;
  file& operator=(const file&) = delete;
  [[nodiscard]] int get() const { return file_; }
  void fill(const content& what) const;
  [[nodiscard]] content all() const;
  [[nodiscard]] off_t position() const;

 private:
  int file_;
};

/// Write and read bytes of a file by calls on ordinary memory.
void write_all(int file, const content& what);
[[nodiscard]] content read_exactly(int file, std::size_t bytes);

struct ends {
  int a = -1;
  int b = -1;
  ends() = default;
  ends(ends&& other) noexcept : a(std::exchange(other.a, -1)), b(std::exchange(other.b, -1)) {}
  ends& operator=(ends&&) = delete;
  ~ends();
  void close_a();
  void close_b();
};
[[nodiscard]] ends make_pipe(int flags = 0);  ///< a reads, b writes
[[nodiscard]] ends make_sockets(int type);    ///< AF_UNIX
[[nodiscard]] ends make_tcp();

}  // namespace io_test
