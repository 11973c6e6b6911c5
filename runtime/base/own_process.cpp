#include "runtime/base/own_process.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/base/error.h"

namespace hpe {

namespace fs = std::filesystem;

std::vector<std::string> own_folders() {
  std::vector<std::string> folders;
  const auto add = [&](const fs::path& file) {
    if (!file.empty()) folders.push_back(file.parent_path().string());
  };
  std::error_code ignored;
  Dl_info object{};
  if (::dladdr(reinterpret_cast<const void*>(&own_folders), &object) != 0 && object.dli_fname != nullptr)
    add(fs::canonical(object.dli_fname, ignored));
  add(fs::read_symlink("/proc/self/exe", ignored));
  return folders;
}

std::string find_own_file(const std::string& name, std::initializer_list<const char*> relative, hpeStatus missing,
                          const char* option) {
  std::string looked_in;
  std::error_code ignored;
  for (const std::string& folder : own_folders())
    for (const char* const from_there : relative) {
      const fs::path candidate = (fs::path(folder) / from_there / name).lexically_normal();
      if (fs::is_regular_file(candidate, ignored)) return candidate;
      looked_in.append(" ").append(candidate.parent_path().string());
    }
  HPE_THROW(missing, "{} was not found in{}; set {} to its path", name, looked_in, option);
}

void* open_own_library(const char* name) {
  for (const std::string& folder : own_folders())
    for (const char* const from_there : {"", "../lib"})
      if (void* const found = ::dlopen((fs::path(folder) / from_there / name).c_str(), RTLD_NOW | RTLD_LOCAL))
        return found;
  return ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

fs::path own_cache_folder() {
  const char* const wished = std::getenv("XDG_CACHE_HOME");  // NOLINT(concurrency-mt-unsafe): read only
  if (wished != nullptr && *wished == '/') return fs::path(wished) / "hpe";
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): likewise
  return home != nullptr && *home == '/' ? fs::path(home) / ".cache" / "hpe" : fs::path();
}

const char* rank_by_environment() noexcept {
  for (const char* const variable : rank_variables)
    if (const char* const rank = std::getenv(variable)) return rank;  // NOLINT(concurrency-mt-unsafe): read only
  return nullptr;
}

std::string name_of_output(const std::string& wanted) {
  std::error_code failure;
  if (const auto found = std::filesystem::status(wanted, failure);
      std::filesystem::exists(found) && !std::filesystem::is_regular_file(found))
    return wanted;
  return name_of_output(wanted, ::getpid(), rank_by_environment());
}

std::string name_of_output(const std::string& wanted, int process, const char* rank) {
  if (const auto at = wanted.find("%p"); at != std::string::npos)
    return wanted.substr(0, at) + std::to_string(process) + wanted.substr(at + 2);
  if (rank == nullptr || *rank == '\0') return wanted;
  const auto name = wanted.rfind('/') == std::string::npos ? 0 : wanted.rfind('/') + 1;
  const auto ending = wanted.rfind('.');
  const bool has_ending = ending != std::string::npos && ending > name;
  return has_ending ? fmt::format("{}.{}{}", wanted.substr(0, ending), rank, wanted.substr(ending))
                    : fmt::format("{}.{}", wanted, rank);
}

namespace {

std::uint64_t now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

std::uint64_t time_of_files() { return now(CLOCK_REALTIME_COARSE); }

std::uint64_t start_of_own_process() {
  constexpr int first_after_name = 3, start = 22;  // numbers of fields, in proc(5)
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may contain any character
  if (name_end == std::string::npos) return time_of_files();
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = first_after_name; field < start; ++field) fields >> skipped;
  std::uint64_t ticks = 0;
  if (!(fields >> ticks)) return time_of_files();
  const std::uint64_t since_boot = ticks * (1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
  return now(CLOCK_REALTIME) - now(CLOCK_BOOTTIME) + since_boot;
}

}  // namespace hpe
