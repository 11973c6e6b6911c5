#include "runtime/trace/call_stack.h"

#define UNW_LOCAL_ONLY
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <libunwind.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// Returns how many libraries this process has loaded so far.
unsigned long long libraries_loaded() {
  unsigned long long loaded = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        *static_cast<unsigned long long*>(to) = info->dlpi_adds;
        return 1;  // stops the iteration: every entry contains the total
      },
      &loaded);
  return loaded;
}

// Returns libdwfl's description of this process. libdwfl reads the mappings of the process from /proc, and reads them
// again if the process has loaded further libraries.
Dwfl* own_process() {
  static char* debug_path = nullptr;
  static const Dwfl_Callbacks callbacks{dwfl_linux_proc_find_elf, dwfl_standard_find_debuginfo, nullptr, &debug_path};
  static Dwfl* const process = dwfl_begin(&callbacks);
  static unsigned long long seen = 0;
  const unsigned long long loaded = libraries_loaded();
  if (process == nullptr || loaded == seen) return process;
  seen = loaded;
  dwfl_report_begin_add(process);
  const bool read = dwfl_linux_proc_report(process, getpid()) == 0 && dwfl_report_end(process, nullptr, nullptr) == 0;
  return read ? process : nullptr;
}

struct dwarf_line {
  const char* file = nullptr;
  int line = 0;

  // Lines of the headers of hpe, of the CUDA runtime, of the compilers and of libc, and of the functions that nvcc
  // makes for launches are not lines of the program.
  [[nodiscard]] bool is_of_the_program() const {
    if (file == nullptr) return false;
    for (const char* const other : {"/include/hpe/", "/cuda_runtime.h", "/include/crt/", ".stub.c", "/include/c++/",
                                    "/lib/gcc/", "/bits/string_fortified.h"})
      if (std::strstr(file, other) != nullptr) return false;
    return true;
  }
};

dwarf_line place_of(Dwfl* process, Dwarf_Addr instruction) {
  dwarf_line result;
  if (Dwfl_Line* const line = dwfl_getsrc(process, instruction); line != nullptr)
    result.file = dwfl_lineinfo(line, nullptr, &result.line, nullptr, nullptr, nullptr);
  return result;
}

dwarf_line call_of(Dwarf_Die* inlined, Dwarf_Files* files) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0;
  Dwarf_Word line = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 ||
      dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0)
    return {};
  return {dwarf_filesrc(files, file, nullptr, nullptr), static_cast<int>(line)};
}

// Whether a function is one that nvcc makes to pass the arguments of a launch. It is called by a function with the
// kernel's name, at the line of the kernel's definition; for templates, through another function.
bool is_stub(const char* name) {
  if (name == nullptr) return false;
  return std::strstr(name, "__device_stub__") == name || std::strstr(name, "__wrapper__device_stub_") == name;
}

// Whether the call instruction that contains this address calls such a function. Then the address is in the function
// with the kernel's name, or in a function into which the compiler has inlined it.
bool calls_stub(Dwfl* process, std::uintptr_t last_byte_of_call) {
  constexpr unsigned char call = 0xe8;  // with a distance of four bytes
  const std::uintptr_t next = last_byte_of_call + 1;
  const auto* const code = reinterpret_cast<const unsigned char*>(next - 1 - sizeof(std::int32_t));
  if (*code != call) return false;
  std::int32_t distance = 0;
  std::memcpy(&distance, code + 1, sizeof distance);
  const std::uintptr_t target = next + static_cast<std::uintptr_t>(std::intptr_t{distance});
  const char* const name = dwfl_module_addrname(dwfl_addrmodule(process, target), target);
  return name != nullptr && std::strstr(name, "__device_stub__") != nullptr;
}

// Returns the innermost place at which the program calls one of the inline functions that contain the instruction.
dwarf_line call_of_inlined(Dwfl* process, Dwarf_Addr instruction) {
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = dwfl_addrdie(process, instruction, &bias);
  Dwarf_Files* files = nullptr;
  std::size_t file_count = 0;
  Dwarf_Die* innermost = nullptr;
  if (unit == nullptr || dwarf_getsrcfiles(unit, &files, &file_count) != 0 ||
      dwarf_getscopes(unit, instruction - bias, &innermost) <= 0)
    return {};
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(innermost, &scopes);  // nested as in the machine code
  dwarf_line result;
  for (int i = 0; i < count && !result.is_of_the_program(); ++i)
    if (dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine && !is_stub(dwarf_diename(&scopes[i])))
      result = call_of(&scopes[i], files);
  std::free(scopes);
  std::free(innermost);
  return result;
}

}  // namespace

// For each thread, unw_backtrace caches how to unwind from each return address. So it is about 20 times as fast as
// libgcc's unwinder.
__attribute__((visibility("default"))) int hpe_take_stack(void** frames, int capacity) {
  return unw_backtrace(frames, capacity);
}

__attribute__((visibility("default"))) bool hpe_source_line(const void* instruction, char* text, std::size_t capacity) {
  Dwfl* const process = own_process();
  if (process == nullptr) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(instruction);
  dwarf_line found = place_of(process, address);
  if (found.file != nullptr && (!found.is_of_the_program() || calls_stub(process, address)))
    found = call_of_inlined(process, address);
  if (!found.is_of_the_program()) return false;
  std::snprintf(text, capacity, "%s:%d", found.file, found.line);
  return true;
}
