// fatbinary_section.h defines the layout of the wrapper. The layout of a container is the one that nvcc 12 and 13
// write: a header {magic, version 1, header size, bytes that follow} and a sequence of entries. Each entry is a header
// and a payload. The header of an entry, by byte offset:
//
//   0  kind (1 PTX, 2 cubin)   2  version    4  size of this header     8  size of the payload (8 bytes)
//   16 compressed size         28 architecture   40 flags (8 bytes)     56 size after decompression (8 bytes)
//
// The flags: bit 4: compiled with -rdc=true; bit 13: compressed with LZ4; bit 15: compressed with zstd.

#include "runtime/ptx/files/fat_binary.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/ptx/files/mapped_memory.h"

namespace hpe::ptx {

namespace {

constexpr std::uint32_t wrapper_magic = 0x466243b1;
constexpr std::uint32_t container_magic = 0xba55ed50;
constexpr std::size_t smallest_container_header = 16, smallest_entry_header = 48;
constexpr std::string_view section_of_functions = ".text.";  // a cubin has one section for each function
constexpr std::uint64_t flag_lz4 = 1 << 13;
constexpr std::uint64_t flag_zstd = 1 << 15;
constexpr std::uint64_t largest_text = std::uint64_t{1} << 32;
constexpr std::uint64_t small_text = 16 << 20, largest_zstd_ratio = 1000;  // PTX from nvcc has a ratio below 100

class reader {
 public:
  reader(const void* data, std::size_t bytes) : data_(static_cast<const char*>(data)), bytes_(bytes) {}

  template <class T>
  [[nodiscard]] T at(std::size_t offset) const {
    T value{};
    std::memcpy(&value, bytes_at(offset, sizeof value), sizeof value);
    return value;
  }

  [[nodiscard]] const char* bytes_at(std::size_t offset, std::size_t bytes) const {
    HPE_REQUIRE(offset <= bytes_ && bytes <= bytes_ - offset, HPE_ERROR_INVALID_ARGUMENT,
                "the fat binary ends early: hpe needs {} bytes at offset {}, but the fat binary has {} bytes", bytes,
                offset, bytes_);
    return data_ + offset;
  }

 private:
  const char* data_;
  std::size_t bytes_;
};

// A damaged container may state any size. Therefore decompress_lz4 and decompress_zstd allocate memory only in
// proportion to the compressed bytes. LZ4 expands its input at most 255 times. zstd has no limit, so decompress_zstd
// refuses texts above small_text that are more than largest_zstd_ratio times as large as the input. Both functions
// return nothing if the result does not have `size` bytes.
std::optional<std::string> decompress_lz4(const char* data, std::size_t bytes, std::uint64_t size) {
  constexpr std::uint64_t largest_ratio = 255;
  if (bytes > LZ4_MAX_INPUT_SIZE || size > LZ4_MAX_INPUT_SIZE || size > largest_ratio * bytes) return std::nullopt;
  std::string text(size, '\0');
  const int written = LZ4_decompress_safe(data, text.data(), static_cast<int>(bytes), static_cast<int>(size));
  if (written != static_cast<int>(size)) return std::nullopt;
  return text;
}

std::optional<std::string> decompress_zstd(const char* data, std::size_t bytes, std::uint64_t size) {
  if (size > small_text + largest_zstd_ratio * bytes) return std::nullopt;
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), ZSTD_freeDCtx);
  ZSTD_inBuffer in{data, bytes, 0};
  std::string text;
  for (;;) {
    const std::size_t done = text.size(), read = in.pos;
    const std::size_t room = std::min<std::uint64_t>(size - done, ZSTD_DStreamOutSize());
    text.resize(done + room);
    ZSTD_outBuffer out{text.data() + done, room, 0};
    const std::size_t left = ZSTD_decompressStream(context.get(), &out, &in);
    text.resize(done + out.pos);
    if (left == 0 && text.size() == size && in.pos == in.size) return text;
    if (ZSTD_isError(left) != 0 || left == 0 || (out.pos == 0 && in.pos == read)) return std::nullopt;
  }
}

std::string decompress(const char* data, std::size_t bytes, std::uint64_t size, bool zstd) {
  HPE_REQUIRE(size <= largest_text, HPE_ERROR_INVALID_ARGUMENT, "PTX of {} bytes in a fat binary is too large", size);
  std::optional<std::string> text = zstd ? decompress_zstd(data, bytes, size) : decompress_lz4(data, bytes, size);
  HPE_REQUIRE(text, HPE_ERROR_INVALID_ARGUMENT,
              "hpe cannot decompress the PTX in a fat binary ({}); the fat binary is damaged", zstd ? "zstd" : "LZ4");
  return *std::move(text);
}

}  // namespace

