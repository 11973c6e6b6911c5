#pragma once

/// Files of elements of one type: NumPy's .npy, whose header names the type and the shape, and raw files, which hold
/// the elements as in memory. Pointers may point to hpe memory: reads and writes then need no intermediate copy.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/bad_input.h"

namespace hpe::files {

using command_line::bad_input;

/// A file of elements. The name of a type is its kind and its number of bits: i32, i64, u32, u64, f32, f64, c64 (two
/// f32) or c128 (two f64). The name of a pair joins the names of its key and its value, as in u32_u32.
struct description {
  std::string path;
  bool npy = false;                  ///< false: the file is raw
  std::string type;                  ///< only for a .npy file
  std::vector<std::uint64_t> shape;  ///< only for a .npy file; the slowest axis first
  std::uint64_t begin = 0;           ///< bytes before the first element
  std::uint64_t bytes = 0;           ///< bytes of all elements

  /// Returns the number of elements of `size` bytes in the file. Throws bad_input if the file ends within an element,
  /// has no elements, or, for a .npy file, has another number of elements than its shape.
  [[nodiscard]] std::uint64_t elements(std::size_t size) const;

  /// Throws bad_input if the type of a .npy file is not `wanted`; a raw file may hold any type.
  void must_hold(const std::string& wanted) const;
};

/// Whether the name of a file ends in .npy.
[[nodiscard]] bool is_npy(const std::string& path);

/// Reads the header, if the file is .npy. Throws bad_input if the file cannot be opened or is not a regular file, the
/// header is malformed, the type is not one of those above, the byte order is not little-endian, or the first of
/// several axes is the fastest; also for a .npy file whose name does not end in .npy, and for a file whose name and
/// first bytes both show that it is compressed.
[[nodiscard]] description describe(const std::string& path);

/// Reads all elements. Throws bad_input if the file cannot be read or is shorter than described.
void read(const description& file, void* to);

/// Writes elements of size bytes, as .npy if the name ends in .npy. If that fails, throws std::runtime_error with the
/// reason, and an earlier file of that name stays unchanged.
void write(const std::string& path, const std::string& type, const std::vector<std::uint64_t>& shape, const void* from,
           std::size_t size);

}  // namespace hpe::files
