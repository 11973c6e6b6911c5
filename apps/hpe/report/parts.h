#pragma once

/// The parts of a report, as processes wrote them (runtime/trace/report_part.h), and the page that is made of them.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/hpe/report/advice.h"

namespace hpe::cli {

/// A part as the rules of advice want it.
[[nodiscard]] recorded_process process_of(const nlohmann::json& part);

/// The parts in a folder, by rank and then by number of the process. Files that are no parts are named on standard
/// error and left out. None if there is no such folder.
[[nodiscard]] std::vector<nlohmann::json> read_parts(const std::filesystem::path& folder);

/// The page. command: what was run. ending: how it ended, in words.
[[nodiscard]] std::string page_of(const std::vector<nlohmann::json>& parts, const std::string& command,
                                  const std::string& ending);

/// page.html, with {{DATA}} where the data belong.
[[nodiscard]] const char* page_template();

}  // namespace hpe::cli
