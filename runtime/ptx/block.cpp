#include "runtime/ptx/block.h"

#include <fmt/core.h>

namespace hpe::ptx {

namespace {

const char* sentence_of(fault::reason why) {
  switch (why) {
    case fault::reason::address: return "touched an address that is not the device's";
    case fault::reason::misaligned: return "touched a misaligned address";
    case fault::reason::trap: return "executed a trap";
    case fault::reason::assertion: return "failed an assertion";
    case fault::reason::stack: return "ran out of local memory for calls";
    case fault::reason::deadlock: return "waits for threads that will never come";
    case fault::reason::bad_function: return "called an address that is no function";
    case fault::reason::surface: return "left a surface";
    default: return "did what no instruction allows";
  }
}

}  // namespace

std::string fault::message() const {
  std::string text = fmt::format("kernel {}: thread ({}, {}, {}) of block ({}, {}, {}) {}", kernel, thread.x, thread.y,
                                 thread.z, block.x, block.y, block.z, sentence_of(why));
  if (why == reason::address || why == reason::misaligned || why == reason::bad_function)
    text += fmt::format(" ({:#x})", address);
  if (!detail.empty()) text += ": " + detail;
  return text;
}

void block_context::record(ptx::fault::reason why, std::uint64_t address, const std::string& detail) {
  fault = {why, configuration->kernel->name, ctaid, thread_of(current), address, detail};
}

void block_context::stop() {
  if (in_compiled_code) longjmp(landing, 1);
  throw fault_exception{fault};
}

}  // namespace hpe::ptx
