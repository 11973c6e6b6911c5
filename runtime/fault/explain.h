#pragma once

#include <string>

#include "runtime/coherence/region_table.h"
#include "runtime/memory/directory.h"

namespace hpe::fault {

/// A sentence for an access to an address of the UVAS that belongs to no live allocation: freed, past an end, or never
/// given out. Takes locks; not for handlers.
[[nodiscard]] std::string explain_stray_access(const std::byte* address, bool write, const memory::directory& directory,
                                               const coherence::region_table& regions);

}  // namespace hpe::fault
