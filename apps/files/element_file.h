#pragma once

/// Files of elements of one type: NumPy's .npy, which name the type and the shape, and raw files, which hold the
/// elements as they lie in memory. The pointers may be memory of hpe: reads and writes move the data without a copy.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/bad_input.h"

namespace hpe::files {

using command_line::bad_input;

/// Types are named by kind and bits: i32, u64, f32, c64 (two f32); a key with a value by both: u32_u32.
struct description {
  std::string path;
  bool npy = false;                  ///< else raw
  std::string type;                  ///< of a .npy file
  std::vector<std::uint64_t> shape;  ///< of a .npy file, the slowest axis first
  std::uint64_t begin = 0;           ///< bytes before the first element
  std::uint64_t bytes = 0;           ///< of all elements

  /// How many elements of so many bytes the file has. Throws bad_input if it has part of one, or none.
  [[nodiscard]] std::uint64_t elements(std::size_t size) const;

  /// Throws bad_input unless the type is the one that is wanted; a raw file is of any type.
  void must_hold(const std::string& wanted) const;
};

/// Whether the name of a file is that of a .npy file.
[[nodiscard]] bool is_npy(const std::string& path);

/// Reads the header, if the file is .npy. Throws bad_input if the file cannot be opened, or for a header that is none,
/// a type that is not among those above, another byte order, or an order of elements with the first axis fastest.
[[nodiscard]] description describe(const std::string& path);

/// Reads all elements. Throws bad_input if the file cannot be read or is shorter than described.
void read(const description& file, void* to);

/// Writes elements of size bytes, as .npy if the name says so. Throws std::runtime_error if that fails, with the
/// reason, and removes what was written of a file.
void write(const std::string& path, const std::string& type, const std::vector<std::uint64_t>& shape, const void* from,
           std::size_t size);

}  // namespace hpe::files
