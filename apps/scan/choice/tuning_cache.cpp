#include "apps/scan/choice/tuning_cache.h"

#include <fmt/core.h>

#include <fstream>
#include <map>

#include "apps/command_line/report.h"

namespace hpe::scan {

namespace {

std::map<std::string, std::uint64_t> read(const std::string& path) {
  std::map<std::string, std::uint64_t> all;
  std::ifstream file(path);
  std::string key;
  for (std::uint64_t value = 0; file >> value && file.get() == ' ' && std::getline(file, key);) all[key] = value;
  return all;
}

}  // namespace

std::optional<std::uint64_t> tuning_cache::find(const std::string& key) const {
  if (path_.empty()) return std::nullopt;
  const auto all = read(path_);
  const auto found = all.find(key);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

void tuning_cache::keep(const std::string& key, std::uint64_t value) const {
  if (path_.empty()) return;
  auto all = read(path_);
  all[key] = value;
  std::string text;
  for (const auto& [k, v] : all) text += fmt::format("{} {}\n", v, k);
  command_line::keep_in_cache(path_, text);
}

}  // namespace hpe::scan
