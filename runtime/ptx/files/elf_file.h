#pragma once

/// Files and their ELF sections. A file may be damaged or truncated, so every offset in it is checked before use.

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hpe::ptx {

using file_bytes = std::span<const char>;

/// A regular file, mapped for reading.
class mapped_file {
 public:
  /// Without content if there is no such file, it cannot be read, or it is empty.
  explicit mapped_file(const std::string& path);
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  [[nodiscard]] file_bytes content() const { return content_; }

 private:
  file_bytes content_;
};

/// A part of the bytes; empty if they do not contain all of it.
[[nodiscard]] file_bytes part(file_bytes all, std::uint64_t offset, std::uint64_t size);

/// An object of type T, copied because the file need not align it; nothing if the bytes do not contain all of it.
template <class T>
[[nodiscard]] std::optional<T> read(file_bytes all, std::uint64_t offset) {
  const file_bytes from = part(all, offset, sizeof(T));
  if (from.empty()) return std::nullopt;
  T value{};
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}

/// A 64-bit ELF file. Has no sections if the content is none.
class elf_file {
 public:
  /// content must outlive the object.
  explicit elf_file(file_bytes content);

  [[nodiscard]] bool is_elf() const { return is_elf_; }
  /// The content of a section; empty if there is none of this name.
  [[nodiscard]] file_bytes named(std::string_view name) const;
  /// Whether it is linked with a shared object whose name begins so.
  [[nodiscard]] bool needs(std::string_view library) const;
  /// Whether this is an undefined dynamic symbol.
  [[nodiscard]] bool imports(std::string_view name) const;

 private:
  [[nodiscard]] Elf64_Shdr section(unsigned number) const;
  [[nodiscard]] file_bytes bytes_of(const Elf64_Shdr& s) const;

  file_bytes content_;
  Elf64_Ehdr header_{};
  bool is_elf_ = false;
  file_bytes names_;
};

}  // namespace hpe::ptx
