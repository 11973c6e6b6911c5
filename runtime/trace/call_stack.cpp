#include "runtime/trace/call_stack.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <atomic>

#include "runtime/base/own_process.h"
#include "runtime/trace/python_lines.h"

namespace hpe::trace {

namespace {

void* stack_module() {
  static void* const module = open_own_library("libhpe-stacks.so");
  return module;
}

template <class Function>
Function* function_of_module(const char* name) {
  void* const module = stack_module();
  return module != nullptr ? reinterpret_cast<Function*>(::dlsym(module, name)) : nullptr;
}

using stack_function = decltype(hpe_take_stack);

constinit std::atomic<stack_function*> take_stack{nullptr};
constinit thread_local bool prepared = false;  // this thread has called take_stack

}  // namespace

call_stack call_stack::here() noexcept {
  call_stack result;
  const char* const line = python_lines::here();
  const int room = depth - (line != nullptr ? 1 : 0);
  result.count = prepared ? take_stack.load(std::memory_order_relaxed)(result.frames.data(), room)
                          : ::backtrace(result.frames.data(), room);
  if (line != nullptr && result.count >= 0)
    result.frames[static_cast<std::size_t>(result.count++)] = const_cast<char*>(line);
  return result;
}

void call_stack::prepare() {
  if (prepared) return;
  python_lines::find_interpreter();
  static stack_function* const found = [] {
    void* frame = nullptr;
    ::backtrace(&frame, 1);  // loads libgcc's unwinder
    stack_function* const function = function_of_module<stack_function>("hpe_take_stack");
    take_stack.store(function, std::memory_order_relaxed);
    return function;
  }();
  if (found == nullptr) return;
  call_stack first;
  found(first.frames.data(), depth);
  prepared = true;
}

decltype(&hpe_source_line) source_line_function() {
  static auto* const found = function_of_module<decltype(hpe_source_line)>("hpe_source_line");
  return found;
}

}  // namespace hpe::trace
