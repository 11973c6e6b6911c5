#pragma once

#include <memory>

#include "interpose/cudart/work.h"

namespace hpe::cudart {

class device_table;
class memory_table;

/// Tells hpe (hpe/announce.h) of work in a stream's queue; null if there is nothing to tell. What hpe does not take (a
/// lost device) is told the program by the work itself.
[[nodiscard]] std::shared_ptr<announced_work> announce_to_hpe(const device_table& devices, const memory_table& memory,
                                                              const memory_uses& uses);

}  // namespace hpe::cudart
