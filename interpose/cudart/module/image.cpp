// A linked image is the eight bytes of linked_magic, the number of texts, and for each text its size and its bytes; the numbers
// have eight bytes.

#include "interpose/cudart/module/image.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

#include "interpose/cudart/device/errors.h"
#include "runtime/ptx/files/fat_binary.h"

namespace hpe::cudart {

namespace {

constexpr char linked_magic[8] = {'\x7f', 'h', 'p', 'e', 'P', 'T', 'X', '\n'};

bool begins_with(const void* image, const void* magic, std::size_t bytes) {
  return std::memcmp(image, magic, bytes) == 0;
}

bool begins_with_fat_binary(const void* image) {
  const unsigned char wrapper[] = {0xb1, 0x43, 0x62, 0x46};
  const unsigned char container[] = {0x50, 0xed, 0x55, 0xba};
  return begins_with(image, wrapper, sizeof wrapper) || begins_with(image, container, sizeof container);
}

std::uint64_t take_number(const char*& at) {
  std::uint64_t number = 0;
  std::memcpy(&number, at, sizeof number);
  at += sizeof number;
  return number;
}

void put_number(std::string& image, std::uint64_t number) {
  image.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::vector<std::string> read_linked_image(const char* at) {
  at += sizeof linked_magic;
  std::vector<std::string> texts(take_number(at));
  for (std::string& text : texts) {
    text.resize(take_number(at));
    std::memcpy(text.data(), at, text.size());
    at += text.size();
  }
  return texts;
}

}  // namespace

std::vector<std::string> read_image(const void* image) {
  require(image != nullptr, cudaErrorInvalidValue);
  const auto* const bytes = static_cast<const char*>(image);
  if (begins_with_fat_binary(image)) {
    const std::size_t not_bounded = SIZE_MAX / 2;
    return {ptx::choose_ptx(ptx::read_fat_binary(image, not_bounded)).text};
  }
  if (begins_with(image, linked_magic, 4) && begins_with(image, linked_magic, sizeof linked_magic))
    return read_linked_image(bytes);
  require(!begins_with(image, "\177ELF", 4), cudaErrorNoKernelImageForDevice);
  return {bytes};
}

std::string read_whole_file(const char* path) {
  require(path != nullptr, cudaErrorInvalidValue);
  std::ifstream file(path, std::ios::binary);
  require(file.good(), cudaErrorFileNotFound);
  std::string content((std::istreambuf_iterator<char>(file)), {});
  require(content.size() >= 16, cudaErrorInvalidKernelImage);
  return content;
}

std::vector<std::string> read_image_file(const char* path) { return read_image(read_whole_file(path).c_str()); }

std::string make_linked_image(const std::vector<std::string>& texts) {
  std::string image(linked_magic, sizeof linked_magic);
  put_number(image, texts.size());
  for (const std::string& text : texts) {
    put_number(image, text.size());
    image += text;
  }
  return image;
}

}  // namespace hpe::cudart
