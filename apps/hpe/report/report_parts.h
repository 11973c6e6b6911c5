#pragma once

/// The parts of a report, as processes wrote them (runtime/trace/report_part.h), and the page made from them.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/hpe/report/advice.h"

namespace hpe::cli {

/// Converts a part to the input of the rules of advice.
[[nodiscard]] recorded_process process_of(const nlohmann::json& part);

/// Reads the parts in a folder, sorted by rank and then by process number. Skips files without the ending .json. Skips
/// other files that are not parts of a report too, and prints their names and the reason on standard error. Returns an
/// empty list if the folder does not exist.
[[nodiscard]] std::vector<nlohmann::json> read_parts(const std::filesystem::path& folder);

/// Makes the page. command: the program's command line. ending: how the program ended, in words.
[[nodiscard]] std::string page_of(const std::vector<nlohmann::json>& parts, const std::string& command,
                                  const std::string& ending);

/// Returns the text of page.html, with {{DATA}} in place of the data.
[[nodiscard]] const char* page_template();

}  // namespace hpe::cli
