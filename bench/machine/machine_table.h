#pragma once

#include <string>

#include "apps/predict/machine_profile.h"

namespace hpe::bench {

/// Returns a profile as text for people, with one line for each figure.
[[nodiscard]] std::string as_table(const predict::machine_profile& m);

}  // namespace hpe::bench
