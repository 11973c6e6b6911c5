#include "runtime/check/json_object.h"

#include <utility>

namespace hpe::check {

namespace {

// Returns the position of the end of the list in a text with an empty list.
std::size_t end_of_list(const std::string& around) {
  static const std::string empty_list = json_array({}, true);
  return around.rfind(empty_list) + 1;
}

}  // namespace

std::string json_array(const std::vector<std::string>& elements, bool in_lines) {
  const std::string_view begin = in_lines ? "\n" : "";
  std::string result = "[";
  for (const std::string& each : elements) {
    if (&each != elements.data()) result += ",";
    result.append(begin).append(each);
  }
  return result.append(begin).append("]");
}

json_object& json_object::add_json(std::string_view name, std::string_view json) {
  if (!members_.empty()) members_ += ",";
  members_.append(json_text(name)).append(":").append(json);
  return *this;
}

std::string listed_text::added_to(const std::string& earlier) const {
  const std::string_view end = std::string_view(around).substr(end_of_list(around));
  const bool adds = earlier.ends_with(end);
  std::string result = adds ? earlier.substr(0, earlier.size() - end.size()) : around.substr(0, end_of_list(around));
  bool is_first = result.ends_with('[');
  for (const std::string& each : elements) {
    if (!std::exchange(is_first, false)) result += ',';
    result.append("\n").append(each);
  }
  return result.append(end);
}

bool listed_text::begins(const std::string& earlier) const {
  return earlier.empty() || earlier.starts_with(std::string_view(around).substr(0, end_of_list(around)));
}

}  // namespace hpe::check
