#pragma once

#include <string>

#include "runtime/coherence/region_table.h"
#include "runtime/memory/granule_table.h"

namespace hpe::fault {

/// Explains why an address of the UVAS is not in a live allocation: the memory was freed, the address is past the end
/// of an allocation, or hpe knows no allocation there. If hpe knows the allocation, the text contains its address and
/// its requested size. Takes locks, so signal handlers must not call this.
[[nodiscard]] std::string explain_stray_address(const std::byte* address, const memory::granule_table& granules,
                                                const coherence::region_table& regions);

/// The error message for an access to an address that is in no live allocation.
[[nodiscard]] std::string explain_stray_access(const std::byte* address, bool write,
                                               const memory::granule_table& granules,
                                               const coherence::region_table& regions);

}  // namespace hpe::fault
