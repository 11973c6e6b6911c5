#include "runtime/base/rank.h"

#include <cstdlib>
#include <initializer_list>

namespace hpe {

const char* rank_by_environment() noexcept {
  for (const char* const variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* const rank = std::getenv(variable)) return rank;  // NOLINT(concurrency-mt-unsafe): read only
  return nullptr;
}

}  // namespace hpe
