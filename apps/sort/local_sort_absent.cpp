// Where there is no CUDA toolkit.

#include "apps/sort/local_sort.h"

namespace hpe::sort {

const local_sort* find_local_sort(const std::string& /*name*/) { return nullptr; }

}  // namespace hpe::sort
