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

// Calls in code without lines can have the same text, although their stacks differ.
std::vector<finding> finding_list::all() const {
  std::vector<finding> result;
  std::map<std::string, std::size_t> places;  // in the result, by the text
  for (const std::string& key : keys_) {
    const known_finding& each = known_.at(key);
    if (each.is_ignored) continue;
    finding once = each.what;
    once.count = 1;
    const auto [place, is_new] = places.try_emplace(text_of(once), result.size());
    if (is_new)
      result.push_back(each.what);
    else
      result[place->second].count += each.what.count;
  }
  return result;
}

std::vector<finding> finding_list::take() {
  std::vector<finding> result = all();
  known_.clear();
  keys_.clear();
  return result;
}

}  // namespace hpe::check
