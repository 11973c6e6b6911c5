#include "runtime/base/error.h"

#include <cerrno>
#include <cstring>

namespace hpe {

void throw_system_error(const std::string& what) {
  const int code = errno;
  HPE_THROW(HPE_ERROR_SYSTEM, "{}: {}", what, std::strerror(code));  // NOLINT(concurrency-mt-unsafe): safe in glibc
}

}  // namespace hpe
