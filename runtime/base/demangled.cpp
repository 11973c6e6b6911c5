#include "runtime/base/demangled.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace hpe {

std::string demangled(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;  // "f" alone would be the type float
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return text != nullptr ? text.get() : symbol;
}

}  // namespace hpe
