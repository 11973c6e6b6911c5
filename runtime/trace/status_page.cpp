#include "runtime/trace/status_page.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "runtime/os/virtual_memory.h"

namespace hpe::trace {

namespace {

status_page* make_page() noexcept {
  try {
    // The descriptor stays open until the process ends, because `hpe top` finds the page through it.
    static const auto& file = *new const os::file_descriptor(os::create_memory_file(status_file, sizeof(status_page)));
    void* const memory = ::mmap(nullptr, sizeof(status_page), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory != MAP_FAILED) {
      auto* const page = new (memory) status_page;
      page->process = ::getpid();
      page->started = start_of_process(::getpid());
      page->version.store(status_page::current_version, std::memory_order_release);
      return page;
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the process continues without a published page
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
  // The name of the program, in parentheses, may itself contain blanks and parentheses, so the search begins at the
  // last parenthesis.
  const char* at = std::strrchr(text, ')');
  constexpr int fields_before_the_start = 20;
  for (int i = 0; at != nullptr && i < fields_before_the_start; ++i) at = std::strchr(at + 1, ' ');
  return at != nullptr ? std::strtoull(at, nullptr, 10) : 0;
}

}  // namespace hpe::trace
