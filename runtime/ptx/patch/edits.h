#pragma once

/// Replacements of parts of a PTX text, and a function that reads the tokens of one statement.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/ptx/text/lexer.h"

namespace hpe::ptx::patch {

/// Replacements of parts of a text. Callers add them in ascending order of their positions.
class edits {
 public:
  void replace(std::size_t begin, std::size_t end, std::string by) { all_.push_back({begin, end, std::move(by)}); }
  void insert(std::size_t at, std::string what) { replace(at, at, std::move(what)); }
  void append(const edits& later) { all_.insert(all_.end(), later.all_.begin(), later.all_.end()); }

  [[nodiscard]] std::string apply(std::string_view text) const {
    std::string result;
    std::size_t at = 0;
    for (const edit& e : all_) {
      result.append(text.substr(at, e.begin - at)).append(e.by);
      at = e.end;
    }
    return result.append(text.substr(at));
  }

 private:
  struct edit {
    std::size_t begin, end;
    std::string by;
  };
  std::vector<edit> all_;
};

/// Returns the tokens up to and including the next ';'.
inline std::vector<token> take_statement(lexer& from) {
  std::vector<token> all;
  do all.push_back(from.take());
  while (!all.back().is(';') && all.back().what != token::kind::end);
  return all;
}

}  // namespace hpe::ptx::patch
