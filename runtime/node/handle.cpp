#include "runtime/node/handle.h"

#include <sys/random.h>

#include <cstring>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/fnv1a.h"

namespace hpe::node {

namespace {

// The layout of a handle's bytes in the program's structure. The checksum detects truncated and overwritten handles;
// only the exporting process knows whether the export exists.
struct form {
  std::uint32_t kind;
  std::uint32_t zero;
  std::uint64_t process[2];
  std::uint64_t token;
  std::uint32_t entry;
  std::uint32_t zeros[5];
  std::uint64_t check;
};
static_assert(sizeof(form) == sizeof(hpeExport));

constexpr std::uint32_t kind_of_this_form = 0x32657068;  // "hpe2"

std::uint64_t check_of(const form& f) noexcept {
  fnv1a sum;
  for (const std::byte b : std::as_bytes(std::span(&f, 1)).first(offsetof(form, check)))
    sum.add(static_cast<std::uint64_t>(b));
  return sum.value();
}

}  // namespace

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0)
    if (::getrandom(&number, sizeof number, 0) != sizeof number) throw_system_error("getrandom");
  return number;
}

hpeExport encode(const handle& h) noexcept {
  form f{kind_of_this_form, 0, {h.process.words[0], h.process.words[1]}, h.token, h.entry, {}, 0};
  f.check = check_of(f);
  hpeExport result;
  std::memcpy(result.bytes, &f, sizeof f);
  return result;
}

std::optional<handle> decode(const hpeExport& e) noexcept {
  form f;
  std::memcpy(&f, e.bytes, sizeof f);
  if (f.kind != kind_of_this_form || f.check != check_of(f)) return std::nullopt;
  return handle{{{f.process[0], f.process[1]}}, f.entry, f.token};
}

}  // namespace hpe::node
