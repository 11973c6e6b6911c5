#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hpe::cli {

/// A limit of this machine that hpe meets, and what it does if it is too low.
struct limit {
  std::string name;
  std::string value;   ///< for people: a number with its unit, or "unlimited"
  std::string advice;  ///< empty: the limit is high enough
};

/// A number of bytes, files or mappings against the least that is enough; nullopt: there is no limit.
struct judged {
  std::string name;
  std::optional<double> value;
  double enough;
  bool bytes;          ///< else a count
  std::string advice;  ///< for less
};
[[nodiscard]] limit judge(const judged& j);

/// The limits of this process and its machine, in the order of how often they hurt.
[[nodiscard]] std::vector<limit> limits_of_machine();

}  // namespace hpe::cli
