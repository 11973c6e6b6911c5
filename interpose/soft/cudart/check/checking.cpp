// The report is written when the program ends, after the program's own exit handlers and the destructors of its static
// objects: this library's constructor registers the handler before the program's code runs.

#include "interpose/soft/cudart/check/checking.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "interpose/soft/cudart/check/checked_memory.h"
#include "interpose/soft/cudart/check/watched_memory.h"
#include "interpose/soft/cudart/device/context.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/check/reports.h"

namespace hpe::cudart {

namespace {

struct settings {
  std::string json, sarif;
  int status = 0;
  ::pid_t process = 0;
};
settings* chosen_settings = nullptr;

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

void write_report(const std::vector<check::finding>& all) {
  std::string text;
  for (const check::finding& each : all) text += check::text_of(each);
  text += all.empty() ? "hpe check: no findings\n" : fmt::format("hpe check: {} findings\n", all.size());
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  write_file("HPE_CHECK_JSON", chosen_settings->json, [&] { return check::json_of(all); });
  write_file("HPE_CHECK_SARIF", chosen_settings->sarif,
             [&] { return check::sarif_of(all, std::filesystem::current_path().string()); });
}

void end_checking(int status, void* /*unused*/) {
  if (chosen_settings == nullptr || chosen_settings->process != ::getpid()) return;
  try {
    process().finish_work_untold();
    end_watches(true);
    const std::vector<check::finding> all = checker()->finish();
    write_report(all);
    // glibc runs the remaining exit handlers, and then ends the process with this status.
    if (!all.empty() && status == 0 && chosen_settings->status != 0) ::exit(chosen_settings->status);
  } catch (const std::exception& caught) {
    log(log_level::error, "HPE_CHECK: no report was written: {}", caught.what());
  }
}

[[gnu::constructor]] void register_end() { ::on_exit(end_checking, nullptr); }

}  // namespace

void start_checking(const options& chosen) {
  constexpr const char* why =
      "HPE_CHECK works neither with HPE_SPREAD nor with HPE_OVERSUBSCRIBE=on: hpe runs launches of such programs in "
      "parts, whose accesses it does not record for each launch";
  HPE_REQUIRE(!chosen.spread && chosen.oversubscribe != oversubscription::on, HPE_ERROR_NOT_SUPPORTED, "{}", why);
  constexpr std::uint64_t most_status = 255;
  HPE_REQUIRE(chosen.check_status <= most_status, HPE_ERROR_INVALID_ARGUMENT,
              "HPE_CHECK_STATUS is {}; an exit status is a number from 0 to {}", chosen.check_status, most_status);
  check::ignored_findings ignored;
  if (!chosen.check_ignore.empty()) ignored = check::ignored_findings(read_text(chosen.check_ignore));
  // Memory of hpeMalloc, and variables of modules. The bytes behind an allocation of the program are memory of hpe too.
  const auto is_other = [](std::uint64_t address) {
    const auto found = process().memory().find_also_of_hpe(reinterpret_cast<const void*>(address));
    return found && !process().memory().find(found->base) && !is_kept_memory(found->base);
  };
  // Accesses are recorded in three copies of the address space, which therefore must be small.
  if (::getenv("HPE_SEGMENT_SIZE") == nullptr)
    ::setenv("HPE_SEGMENT_SIZE", "256G", 0);  // NOLINT(concurrency-mt-unsafe)
  chosen_settings =
      new settings{chosen.check_json, chosen.check_sarif, static_cast<int>(chosen.check_status), ::getpid()};
  // Neither object is ever deleted, because threads use them until the process ends.
  start_watching();
  set_checker(new check::checker(std::move(ignored), is_fresh_memory, is_other, take_touches),
              {watch, [] { end_watches(false); }});
}

std::vector<check::finding> take_findings() {
  return checker() != nullptr ? checker()->take() : std::vector<check::finding>();
}

}  // namespace hpe::cudart
