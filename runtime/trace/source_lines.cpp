// With libdwfl of elfutils: this process is looked at as any other. One thread, at the end of the process.
#include "runtime/trace/source_lines.h"

#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace {

Dwfl* own_process() {
  static char* debug_path = nullptr;
  static const Dwfl_Callbacks callbacks{dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo, nullptr, &debug_path};
  Dwfl* const result = dwfl_begin(&callbacks);
  if (result == nullptr) return nullptr;
  const bool read = dwfl_linux_proc_report(result, getpid()) == 0 && dwfl_report_end(result, nullptr, nullptr) == 0;
  return read ? result : nullptr;
}

}  // namespace

__attribute__((visibility("default"))) bool hpe_source_line(const void* instruction, char* text, std::size_t capacity) {
  static Dwfl* const process = own_process();
  if (process == nullptr) return false;
  Dwfl_Line* const line = dwfl_getsrc(process, reinterpret_cast<std::uintptr_t>(instruction));
  int number = 0;
  const char* const file = line != nullptr ? dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
  if (file == nullptr) return false;
  std::snprintf(text, capacity, "%s:%d", file, number);
  return true;
}
