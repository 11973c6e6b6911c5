#include "runtime/base/rank.h"

#include <cstdlib>

namespace hpe {

const char* rank_by_environment() noexcept {
  for (const char* const variable : rank_variables)
    if (const char* const rank = std::getenv(variable)) return rank;  // NOLINT(concurrency-mt-unsafe): read only
  return nullptr;
}

}  // namespace hpe
