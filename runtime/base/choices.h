#pragma once

/// The types of the options whose value is one of a fixed list of words: one enum class for each HPE_OPTION_CHOICE row
/// of options.def.

#include <cstdint>
#include <string_view>

namespace hpe {

// word_of returns the word that stands for a value in the environment.
#define HPE_VALUE(enumerator, word) enumerator
#define HPE_VALUES(...) __VA_ARGS__
#define HPE_OPTION_CHOICE(field, type, variable, initial, values, sentence) \
  enum class type : std::uint8_t { HPE_VALUES values };                     \
  [[nodiscard]] std::string_view word_of(type value) noexcept;
#include "runtime/base/options.def"
#undef HPE_VALUE
#undef HPE_VALUES

}  // namespace hpe
