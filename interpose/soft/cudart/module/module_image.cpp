// A linked image consists of linked_magic, the number of bytes that follow this number, and for each PTX text its size
// and its bytes. Numbers have eight bytes.

#include "interpose/soft/cudart/module/module_image.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

#include "interpose/soft/cudart/device/errors.h"
#include "runtime/ptx/files/fat_binary.h"
#include "runtime/ptx/files/mapped_memory.h"

namespace hpe::cudart {

namespace {

constexpr std::string_view linked_magic = "\x7fhpePTX\n", elf_magic = "\177ELF";
constexpr std::size_t number_size = sizeof(std::uint64_t), linked_header = linked_magic.size() + number_size;

/// Whether an image begins with `magic`. Does not read beyond the first byte that differs.
bool begins_with(const char* image, std::string_view magic) {
  return std::strncmp(image, magic.data(), magic.size()) == 0;
}

[[noreturn]] void refuse_damaged() {
  throw failure(cudaErrorInvalidKernelImage,
                "the image of linked PTX is damaged: a size in the image exceeds the image's length");
}

std::uint64_t number_in(std::string_view bytes) {
  if (bytes.size() < number_size) refuse_damaged();
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), number_size);
  return number;
}

void put_number(std::string& image, std::uint64_t number) {
  image.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// Returns the PTX texts in `rest`, the bytes after the header of a linked image.
std::vector<std::string> read_linked_image(std::string_view rest) {
  std::vector<std::string> texts;
  while (!rest.empty()) {
    const std::uint64_t size = number_in(rest);
    rest.remove_prefix(number_size);
    if (size > rest.size()) refuse_damaged();
    texts.emplace_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return texts;
}

/// Returns the PTX in a fat binary; read_entries() must return the entries of the fat binary.
template <class Read>
std::vector<std::string> read_fat_binary(const Read& read_entries) {
  try {
    return {ptx::choose_ptx(read_entries()).text};
  } catch (const error& caught) {
    const bool lacks_ptx = caught.status() == HPE_ERROR_NOT_SUPPORTED;
    throw failure(lacks_ptx ? cudaErrorNoKernelImageForDevice : cudaErrorInvalidKernelImage, caught.what());
  }
}

[[noreturn]] void refuse_machine_code() {
  throw failure(
      cudaErrorNoKernelImageForDevice,
      "this module is machine code of GPUs (an ELF file, as ptxas, nvcc -cubin and nvrtcGetCUBIN generate it); "
      "soft devices run PTX, which nvcc -ptx and nvrtcGetPTX generate");
}

}  // namespace

std::vector<std::string> read_image(const void* image) {
  require(image != nullptr, cudaErrorInvalidValue);
  const auto* const bytes = static_cast<const char*>(image);
  if (ptx::begins_with_fat_binary(bytes)) return read_fat_binary([&] { return ptx::read_fat_binary_in_memory(image); });
  if (begins_with(bytes, linked_magic)) {
    const auto mapped = [&](std::uint64_t size) { return std::string_view(bytes, ptx::mapped_bytes(bytes, size)); };
    const std::uint64_t rest = number_in(mapped(linked_header).substr(linked_magic.size()));
    return read_image(mapped(rest > SIZE_MAX - linked_header ? SIZE_MAX : linked_header + rest));
  }
  if (begins_with(bytes, elf_magic)) refuse_machine_code();
  return {bytes};
}

std::vector<std::string> read_image(std::string_view image) {
  const std::string_view head = image.substr(0, linked_header);
  if (ptx::begins_with_fat_binary(std::string(head).c_str()))
    return read_fat_binary([&] { return ptx::read_fat_binary(image.data(), image.size()); });
  if (head.starts_with(linked_magic)) {
    image.remove_prefix(linked_magic.size());
    const std::uint64_t size = number_in(image);
    image.remove_prefix(number_size);
    if (size > image.size()) refuse_damaged();
    return read_linked_image(image.substr(0, size));
  }
  if (head.starts_with(elf_magic)) refuse_machine_code();
  return {std::string(image.substr(0, image.find('\0')))};
}

std::string read_whole_file(const char* path) {
  require(path != nullptr, cudaErrorInvalidValue);
  std::ifstream file(path, std::ios::binary);
  require(file.good(), cudaErrorFileNotFound);
  std::string content((std::istreambuf_iterator<char>(file)), {});
  require(content.size() >= 16, cudaErrorInvalidKernelImage);
  return content;
}

std::vector<std::string> read_image_file(const char* path) { return read_image(read_whole_file(path)); }

std::string make_linked_image(const std::vector<std::string>& texts) {
  std::string rest;
  for (const std::string& text : texts) {
    put_number(rest, text.size());
    rest += text;
  }
  std::string image(linked_magic);
  put_number(image, rest.size());
  return image + rest;
}

}  // namespace hpe::cudart
