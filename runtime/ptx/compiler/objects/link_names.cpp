// The names are kernel.N (instruction N of the kernel), code.F.N (instruction N of function F), function.F, variable.N
// and native.ID.OFFSET. OFFSET is the offset, in hexadecimal digits, from the beginning of the loaded object with build
// id ID.

#include "runtime/ptx/compiler/objects/link_names.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <span>

#include "runtime/base/error.h"

namespace hpe::ptx {

namespace {

std::string build_id_in(const char* notes, std::uint64_t bytes) {
  constexpr std::uint64_t word = 4;
  const auto padded = [](std::uint64_t size) { return (size + word - 1) / word * word; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, notes, sizeof note);
    const std::uint64_t all = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (all > bytes) break;
    const char* const name = notes + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
        std::memcmp(name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
      std::string id;
      const auto* const first = reinterpret_cast<const unsigned char*>(name + padded(note.n_namesz));
      for (std::uint32_t n = 0; n < note.n_descsz; ++n) id += fmt::format("{:02x}", first[n]);
      return id;
    }
    notes += all;
    bytes -= all;
  }
  return {};
}

int add_object(dl_phdr_info* what, std::size_t, void* to) {
  loaded_object object;
  object.base = what->dlpi_addr;
  for (const ElfW(Phdr) & part : std::span(what->dlpi_phdr, what->dlpi_phnum)) {
    const std::uint64_t begin = what->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) object.segments.emplace_back(begin, begin + part.p_memsz);
    if (part.p_type == PT_NOTE && object.build_id.empty())
      object.build_id = build_id_in(reinterpret_cast<const char*>(begin), part.p_memsz);
  }
  static_cast<std::vector<loaded_object>*>(to)->push_back(std::move(object));
  return 0;
}

// Returns the index of the instruction at an address in `code`.
std::optional<std::size_t> index_in(const std::vector<instruction>& code, const void* address) {
  const auto* const at = static_cast<const instruction*>(address);
  if (code.empty() || std::less<>()(at, code.data()) || std::greater<>()(at, &code.back())) return std::nullopt;
  return static_cast<std::size_t>(at - code.data());
}

// Removes a dot and the number after the dot from the beginning of `rest`, and returns the number.
std::optional<std::uint64_t> take_number(std::string_view& rest, int base = 10) {
  if (!rest.starts_with('.')) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, why] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), number, base);
  if (why != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return number;
}

template <class T>
std::optional<std::uint64_t> address_in(const std::vector<T>& all, std::optional<std::uint64_t> index) {
  if (!index || *index >= all.size()) return std::nullopt;
  return reinterpret_cast<std::uint64_t>(&all[*index]);
}

}  // namespace

std::vector<loaded_object> find_loaded_objects() {
  std::vector<loaded_object> all;
  ::dl_iterate_phdr(add_object, &all);
  return all;
}

const loaded_object* object_at(const std::vector<loaded_object>& objects, const void* address) {
  const auto at = reinterpret_cast<std::uint64_t>(address);
  const auto found = std::find_if(objects.begin(), objects.end(), [at](const loaded_object& o) {
    return std::any_of(o.segments.begin(), o.segments.end(),
                       [at](const auto& segment) { return at >= segment.first && at < segment.second; });
  });
  return found == objects.end() ? nullptr : &*found;
}

std::string link_names::name_of(const void* address) const {
  if (const auto n = index_in(kernel_.code, address)) return fmt::format("kernel.{}", *n);
  const auto& functions = image_.program().functions;
  for (std::size_t f = 0; f < functions.size(); ++f) {
    if (functions[f].get() == address) return fmt::format("function.{}", f);
    if (const auto n = index_in(functions[f]->code, address)) return fmt::format("code.{}.{}", f, *n);
  }
  const loaded_object* const object = object_at(objects_, address);
  HPE_REQUIRE(object != nullptr && !object->build_id.empty(), HPE_ERROR_INTERNAL,
              "defect in hpe: native code refers to {}, which is in no object with a build id (ld --build-id)",
              address);
  return fmt::format("native.{}.{:x}", object->build_id, reinterpret_cast<std::uint64_t>(address) - object->base);
}

std::string link_names::name_of_variable(std::uint32_t symbol) { return fmt::format("variable.{}", symbol); }

std::optional<std::uint64_t> link_names::address_of(std::string_view name) const {
  const program& p = image_.program();
  const std::string_view kind = name.substr(0, name.find('.'));
  std::string_view rest = name.substr(kind.size());
  std::optional<std::uint64_t> result;
  if (kind == "kernel") {
    result = address_in(kernel_.code, take_number(rest));
  } else if (kind == "code") {
    if (const auto f = take_number(rest); f && *f < p.functions.size())
      result = address_in(p.functions[*f]->code, take_number(rest));
  } else if (kind == "function") {
    if (const auto f = take_number(rest); f && *f < p.functions.size())
      result = reinterpret_cast<std::uint64_t>(p.functions[*f].get());
  } else if (kind == "variable") {
    if (const auto n = take_number(rest); n && *n < p.symbols.size())
      result = image_.address_of(static_cast<std::uint32_t>(*n));
  } else if (kind == "native" && !rest.empty()) {
    const std::string_view id = rest.substr(1, rest.find('.', 1) - 1);
    rest.remove_prefix(1 + id.size());
    const auto object =
        std::find_if(objects_.begin(), objects_.end(), [id](const loaded_object& o) { return o.build_id == id; });
    if (const auto offset = take_number(rest, 16); offset && object != objects_.end()) result = object->base + *offset;
  }
  return rest.empty() ? result : std::nullopt;
}

}  // namespace hpe::ptx
