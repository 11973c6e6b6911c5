#pragma once

#include <memory>

#include "interpose/cudart/stream/work.h"

namespace hpe::cudart {

class device_table;
class memory_table;

/// Announces work in a stream's queue to hpe (hpe/announce.h). Returns null if the work uses no memory, or if hpe
/// refuses the announcement (a lost device); the work itself then reports the error to the program.
[[nodiscard]] std::shared_ptr<announced_work> announce_to_hpe(const device_table& devices, const memory_table& memory,
                                                              const memory_uses& uses);

}  // namespace hpe::cudart
