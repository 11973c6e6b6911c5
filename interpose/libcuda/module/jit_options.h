#pragma once

/// The options of calls that load or link PTX. Only those of the two logs have an effect: soft devices have no
/// registers to limit and no levels of optimisation.

#include <cuda.h>

#include <cstddef>
#include <string_view>

namespace hpe::libcuda {

/// The program's buffers for messages.
class jit_logs {
 public:
  jit_logs() = default;
  /// Throws nothing; lists that are null or incomplete have no effect.
  jit_logs(unsigned count, const CUjit_option* options, void** values) noexcept;

  void clear() const noexcept;                          ///< both logs become empty
  void tell(std::string_view sentence) const noexcept;  ///< the error log becomes the sentence, as far as it fits

 private:
  struct log {
    char* text = nullptr;
    std::size_t room = 0;
    void** told = nullptr;  // where the program reads how much was written

    void write(std::string_view sentence) const noexcept;
  };
  log info_;
  log error_;
};

}  // namespace hpe::libcuda
