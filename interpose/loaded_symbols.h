#pragma once

/// Finds symbols of loaded libraries in the libraries' own tables. The function dlsym cannot be used while the dynamic
/// linker relocates a library, and cannot be used to find dlsym itself.

#include <link.h>

#include <cstdint>
#include <cstring>

namespace hpe::interpose {

/// Returns a table that the dynamic section of a loaded library names; nullptr if the library does not have the table,
/// and for the vDSO, whose dynamic section contains offsets in place of addresses.
template <class T>
const T* dynamic_table(const link_map& library, ElfW(Sxword) tag) {
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry)
    if (entry->d_tag == tag)
      return entry->d_un.d_ptr < library.l_addr
                 ? nullptr
                 : reinterpret_cast<const T*>(entry->d_un.d_ptr);  // NOLINT(performance-no-int-to-ptr)
  return nullptr;
}

/// Returns the symbol with this name that a library defines; nullptr if the library does not define it. Takes no lock
/// and allocates no memory. A library without a GNU hash section counts as a library without symbols; linkers have
/// written this section since 2006.
inline const ElfW(Sym) * symbol_of(const link_map& library, const char* name) {
  const auto* symbols = dynamic_table<ElfW(Sym)>(library, DT_SYMTAB);
  const auto* names = dynamic_table<char>(library, DT_STRTAB);
  const auto* table = dynamic_table<std::uint32_t>(library, DT_GNU_HASH);
  if (symbols == nullptr || names == nullptr || table == nullptr || table[0] == 0) return nullptr;
  std::uint32_t hash = 5381;
  for (const char* c = name; *c != '\0'; ++c) hash = hash * 33 + static_cast<unsigned char>(*c);
  // The section contains four numbers (the number of buckets, the index of the first symbol, the number of words in the
  // filter, the shift of the filter), the filter, the buckets, and the hashes of the symbols. The last hash of each
  // bucket is odd.
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

/// Returns the address of the function with this name that a library defines; nullptr if the library does not define
/// it.
inline void* defined_in(const link_map& library, const char* name) {
  const ElfW(Sym)* const symbol = symbol_of(library, name);
  return symbol == nullptr
             ? nullptr
             : reinterpret_cast<void*>(library.l_addr + symbol->st_value);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace hpe::interpose
