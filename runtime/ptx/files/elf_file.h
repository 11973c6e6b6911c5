#pragma once

/// Files and their ELF sections. A file may be damaged or truncated, so every offset is checked before use.

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hpe::ptx {

using file_bytes = std::span<const char>;

/// A regular file, mapped for reading.
class mapped_file {
 public:
  /// The content is empty if the file does not exist, cannot be read, or is empty.
  explicit mapped_file(const std::string& path);
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  [[nodiscard]] file_bytes content() const { return content_; }

 private:
  file_bytes content_;
};

/// The `size` bytes from `offset` on; empty if `all` does not contain all of them.
[[nodiscard]] file_bytes part(file_bytes all, std::uint64_t offset, std::uint64_t size);

/// An object of type T, copied because it may be misaligned in the file; nothing if `all` does not contain all of its
/// bytes.
template <class T>
[[nodiscard]] std::optional<T> read(file_bytes all, std::uint64_t offset) {
  const file_bytes from = part(all, offset, sizeof(T));
  if (from.empty()) return std::nullopt;
  T value{};
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}

/// A 64-bit ELF file. Has no sections if the content is not a 64-bit ELF file.
class elf_file {
 public:
  /// content must outlive the object.
  explicit elf_file(file_bytes content);

  [[nodiscard]] bool is_elf() const { return is_elf_; }
  /// The content of a section; empty if the file has no section of this name.
  [[nodiscard]] file_bytes named(std::string_view name) const;
  /// The names of the shared objects that the file is linked with.
  [[nodiscard]] std::vector<std::string> needed() const;
  /// Whether one of these names begins with `library`.
  [[nodiscard]] bool needs(std::string_view library) const;
  /// Whether the file has an undefined dynamic symbol of this name.
  [[nodiscard]] bool imports(std::string_view name) const;

 private:
  /// Calls see(table of strings, offset of the name) for each needed shared object, until `see` returns false.
  template <class See>
  void for_each_needed(const See& see) const;
  [[nodiscard]] Elf64_Shdr section(unsigned number) const;
  [[nodiscard]] file_bytes bytes_of(const Elf64_Shdr& s) const;

  file_bytes content_;
  Elf64_Ehdr header_{};
  bool is_elf_ = false;
  file_bytes names_;
};

}  // namespace hpe::ptx
