#include "runtime/base/cache_file.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <system_error>
#include <utility>

#include "runtime/base/log.h"

namespace hpe {

namespace {

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

cache_file::cache_file(std::filesystem::path folder, const std::string& name, std::string key)
    : folder_(std::move(folder)), key_(std::move(key)) {
  std::replace(key_.begin(), key_.end(), '\n', ' ');
  file_ = folder_ / fmt::format("{}-{:016x}", name, std::hash<std::string>()(key_));
}

std::string cache_file::machine() {
  return fmt::format("{}; {}", first_line("/etc/machine-id"), first_line("/proc/driver/nvidia/version"));
}

std::optional<std::string> cache_file::load() const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream stream(file_);
  std::string key, text;
  if (!std::getline(stream, key) || key != key_ || !std::getline(stream, text)) return std::nullopt;
  return text;
}

void cache_file::store(const std::string& text) const {
  if (folder_.empty()) return;
  // The file is written under another name and renamed when it is complete, because other processes may read it at any
  // time.
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  const std::filesystem::path made = fmt::format("{}.{}", file_.string(), ::getpid());
  {
    std::ofstream stream(made);
    stream << key_ << '\n' << text << '\n';
    if (!stream.flush()) failure = std::make_error_code(std::errc::io_error);
  }
  if (!failure) std::filesystem::rename(made, file_, failure);
  if (!failure) return;
  std::error_code ignored;
  std::filesystem::remove(made, ignored);
  log(log_level::debug, "{} is not written: {}", file_.string(), failure.message());
}

}  // namespace hpe
