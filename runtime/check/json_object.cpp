#include "runtime/check/json_object.h"

namespace hpe::check {

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
  members_.append(trace::json_text(name)).append(":").append(json);
  return *this;
}

}  // namespace hpe::check