std::vector<fat_binary_entry> read_fat_binary(const void* data, std::size_t bytes) {
  const reader all(data, bytes);
  HPE_REQUIRE(all.at<std::uint32_t>(0) == container_magic, HPE_ERROR_INVALID_ARGUMENT,
              "this is not a fat binary: it begins with {:#x}", all.at<std::uint32_t>(0));
  const std::size_t header = all.at<std::uint16_t>(6);
  const auto body_size = all.at<std::uint64_t>(8);
  HPE_REQUIRE(header >= smallest_container_header, HPE_ERROR_INVALID_ARGUMENT,
              "a fat binary has a header of {} bytes; it must have {} or more", header, smallest_container_header);
  HPE_REQUIRE(
      header <= bytes && body_size <= bytes - header, HPE_ERROR_INVALID_ARGUMENT,
      "the fat binary ends early: it has a header of {} bytes and a body of {} bytes, but only {} bytes are there",
      header, body_size, bytes);
  const std::size_t end = header + body_size;
  const reader in(data, end);
  std::vector<fat_binary_entry> entries;
  for (std::size_t offset = header; offset < end;) {
    const std::size_t entry_header = in.at<std::uint32_t>(offset + 4);
    const auto payload = in.at<std::uint64_t>(offset + 8);
    const auto compressed = in.at<std::uint32_t>(offset + 16);
    const auto flags = in.at<std::uint64_t>(offset + 40);
    HPE_REQUIRE(entry_header >= smallest_entry_header, HPE_ERROR_INVALID_ARGUMENT,
                "an entry of a fat binary has a header of {} bytes; it must have {} or more", entry_header,
                smallest_entry_header);
    fat_binary_entry entry;
    const auto kind = in.at<std::uint16_t>(offset);
    entry.what = kind == 1   ? fat_binary_entry::kind::ptx
                 : kind == 2 ? fat_binary_entry::kind::cubin
                             : fat_binary_entry::kind::other;
    entry.architecture = in.at<std::uint32_t>(offset + 28);
    const char* const body = in.bytes_at(offset + entry_header, payload);
    if (entry.what == fat_binary_entry::kind::ptx) {
      if ((flags & (flag_lz4 | flag_zstd)) != 0) {
        HPE_REQUIRE(compressed <= payload, HPE_ERROR_INVALID_ARGUMENT,
                    "the compressed data of an entry in a fat binary exceeds the entry");
        const std::size_t size = compressed != 0 ? compressed : payload;
        entry.text = decompress(body, size, in.at<std::uint64_t>(offset + 56), (flags & flag_zstd) != 0);
      } else {
        entry.text.assign(body, payload);
      }
      entry.text.resize(std::min(entry.text.size(), entry.text.find('\0')));
    } else if (entry.what == fat_binary_entry::kind::cubin && (flags & (flag_lz4 | flag_zstd)) == 0) {
      entry.is_empty = std::string_view(body, payload).find(section_of_functions) == std::string_view::npos;
    }
    entries.push_back(std::move(entry));
    offset += entry_header + payload;
  }
  return entries;
}

std::vector<fat_binary_entry> read_fat_binary_in_memory(const void* image) {
  const auto mapped = [](const void* from, std::size_t bytes) { return reader(from, mapped_bytes(from, bytes)); };
  const void* container = image;
  if (mapped(image, 4).at<std::uint32_t>(0) == wrapper_magic) container = mapped(image, 16).at<const void*>(8);
  const reader header = mapped(container, smallest_container_header);
  const std::uint64_t body_size = header.at<std::uint64_t>(8);
  const std::uint64_t size = body_size + header.at<std::uint16_t>(6);
  return read_fat_binary(container, mapped_bytes(container, std::max(size, body_size)));
}

bool begins_with_fat_binary(const char* image) {
  const auto begins_with = [&](std::uint32_t magic) {
    return std::strncmp(image, reinterpret_cast<const char*>(&magic), sizeof magic) == 0;
  };
  return begins_with(container_magic) || begins_with(wrapper_magic);
}

const fat_binary_entry& choose_ptx(const std::vector<fat_binary_entry>& entries) {
  const fat_binary_entry* best = nullptr;
  for (const fat_binary_entry& entry : entries)
    if (entry.what == fat_binary_entry::kind::ptx && (best == nullptr || entry.architecture > best->architecture))
      best = &entry;
  HPE_REQUIRE(best != nullptr, HPE_ERROR_NOT_SUPPORTED,
              "this fat binary has machine code of GPUs only, and no PTX; compile with nvcc -arch=compute_75 (or "
              "-gencode arch=compute_75,code=compute_75)");
  return *best;
}

}  // namespace hpe::ptx
