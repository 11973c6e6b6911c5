#pragma once

/// JSON texts of the reports.

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/foreign_text.h"

namespace hpe::check {

/// An array of JSON texts, each on a line of its own if `in_lines`.
[[nodiscard]] std::string json_array(const std::vector<std::string>& elements, bool in_lines = false);

/// A JSON text whose last array is a list of elements, each on a line of its own (json_array).
struct listed_text {
  std::string around;  ///< the text with an empty list
  std::vector<std::string> elements;

  [[nodiscard]] std::string text() const { return added_to({}); }
  /// Returns `earlier`, a text of this form, with the elements added to its list. Returns text() if `earlier` does not
  /// end as a text of this form does.
  [[nodiscard]] std::string added_to(const std::string& earlier) const;
  /// Whether `earlier` is equal to this text up to the list, or is empty.
  [[nodiscard]] bool begins(const std::string& earlier) const;
};

/// An object, member by member.
class json_object {
 public:
  /// Adds a text; add_some() leaves out an empty text.
  json_object& add(std::string_view name, std::string_view text) { return add_json(name, json_text(text)); }
  json_object& add_some(std::string_view name, std::string_view text) { return text.empty() ? *this : add(name, text); }
  /// Adds a number; add_some() leaves out 0.
  template <std::integral Number>
  json_object& add(std::string_view name, Number number) {
    return add_json(name, std::to_string(number));
  }
  template <std::integral Number>
  json_object& add_some(std::string_view name, Number number) {
    return number == 0 ? *this : add(name, number);
  }
  json_object& add(std::string_view name, const json_object& value) { return add_json(name, value.text()); }
  /// Adds a JSON text.
  json_object& add_json(std::string_view name, std::string_view json);

  [[nodiscard]] std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

}  // namespace hpe::check
