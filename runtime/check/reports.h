#pragma once

/// Findings as files for other programs.

#include <string>
#include <vector>

#include "runtime/check/findings.h"

namespace hpe::check {

/// The format of docs/check.md.
[[nodiscard]] std::string json_of(const std::vector<finding>& all);

/// SARIF 2.1.0. Places in the folder `root` become relative to it.
[[nodiscard]] std::string sarif_of(const std::vector<finding>& all, const std::string& root);

}  // namespace hpe::check
