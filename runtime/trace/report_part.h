#pragma once

/// HPE_REPORT: what this process contributes to the page of `hpe run --report`: its profile, its trace, its counters
/// over time. It is written into a file of its own in a folder that all processes of the job share, after 1, 2, 4, ...
/// seconds and when the process exits, so a process that is killed leaves what it had done until then. `hpe` makes the
/// page of the files (apps/hpe/report).

#include <string>

#include "hpe/hpe.h"

namespace hpe::trace {

/// Begins to collect if page, the value of HPE_REPORT, is not empty and nothing is collected yet. Throws
/// HPE_ERROR_SYSTEM if the folder cannot be made.
HPE_API void start_report(const std::string& page);

/// The folder of the parts of a page.
[[nodiscard]] inline std::string folder_of_parts(const std::string& page) { return page + ".parts"; }

}  // namespace hpe::trace
