#include "interpose/soft/cudart/device/thread_state.h"

namespace hpe::cudart {

thread_state& this_thread() noexcept {
  static thread_local thread_state mine;
  return mine;
}

}  // namespace hpe::cudart
