#include "runtime/spread/layout_table.h"

namespace hpe::spread {

namespace {

std::string content_of(const kernel_array& a) {
  std::string content;
  append(content, a.bytes);
  append(content, a.granule);
  append(content, static_cast<char>((a.may_replicate ? 1 : 0) + (a.is_replicated ? 2 : 0) + (a.is_empty ? 4 : 0)));
  for (const home_run& run : a.homes) {
    append(content, run.last);
    append(content, run.home);
  }
  return content;
}

}  // namespace

layout_table::number layout_table::of_homes(const kernel_array& a) {
  return numbers_.try_emplace(content_of(a), static_cast<number>(numbers_.size()) + 1).first->second;
}

layout_table::number layout_table::of(const kernel_array* a) {
  if (a == nullptr) return 0;
  const auto [found, is_new] = known_.try_emplace(a->address);
  if (is_new || found->second.version != a->version) found->second = {a->version, of_homes(*a)};
  return found->second.layout;
}

}  // namespace hpe::spread
