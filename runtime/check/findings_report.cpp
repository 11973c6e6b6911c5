#include "runtime/check/findings_report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/check/reports.h"

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

template <class Text>
void write_file(const char* option, const std::string& chosen, Text text) {
  if (chosen.empty()) return;
  const std::string path = with_process_number(chosen);
  std::ofstream file(path);
  file << text();
  file.close();
  if (!file) log(log_level::error, "HPE_CHECK: the file {} of {} cannot be written", path, option);
}

}  // namespace

findings_report::findings_report(const options& chosen)
    : json_(chosen.check_json),
      sarif_(chosen.check_sarif),
      status_(static_cast<int>(chosen.check_status)),
      process_(::getpid()) {
  constexpr std::uint64_t most_status = 255;
  HPE_REQUIRE(chosen.check_status <= most_status, HPE_ERROR_INVALID_ARGUMENT,
              "HPE_CHECK_STATUS is {}; an exit status is a number from 0 to {}", chosen.check_status, most_status);
  if (!chosen.check_ignore.empty()) ignored_ = ignored_findings(read_text(chosen.check_ignore));
}

bool findings_report::is_of_this_process() const noexcept { return process_ == ::getpid(); }

void findings_report::write(const std::vector<finding>& all) const {
  std::string text;
  for (const finding& each : all) text += text_of(each);
  text += all.empty() ? "hpe check: no findings\n" : fmt::format("hpe check: {} findings\n", all.size());
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  write_file("HPE_CHECK_JSON", json_, [&] { return json_of(all); });
  write_file("HPE_CHECK_SARIF", sarif_, [&] { return sarif_of(all, std::filesystem::current_path().string()); });
}

}  // namespace hpe::check
