#pragma once

#include <string>
#include <string_view>

namespace hpe::cudart {

/// For the log: a sentence that names the feature of CUDA to which a function belongs that soft devices do not have;
/// empty for other functions. `function` is a name of the runtime or of the driver.
[[nodiscard]] std::string missing_feature(std::string_view function);

}  // namespace hpe::cudart
