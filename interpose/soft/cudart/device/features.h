#pragma once

#include <string>
#include <string_view>

namespace hpe::cudart {

/// Returns a sentence for the log that names the CUDA feature to which a function belongs, if soft devices do not have
/// this feature; otherwise an empty string. `function` is the name of a function of the CUDA runtime or the driver.
[[nodiscard]] std::string missing_feature(std::string_view function);

}  // namespace hpe::cudart
