#pragma once

#include <string>

#include "runtime/coherence/region_table.h"
#include "runtime/memory/granule_table.h"

namespace hpe::fault {

/// Part of a sentence for an address of the UVAS that belongs to no live allocation: freed, past an end, or never given
/// out. It names the allocation as the program made it. Takes locks; not for handlers.
[[nodiscard]] std::string explain_stray_address(const std::byte* address, const memory::granule_table& granules,
                                                const coherence::region_table& regions);

/// The sentence for an access to it.
[[nodiscard]] std::string explain_stray_access(const std::byte* address, bool write,
                                               const memory::granule_table& granules,
                                               const coherence::region_table& regions);

}  // namespace hpe::fault
