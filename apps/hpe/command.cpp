#include "apps/hpe/command.h"

#include <fmt/core.h>

#include "apps/command_line/command_options.h"
#include "apps/command_line/program.h"

namespace hpe::cli {

int refuse(std::string_view kind, std::string_view word, const std::vector<std::string>& known) {
  fmt::print(stderr, "hpe: there is no {} \"{}\".", kind, word);
  if (const std::string meant = command_line::nearest(word, known); !meant.empty()) {
    fmt::print(stderr, " Did you mean \"{}\"?", meant);
  } else if (!known.empty()) {
    fmt::print(stderr, " There are:");
    for (const std::string& candidate : known) fmt::print(stderr, " {}", candidate);
  }
  fmt::print(stderr, "\n");
  return command_line::usage_error;
}

}  // namespace hpe::cli
