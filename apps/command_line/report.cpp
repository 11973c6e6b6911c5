#include "apps/command_line/report.h"

#include <fmt/chrono.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/command_line/commit.h"
#include "hpe/hpe.hpp"
#include "runtime/os/output_file.h"

namespace hpe::command_line {

namespace {

nlohmann::json as_json(const report& r) {
  nlohmann::json object{
      {"program", r.program}, {"about", r.about},   {"title", r.title},     {"commit", commit()},
      {"machine", machine()}, {"time", time_now()}, {"repeats", r.repeats}, {"results", nlohmann::json::array()}};
  if (!r.devices.empty()) object["devices"] = r.devices;
  for (const figure& f : r.figures)
    object["results"].push_back({{"what", f.what},
                                 {"value", f.value},
                                 {"unit", f.unit},
                                 {"spread", f.spread},
                                 {"bar", f.bar},
                                 {"reached", f.reached}});
  return object;
}

}  // namespace

void write_json(const report& r, const std::string& file) {
  if (!file.empty()) write_text(text_of(as_json(r), 2) + '\n', file);
}

void write_text(const std::string& text, const std::string& file) {
  if (file.empty()) return;
  if (file == "-") {
    std::fputs(text.c_str(), stdout);
    return;
  }
  os::write_file(file, text);
}

void keep_in_cache(const std::string& file, const std::string& text) noexcept {
  try {
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    os::write_file(file, text);
  } catch (const std::exception&) {
    return;  // the next run of the program lacks the cached text, and measures again
  }
}

std::string text_of(const nlohmann::json& object, int indent) {
  return object.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string text_of(const nlohmann::ordered_json& object, int indent) {
  return object.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void answer(const report& r, const std::string& text, const std::string& json, bool quiet) {
  if (!quiet && json != "-") std::fputs(text.c_str(), stdout);
  write_json(r, json);
}

std::vector<std::string> names_of_devices(int count) {
  std::vector<std::string> names;
  for (int d = 0; d < count; ++d) names.emplace_back(device_info(d).name);
  return names;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string machine() {
  std::ifstream info("/proc/cpuinfo");
  std::string name = "unknown processor";
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
      name = line.substr(line.find(": ") + 2);
      break;
    }
  return fmt::format("{}, {} cores", name, std::thread::hardware_concurrency());
}

std::string commit() { return HPE_COMMIT; }

std::string time_now() { return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace hpe::command_line
