#pragma once

/// Files and their ELF sections. A file may be damaged or truncated, so these functions check every offset before they
/// use it.

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

/// Returns the `size` bytes from `offset` on; empty if the range exceeds `all`.
[[nodiscard]] file_bytes part(file_bytes all, std::uint64_t offset, std::uint64_t size);

/// Returns the object of type T at `offset`; empty if its bytes exceed `all`. Returns a copy, because the object may be
/// misaligned in the file.
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
  /// `content` must outlive the object.
  explicit elf_file(file_bytes content);

  [[nodiscard]] bool is_elf() const { return is_elf_; }
  /// Returns the content of a section; empty if the file has no section of this name.
  [[nodiscard]] file_bytes named(std::string_view name) const;
  /// Returns the names of the shared objects that the file is linked with.
  [[nodiscard]] std::vector<std::string> needed() const;
  /// Returns whether the file is linked with a shared object whose name begins with `library`.
  [[nodiscard]] bool needs(std::string_view library) const;
  /// Returns whether the file has an undefined dynamic symbol of this name.
  [[nodiscard]] bool imports(std::string_view name) const;

 private:
  /// Calls see(string table, offset of the name) for each shared object that the file is linked with, until `see`
  /// returns false.
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
