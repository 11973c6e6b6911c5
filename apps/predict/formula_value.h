#pragma once

/// Formulas of specifications, such as "ceil(rows / P) * columns * 4".

#include <map>
#include <string>

#include "apps/command_line/bad_input.h"

namespace hpe::predict {

using command_line::bad_input;

using variables = std::map<std::string, double>;

/// Returns the value of a formula. The formula may use the variables, numbers, + - * / ^, comparisons, && || ?:, and
/// the functions ceil, floor, rint, sqrt, log2, min and max, and the other functions of muParser. Throws bad_input with
/// the reason if the formula is malformed, uses an unknown variable (the message lists the known ones), or has no
/// finite value.
[[nodiscard]] double evaluate(const std::string& formula, const variables& known);

}  // namespace hpe::predict
