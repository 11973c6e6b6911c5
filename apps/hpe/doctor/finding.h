#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hpe::cli {

/// A finding of `hpe doctor` about one subject.
struct finding {
  enum class state : std::uint8_t {
    good,
    note,  ///< the subject works, but slower or with fewer resources than possible
    bad,   ///< a feature will not work
  };
  state how = state::good;
  std::string subject;                 ///< "CUDA driver"
  std::string text;                    ///< the finding and its consequence
  std::string remedy = {};             ///< the remedy; may be empty
  std::vector<std::string> more = {};  ///< details, one a line
};

}  // namespace hpe::cli
