#pragma once

#include <memory>

#include "interpose/soft/cudart/stream/stream_task.h"

namespace hpe::cudart {

class device_table;
class memory_table;

/// Announces to hpe the work that waits in a stream's queue (hpe/announce.h). Returns null if hpe refuses the
/// announcement, for example because a device is lost. In this case, the work itself reports the error to the program.
[[nodiscard]] std::shared_ptr<announced_work> announce_to_hpe(const device_table& devices, const memory_table& memory,
                                                              const task_memory_uses& uses);

}  // namespace hpe::cudart
