#include "apps/predict/formula_value.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <muParser.h>

#include <cmath>
#include <string>
#include <vector>

namespace hpe::predict {

namespace {

double round_up(double x) { return std::ceil(x); }
double round_down(double x) { return std::floor(x); }

}  // namespace

double evaluate(const std::string& formula, const variables& known) {
  try {
    mu::Parser parser;
    parser.DefineFun("ceil", round_up);
    parser.DefineFun("floor", round_down);
    for (const auto& [name, value] : known) parser.DefineConst(name, value);
    parser.SetExpr(formula);
    const double value = parser.Eval();
    if (!std::isfinite(value)) throw bad_input(fmt::format("\"{}\" has no finite value", formula));
    return value;
  } catch (const mu::Parser::exception_type& refused) {
    std::vector<std::string> names;
    for (const auto& [name, value] : known) names.push_back(name);
    throw bad_input(fmt::format("\"{}\": {} The variables are {}", formula, refused.GetMsg(), fmt::join(names, ", ")));
  }
}

}  // namespace hpe::predict
