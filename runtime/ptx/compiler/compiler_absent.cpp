#include "runtime/ptx/compiler/compiler.h"

namespace hpe::ptx {

std::unique_ptr<compiled_image> compile(const image&) { return nullptr; }

}  // namespace hpe::ptx
