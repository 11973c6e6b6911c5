#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/core/memory/allocator.h"
#include "runtime/core/operations/launcher.h"
#include "runtime/spread/footprint.h"

namespace hpe::core {

/// Returns how device work that uses these bytes accesses them.
[[nodiscard]] inline hpeAccessMode mode_of(const spread::used_bytes& used) {
  return used.is_overwritten ? HPE_OUT : used.is_written ? HPE_INOUT : HPE_IN;
}

/// One of the parts of a launch that run one after the other: the blocks that each device runs in this part, and the
/// hpe memory that these blocks use.
struct part_in_time {
  spread::part_of_devices blocks;
  std::vector<hpeAccess> accesses;
  std::vector<written_rows> rows;
};

/// Cuts a launch whose memory does not fit on `count` devices into parts that run on these devices one after the other.
/// Returns one part if all bytes that the launch can touch fit at once. The caller queues each part as a separate
/// submission with the part's accesses. The submission brings the part's data into device memory and evicts data of
/// earlier parts. If device memory is free, the data of the next part is brought in while a part runs.
///
/// others: memory that each part uses besides its arrays, and that its accesses do not name. obstacle: the reason why
/// the grid must not be cut, for example "it uses ..."; empty if the grid may be cut. refusal: the error of the attempt
/// to run the launch in one piece. Throws HPE_ERROR_OUT_OF_MEMORY if the launch cannot run in parts; the message
/// contains `refusal` and the reason. Thread-safe.
[[nodiscard]] std::vector<part_in_time> cut_in_time(allocator& memory, const spread::kernel_model& kernel,
                                                    const spread::launch& launch, std::uint32_t count,
                                                    std::span<const hpeAccess> others, const std::string& obstacle,
                                                    const std::string& refusal);

/// Logs that work of the program runs with data in zero-copy memory, for the reason `refusal`: the first time as a
/// warning.
void tell_of_zero_copy(const std::string& refusal) noexcept;

}  // namespace hpe::core
