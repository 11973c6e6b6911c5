#pragma once

#include <memory>

#include "interpose/cudart/work.h"

namespace hpe::cudart {

class context;

/// Tells hpe (hpe/announce.h) of work in a stream's queue; null if there is nothing to tell. What hpe does not take (a
/// lost device) is told the program by the work itself.
[[nodiscard]] std::shared_ptr<announced_work> announce_to_hpe(context& cuda, const memory_uses& uses);

}  // namespace hpe::cudart
