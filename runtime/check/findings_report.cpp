#include "runtime/check/findings_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/base/own_process.h"

namespace hpe::check {

namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  HPE_REQUIRE(file.good(), HPE_ERROR_INVALID_ARGUMENT, "HPE_CHECK_IGNORE: the file {} cannot be read", path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string with_process_number(std::string path) {
  if (const auto at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(::getpid()));
  return path;
}

}  // namespace

findings_report::findings_report(const options& chosen)
    : json_(chosen.check_json), status_(static_cast<int>(chosen.check_status)), process_(::getpid()) {
  constexpr std::uint64_t most_status = 255;
  HPE_REQUIRE(chosen.check_status <= most_status, HPE_ERROR_INVALID_ARGUMENT,
              "HPE_CHECK_STATUS is {}; an exit status is a number from 0 to {}", chosen.check_status, most_status);
  if (!chosen.check_ignore.empty()) ignored_ = ignored_findings(read_text(chosen.check_ignore));
}

bool findings_report::is_of_this_process() const noexcept { return process_ == ::getpid(); }

void findings_report::write(const std::vector<finding>& all) const {
  const char* const rank = rank_by_environment();
  constexpr std::string_view head = "hpe check: ";
  const std::string own_head = rank == nullptr ? std::string(head) : fmt::format("hpe check, rank {}: ", rank);
  std::string text;
  for (const finding& each : all) text += own_head + text_of(each).substr(head.size());
  text += own_head + (all.empty() ? "no findings\n" : fmt::format("{} findings\n", all.size()));
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (json_.empty()) return;
  const std::string path = with_process_number(json_);
  std::ofstream file(path);
  file << json_of(all, rank);
  file.close();
  if (!file) log(log_level::error, "HPE_CHECK_JSON: the file {} cannot be written", path);
}

}  // namespace hpe::check
