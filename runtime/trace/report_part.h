#pragma once

/// HPE_REPORT: this process's part of the page of `hpe run --report`. The part contains the process's profile, its
/// trace, and its counters over time. Each process writes its own file to a folder that all processes of the job share,
/// after 1, 2, 4, ... seconds and when it exits, so if a process is killed, its last file remains. `hpe` makes the page
/// from the files (apps/hpe/report).

#include <string>

#include "hpe/hpe.h"

namespace hpe::trace {

/// Begins to collect the part if `page`, the value of HPE_REPORT, is not empty; later calls have no effect. Throws
/// HPE_ERROR_SYSTEM if the folder cannot be made.
HPE_API void start_report(const std::string& page);

/// Returns the folder that contains the parts of a page.
[[nodiscard]] inline std::string folder_of_parts(const std::string& page) { return page + ".parts"; }

}  // namespace hpe::trace
