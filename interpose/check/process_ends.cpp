// The ends of a process that run no exit handler, or whose exit handlers do not know the status: _exit, quick_exit and
// exec. The report of the check is written there too (runtime/check/process_report.h). A signal handler that calls
// _exit may have interrupted code that holds a lock which the report needs, so such a process has no report.

#include <alloca.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/check/process_report.h"
#include "runtime/os/next_function.h"

#define HPE_INTERPOSE extern "C" __attribute__((visibility("default")))

extern char** environ;

namespace {

using hpe::os::next_function;

using arguments = char* const*;

constinit next_function<void(int)> next_exit("_exit");
constinit next_function<void(int)> next_quick_exit("quick_exit");
constinit next_function<int(const char*, arguments, arguments)> next_execve("execve");
constinit next_function<int(const char*, arguments, arguments)> next_execvpe("execvpe");
constinit next_function<int(int, arguments, arguments)> next_fexecve("fexecve");
constinit next_function<int(int, const char*, arguments, arguments, int)> next_execveat("execveat");

// Whether the calling thread executes a signal handler.
bool is_in_signal_handler() noexcept {
  struct search {
    bool found = false;
  } its;
  const auto look = [](_Unwind_Context* frame, void* to) {
    int is_interrupted = 0;  // the caller of this frame is the operating system
    static_cast<void>(_Unwind_GetIPInfo(frame, &is_interrupted));
    if (is_interrupted == 0) return _URC_NO_REASON;
    static_cast<search*>(to)->found = true;
    return _URC_END_OF_STACK;
  };
  _Unwind_Backtrace(look, &its);
  return its.found;
}

[[noreturn]] void end(int status) noexcept {
  if (hpe::check::has_report() && !is_in_signal_handler()) status = hpe::check::end_report(status);
  next_exit(status);
  __builtin_unreachable();
}

std::atomic<int> quick_status{0};

// libc's quick_exit runs this function after the program's own functions of at_quick_exit, which are registered later.
void end_quickly() noexcept { end(quick_status); }

[[gnu::constructor]] void prepare() {
  next_exit.find();
  next_execve.find();
  ::at_quick_exit(end_quickly);
}

// Whether exec would find a program. After a failed call, the process continues, and its report is written later.
bool is_program(const char* file, bool in_path) {
  if (file == nullptr) return false;
  const char* const path = std::getenv("PATH");
  if (!in_path || std::strchr(file, '/') != nullptr || path == nullptr) return ::access(file, X_OK) == 0;
  const std::string folders = path;
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string folder = begin == end ? "." : folders.substr(begin, end - begin);
    if (::access((folder + '/' + file).c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

void end_before_exec(const char* file, bool in_path) {
  if (hpe::check::has_report() && is_program(file, in_path)) static_cast<void>(hpe::check::end_report(0));
}

void end_before_exec_of_descriptor() {
  if (hpe::check::has_report()) static_cast<void>(hpe::check::end_report(0));
}

// Makes an array of the arguments of execl and similar functions, which end with a null pointer, and calls
// execute(array). Afterwards `rest` begins behind the null pointer. The array is on the stack, as in libc, because the
// child of vfork may call these functions.
template <class Execute>
int with_array(const char* first, std::va_list& rest, const Execute& execute) noexcept {
  std::va_list again;
  va_copy(again, rest);
  std::size_t count = 1;  // with the null pointer
  while (va_arg(again, char*) != nullptr) ++count;
  va_end(again);
  auto** const all = static_cast<char**>(alloca((count + 1) * sizeof(char*)));
  all[0] = const_cast<char*>(first);
  for (std::size_t i = 1; i <= count; ++i) all[i] = va_arg(rest, char*);
  return execute(all);
}

}  // namespace

HPE_INTERPOSE __attribute__((noreturn)) void _exit(int status) { end(status); }

HPE_INTERPOSE __attribute__((noreturn)) void _Exit(int status) noexcept { end(status); }

HPE_INTERPOSE __attribute__((noreturn)) void quick_exit(int status) noexcept {
  quick_status = status;
  next_quick_exit(status);
  __builtin_unreachable();
}

HPE_INTERPOSE int execve(const char* file, arguments given, arguments environment) noexcept {
  end_before_exec(file, false);
  return next_execve(file, given, environment);
}

HPE_INTERPOSE int execvpe(const char* file, arguments given, arguments environment) noexcept {
  end_before_exec(file, true);
  return next_execvpe(file, given, environment);
}

HPE_INTERPOSE int fexecve(int file, arguments given, arguments environment) noexcept {
  end_before_exec_of_descriptor();
  return next_fexecve(file, given, environment);
}

HPE_INTERPOSE int execveat(int folder, const char* file, arguments given, arguments environment, int flags) noexcept {
  end_before_exec_of_descriptor();
  return next_execveat(folder, file, given, environment, flags);
}

HPE_INTERPOSE int execv(const char* file, arguments given) noexcept { return ::execve(file, given, environ); }

HPE_INTERPOSE int execvp(const char* file, arguments given) noexcept { return ::execvpe(file, given, environ); }

// NOLINTBEGIN(cert-dcl50-cpp): libc declares them
HPE_INTERPOSE int execl(const char* file, const char* first, ...) noexcept {
  std::va_list rest;
  va_start(rest, first);
  const int result = with_array(first, rest, [&](arguments all) { return ::execv(file, all); });
  va_end(rest);
  return result;
}

HPE_INTERPOSE int execlp(const char* file, const char* first, ...) noexcept {
  std::va_list rest;
  va_start(rest, first);
  const int result = with_array(first, rest, [&](arguments all) { return ::execvp(file, all); });
  va_end(rest);
  return result;
}

HPE_INTERPOSE int execle(const char* file, const char* first, ...) noexcept {
  std::va_list rest;
  va_start(rest, first);
  const int result =
      with_array(first, rest, [&](arguments all) { return ::execve(file, all, va_arg(rest, arguments)); });
  va_end(rest);
  return result;
}
// NOLINTEND(cert-dcl50-cpp)
