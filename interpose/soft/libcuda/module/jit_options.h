#pragma once

/// The options of calls that load or link PTX. Only the options for the two logs have an effect. The other options
/// concern registers and optimisation levels, which do not exist on soft devices.

#include <cuda.h>

#include <cstddef>
#include <string_view>

namespace hpe::libcuda {

/// The program's buffers for the info log and the error log.
class jit_logs {
 public:
  jit_logs() = default;
  /// Reads the buffers from the lists of options and values. Ignores the options if a list is null.
  jit_logs(unsigned count, const CUjit_option* options, void** values) noexcept;

  void clear() const noexcept;                          ///< empties both logs
  void tell(std::string_view sentence) const noexcept;  ///< writes the sentence to the error log, as far as it fits

 private:
  struct log {
    char* text = nullptr;
    std::size_t room = 0;
    void** told = nullptr;  // the option value in which hpe stores the number of bytes written

    void write(std::string_view sentence) const noexcept;
  };
  log info_;
  log error_;
};

}  // namespace hpe::libcuda
