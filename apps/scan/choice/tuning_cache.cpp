#include "apps/scan/choice/tuning_cache.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

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
  std::error_code failed;
  const std::filesystem::path target(path_), made = path_ + "." + std::to_string(::getpid());
  std::filesystem::create_directories(target.parent_path(), failed);
  std::ofstream file(made);
  for (const auto& [k, v] : all) file << v << ' ' << k << '\n';
  file.close();
  if (file) std::filesystem::rename(made, target, failed);
  if (!file || failed) std::filesystem::remove(made, failed);
}

}  // namespace hpe::scan
