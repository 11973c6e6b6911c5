#include "runtime/ptx/files/elf_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hpe::ptx {

namespace {

// Returns whether the string at `offset` begins with `name`. Reads only as many bytes as `name` has, because a string
// of a damaged file can be very long.
bool begins(file_bytes table, std::uint64_t offset, std::string_view name) {
  const file_bytes found = part(table, offset, name.size());
  return !found.empty() && std::string_view(found.data(), found.size()) == name;
}

bool has_name(file_bytes table, std::uint64_t offset, std::string_view name) {
  return begins(table, offset, name) && read<char>(table, offset + name.size()) == '\0';
}

}  // namespace

mapped_file::mapped_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  struct stat about {};
  if (::fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
    void* const address = ::mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (address != MAP_FAILED) content_ = {static_cast<const char*>(address), static_cast<std::size_t>(about.st_size)};
  }
  ::close(file);
}

mapped_file::~mapped_file() {
  if (!content_.empty()) ::munmap(const_cast<char*>(content_.data()), content_.size());
}

file_bytes part(file_bytes all, std::uint64_t offset, std::uint64_t size) {
  if (offset > all.size() || size > all.size() - offset) return {};
  return all.subspan(offset, size);
}

elf_file::elf_file(file_bytes content) : content_(content) {
  const auto header = read<Elf64_Ehdr>(content, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return;
  is_elf_ = true;
  if (header->e_shentsize != sizeof(Elf64_Shdr)) return;
  header_ = *header;
  names_ = bytes_of(section(header_.e_shstrndx));
}

file_bytes elf_file::named(std::string_view name) const {
  for (unsigned i = 0; i < header_.e_shnum; ++i)
    if (const Elf64_Shdr s = section(i); has_name(names_, s.sh_name, name)) return bytes_of(s);
  return {};
}

template <class See>
void elf_file::for_each_needed(const See& see) const {
  for (unsigned i = 0; i < header_.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (s.sh_type != SHT_DYNAMIC) continue;
    const file_bytes entries = bytes_of(s);
    const file_bytes strings = bytes_of(section(s.sh_link));
    for (std::uint64_t at = 0; const auto entry = read<Elf64_Dyn>(entries, at); at += sizeof *entry)
      if (entry->d_tag == DT_NEEDED && !see(strings, entry->d_un.d_val)) return;
  }
}

std::vector<std::string> elf_file::needed() const {
  constexpr std::size_t longest_name = 255;  // the largest length of a file name
  std::vector<std::string> names;
  for_each_needed([&](file_bytes strings, std::uint64_t offset) {
    if (offset >= strings.size()) return true;
    const std::string_view rest(strings.data() + offset, strings.size() - offset);
    const std::size_t end = rest.substr(0, longest_name + 1).find('\0');
    if (end != std::string_view::npos) names.emplace_back(rest.substr(0, end));
    return true;
  });
  return names;
}

bool elf_file::needs(std::string_view library) const {
  bool found = false;
  for_each_needed([&](file_bytes strings, std::uint64_t offset) {
    found = begins(strings, offset, library);
    return !found;
  });
  return found;
}

bool elf_file::imports(std::string_view name) const {
  for (unsigned i = 0; i < header_.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    if (s.sh_type != SHT_DYNSYM) continue;
    const file_bytes symbols = bytes_of(s);
    const file_bytes strings = bytes_of(section(s.sh_link));
    for (std::uint64_t at = 0; const auto symbol = read<Elf64_Sym>(symbols, at); at += sizeof *symbol)
      if (symbol->st_shndx == SHN_UNDEF && has_name(strings, symbol->st_name, name)) return true;
  }
  return false;
}

Elf64_Shdr elf_file::section(unsigned number) const {
  if (number >= header_.e_shnum || header_.e_shoff > content_.size()) return {};
  return read<Elf64_Shdr>(content_, header_.e_shoff + number * sizeof(Elf64_Shdr)).value_or(Elf64_Shdr{});
}

file_bytes elf_file::bytes_of(const Elf64_Shdr& s) const {
  if (s.sh_type == SHT_NOBITS || s.sh_type == SHT_NULL) return {};
  return part(content_, s.sh_offset, s.sh_size);
}

}  // namespace hpe::ptx
