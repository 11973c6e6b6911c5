#include "interpose/soft/cudart/memory/own_pages.h"

#include <fmt/core.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "runtime/check/watched_pages.h"

namespace hpe::cudart {

namespace {

struct memory_span {
  std::uintptr_t begin, end;
  [[nodiscard]] bool meets(const memory_span& other) const { return begin < other.end && other.begin < end; }
};

memory_span range_of(std::span<const char> bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  return {begin, begin + bytes.size()};
}

/// Whether the io_uring of this descriptor has a buffer in the range. The file fdinfo has a line "UserBufs: COUNT" and
/// then, for each buffer, a line "NUMBER: 0xADDRESS/BYTES"; while another thread uses the ring, the lines for the
/// buffers are missing.
bool ring_has(const std::string& fdinfo, const memory_span& wanted) {
  std::ifstream file(fdinfo);
  unsigned count = 0, listed = 0;
  bool in_list = false;
  for (std::string line; std::getline(file, line);) {
    std::uint64_t begin = 0, size = 0;
    if (std::sscanf(line.c_str(), "UserBufs: %u", &count) == 1) {
      in_list = true;
    } else if (in_list && std::sscanf(line.c_str(), " %*u: 0x%" SCNx64 "/%" SCNu64, &begin, &size) == 2) {
      ++listed;
      if (wanted.meets({begin, begin + size})) return true;
    } else {
      in_list = false;
    }
  }
  return listed < count;
}

}  // namespace

bool io_uring_has(std::span<const char> pages) {
  const memory_span wanted = range_of(pages);
  std::error_code none;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", none)) {
    const std::filesystem::path target = std::filesystem::read_symlink(each.path(), none);
    if (target != "anon_inode:[io_uring]") continue;
    if (ring_has("/proc/self/fdinfo/" + each.path().filename().string(), wanted)) return true;
  }
  return false;
}

std::optional<std::string> reason_to_keep(std::span<const char> pages) {
  const memory_span wanted = range_of(pages);
  if (check::is_on_stack(pages.data(), pages.size())) return "they are the stack of the calling thread";
  std::uintptr_t at = wanted.begin;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; at < wanted.end && std::getline(maps, line);) {
    memory_span mapped{};
    char access[5] = {};
    int name = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %n", &mapped.begin, &mapped.end, access,
                    &name) != 3)
      continue;
    if (!wanted.meets(mapped)) continue;
    if (mapped.begin > at) break;  // pages between `at` and the mapping are not mapped
    const std::string file = name > 0 ? line.substr(static_cast<std::size_t>(name)) : "";
    if (access[3] == 's')
      return fmt::format("they are a shared mapping ({}), which other processes may use",
                         file.empty() ? "no file" : file);
    if (access[0] != 'r' || access[1] != 'w') return "some of them are not readable and writable";
    at = mapped.end;
  }
  if (at < wanted.end) return "some of them are not mapped";
  if (io_uring_has(pages))
    return "they contain a buffer that is registered with io_uring, which would continue to use the old pages";
  return std::nullopt;
}

}  // namespace hpe::cudart
