#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "apps/hpe/command.h"

namespace hpe::cli {

namespace {

/// How many letters must be inserted, removed or replaced to make one word the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

bool asks_for_help(int argc, char** argv) {
  return argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h");
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = 3;
  for (const std::string& candidate : known) {
    const std::size_t changes = distance(word, candidate);
    if (changes < least && changes < candidate.size()) {
      least = changes;
      best = candidate;
    }
  }
  return best;
}

int refuse(std::string_view kind, std::string_view word, const std::vector<std::string>& known) {
  fmt::print(stderr, "hpe: there is no {} \"{}\".", kind, word);
  if (const std::string meant = nearest(word, known); !meant.empty()) {
    fmt::print(stderr, " Did you mean \"{}\"?", meant);
  } else if (!known.empty()) {
    fmt::print(stderr, " There are:");
    for (const std::string& candidate : known) fmt::print(stderr, " {}", candidate);
  }
  fmt::print(stderr, "\n");
  return usage_error;
}

}  // namespace hpe::cli
