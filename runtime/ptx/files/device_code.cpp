#include "runtime/ptx/files/device_code.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/error.h"

namespace hpe::ptx {

namespace {

constexpr std::uint32_t fat_binary_magic = 0xba55ed50;

bool has_ptx(const std::vector<fat_binary_entry>& entries) {
  return std::any_of(entries.begin(), entries.end(),
                     [](const fat_binary_entry& e) { return e.what == fat_binary_entry::kind::ptx; });
}

// Returns from each fat binary the PTX text for the newest architecture.
std::vector<std::string> texts_in(file_bytes section, unsigned& without_ptx) {
  std::vector<std::string> texts;
  visit_fat_binaries(section, [&](const std::vector<fat_binary_entry>& entries) {
    if (has_ptx(entries)) {
      texts.push_back(choose_ptx(entries).text);
    } else {
      ++without_ptx;
    }
    return true;
  });
  return texts;
}

bool is_text(file_bytes content) {
  return std::none_of(content.begin(), content.end(), [](char c) { return c == '\0'; });
}

}  // namespace

void visit_fat_binaries(file_bytes section, const std::function<bool(const std::vector<fat_binary_entry>&)>& see) {
  constexpr std::uint64_t alignment = 8;
  for (std::uint64_t at = 0; at < section.size();) {
    if (read<std::uint32_t>(section, at) != fat_binary_magic) {  // a gap between two containers
      at += alignment;
      continue;
    }
    const file_bytes rest = section.subspan(at);
    if (!see(read_fat_binary(rest.data(), rest.size()))) return;
    const std::uint64_t size = *read<std::uint16_t>(rest, 6) + *read<std::uint64_t>(rest, 8);
    at += std::max(alignment, (size + alignment - 1) / alignment * alignment);
  }
}

device_code read_device_code(const std::string& path) {
  std::error_code why;
  HPE_REQUIRE(std::filesystem::exists(path, why), HPE_ERROR_INVALID_ARGUMENT, "there is no file {}", path);
  HPE_REQUIRE(std::filesystem::is_regular_file(path, why), HPE_ERROR_INVALID_ARGUMENT,
              "{} is a folder or a device, not a file with kernels", path);
  const mapped_file file(path);
  HPE_REQUIRE(!file.content().empty(), HPE_ERROR_INVALID_ARGUMENT, "the file {} is empty or cannot be read", path);
  return device_code_in(file.content(), path);
}

device_code device_code_in(file_bytes content, const std::string& path) {
  device_code found;
  const elf_file elf(content);
  if (elf.is_elf()) {
    for (std::string& text : texts_in(elf.named(fat_binaries_section), found.without_ptx))
      found.modules.push_back({std::move(text)});
    std::vector<std::string> linked = texts_in(elf.named(linked_fat_binaries_section), found.without_ptx);
    found.last_is_linked = !linked.empty();
    if (found.last_is_linked) found.modules.push_back(std::move(linked));
    HPE_REQUIRE(!found.modules.empty() || found.without_ptx > 0, HPE_ERROR_NOT_SUPPORTED,
                "{} has no code for GPUs (no fat binaries in its sections {} and {}): nvcc did not make it", path,
                fat_binaries_section, linked_fat_binaries_section);
  } else if (read<std::uint32_t>(content, 0) == fat_binary_magic) {
    for (std::string& text : texts_in(content, found.without_ptx)) found.modules.push_back({std::move(text)});
  } else {
    const std::string_view text(content.data(), content.size());
    HPE_REQUIRE(is_text(content) && text.find(".version") != std::string_view::npos, HPE_ERROR_INVALID_ARGUMENT,
                "{} is neither PTX (it has no .version), nor a fat binary, nor a 64-bit program or object file (ELF)",
                path);
    found.modules.push_back({std::string(text)});
  }
  HPE_REQUIRE(!found.modules.empty(), HPE_ERROR_NOT_SUPPORTED,
              "{} has machine code of GPUs only, and no PTX; compile with nvcc -arch=compute_75 (or -gencode "
              "arch=compute_75,code=compute_75)",
              path);
  return found;
}

bool has_kernel(const std::string& text, const std::string& name) {
  const std::string entry = ".entry " + name;
  for (std::size_t at = 0; (at = text.find(entry, at)) != std::string::npos; at += entry.size())
    if (const char next = text[at + entry.size()]; next == '(' || next == ' ' || next == '\n') return true;
  return false;
}

}  // namespace hpe::ptx
