#pragma once

/// Symbols of loaded libraries, read from the libraries' own tables. dlsym cannot be used while the dynamic linker
/// relocates a library, and not to find dlsym itself.

#include <link.h>

#include <cstdint>
#include <cstring>

namespace hpe::interpose {

/// A table in the dynamic section of a loaded library. nullptr if there is none, and for the vDSO, where the dynamic
/// linker leaves offsets in place of addresses.
template <class T>
const T* dynamic_table(const link_map& library, ElfW(Sxword) tag) {
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == tag)
      return entry->d_un.d_ptr < library.l_addr
                 ? nullptr
                 : reinterpret_cast<const T*>(entry->d_un.d_ptr);  // NOLINT(performance-no-int-to-ptr)
  return nullptr;
}

/// The symbol that a library defines; nullptr if it defines none of this name. Takes no lock, allocates
/// nothing. Libraries without a GNU hash section, which linkers have made since 2006, count as without symbols.
inline const ElfW(Sym) * symbol_of(const link_map& library, const char* name) {
  const auto* symbols = dynamic_table<ElfW(Sym)>(library, DT_SYMTAB);
  const auto* names = dynamic_table<char>(library, DT_STRTAB);
  const auto* table = dynamic_table<std::uint32_t>(library, DT_GNU_HASH);
  if (symbols == nullptr || names == nullptr || table == nullptr || table[0] == 0) return nullptr;
  std::uint32_t hash = 5381;
  for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
  // The section: number of buckets, first symbol, words of a filter, its shift; the filter; buckets; hashes of symbols,
  // of which the last one of each bucket is odd.
  const std::uint32_t* const buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* const hashes = buckets + table[0];
  std::uint32_t at = buckets[hash % table[0]];
  if (at < table[1]) return nullptr;
  for (;; ++at) {
    const std::uint32_t found = hashes[at - table[1]];
    if ((found | 1) == (hash | 1) && symbols[at].st_shndx != SHN_UNDEF &&
        std::strcmp(names + symbols[at].st_name, name) == 0)
      return &symbols[at];
    if ((found & 1) != 0) return nullptr;
  }
}

/// The address of a function that a library defines; nullptr if it defines none of this name.
inline void* defined_in(const link_map& library, const char* name) {
  const ElfW(Sym)* const symbol = symbol_of(library, name);
  return symbol == nullptr
             ? nullptr
             : reinterpret_cast<void*>(library.l_addr + symbol->st_value);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace hpe::interpose
