#pragma once

#include <vector>

#include "runtime/check/findings.h"

namespace hpe {
struct options;
}

namespace hpe::cudart {

/// Makes hpe check the program (HPE_CHECK) until its end, and report the findings then. Throws HPE_ERROR_NOT_SUPPORTED
/// with the reason if the options contain something that cannot be checked, and HPE_ERROR_INVALID_ARGUMENT for a wrong
/// file of HPE_CHECK_IGNORE.
void start_checking(const options& chosen);

/// Returns the findings so far, without those that only the end of the program shows, and forgets them. For tests.
[[nodiscard]] std::vector<check::finding> take_findings();

}  // namespace hpe::cudart
