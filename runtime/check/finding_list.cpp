#include "runtime/check/finding_list.h"

namespace hpe::check {

void finding_list::report(const std::string& key, const void* repeated_by, const std::function<finding()>& make) {
  const auto [place, is_new] = known_.try_emplace(key);
  known_finding& known = place->second;
  if (is_new) {
    known.what = make();
    known.is_ignored = ignored_.contains(known.what);
    keys_.push_back(key);
  } else if (known.last != repeated_by) {
    ++known.what.count;
  }
  known.last = repeated_by;
}

std::vector<finding> finding_list::all() const {
  std::vector<finding> result;
  for (const std::string& key : keys_)
    if (const known_finding& each = known_.at(key); !each.is_ignored) result.push_back(each.what);
  return result;
}

std::vector<finding> finding_list::take() {
  std::vector<finding> result = all();
  known_.clear();
  keys_.clear();
  return result;
}

}  // namespace hpe::check
