#pragma once

#include <string>
#include <string_view>

namespace hpe::cudart {

/// If `function` belongs to a feature of CUDA that soft devices do not have, returns a sentence for the log that names
/// the feature; otherwise an empty string. `function` is the name of a function of the CUDA runtime or the driver.
[[nodiscard]] std::string missing_feature(std::string_view function);

}  // namespace hpe::cudart
