#include "runtime/trace/status_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace hpe::trace {

namespace {

struct own_file {
  pid_t process = 0;  // the one that made it: a child made by fork has another number
  std::string path;
};

own_file& made() {
  static auto* const file = new own_file;  // outlives all static objects
  return *file;
}

[[gnu::destructor]] void remove_own_file() {
  const own_file& file = made();
  if (!file.path.empty() && file.process == ::getpid()) ::unlink(file.path.c_str());
}

/// Zeroed memory for the page, in a new file if there can be one.
void* memory_of_page(const std::string& path) noexcept {
  // A file of that name is one of a dead process, or else not ours: then it cannot be removed.
  ::unlink(path.c_str());
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return MAP_FAILED;
  void* memory = MAP_FAILED;
  // posix_fallocate, because a full /dev/shm would make the first count a bus error.
  if (::posix_fallocate(file, 0, sizeof(status_page)) == 0)
    memory = ::mmap(nullptr, sizeof(status_page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) ::unlink(path.c_str());
  ::close(file);
  return memory;
}

status_page* make_page() noexcept {
  const pid_t process = ::getpid();
  try {
    const std::string path = std::string(status_folder) + '/' + status_prefix(::getuid()) + std::to_string(process);
    if (void* const memory = memory_of_page(path); memory != MAP_FAILED) {
      auto* const page = new (memory) status_page;
      page->process = process;
      page->started = start_of_process(process);
      page->version.store(status_page::current_version, std::memory_order_release);
      made() = {process, path};
      return page;
    }
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the process goes on unpublished
  }
  static constinit status_page unpublished;
  return &unpublished;
}

}  // namespace

status_page& status_page::own() noexcept {
  static status_page* const page = make_page();
  return *page;
}

void status_page::tell_devices(const device* first, std::uint32_t how_many) noexcept {
  how_many = std::min(how_many, counters::most_devices);
  std::copy(first, first + how_many, device_table.begin());
  devices.store(how_many, std::memory_order_release);
}

std::uint64_t start_of_process(pid_t process) noexcept {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/stat", process);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "re"), &std::fclose);
  if (file == nullptr) return 0;
  char text[1024];
  text[std::fread(text, 1, sizeof text - 1, file.get())] = '\0';
  // The name of the program, in parentheses, may have blanks and parentheses itself.
  const char* at = std::strrchr(text, ')');
  constexpr int fields_before_the_start = 20;
  for (int i = 0; at != nullptr && i < fields_before_the_start; ++i) at = std::strchr(at + 1, ' ');
  return at != nullptr ? std::strtoull(at, nullptr, 10) : 0;
}

}  // namespace hpe::trace
