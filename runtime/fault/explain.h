#pragma once

#include <string>

#include "runtime/coherence/region_table.h"
#include "runtime/memory/granule_table.h"

namespace hpe::fault {

/// Text about an address of the UVAS that is in no live allocation: freed, past an end, or never allocated. Names the
/// allocation as the program made it. Takes locks; not for signal handlers.
[[nodiscard]] std::string explain_stray_address(const std::byte* address, const memory::granule_table& granules,
                                                const coherence::region_table& regions);

/// The message about an access to such an address.
[[nodiscard]] std::string explain_stray_access(const std::byte* address, bool write,
                                               const memory::granule_table& granules,
                                               const coherence::region_table& regions);

}  // namespace hpe::fault
