#include "runtime/ptx/execution/calls/system_call.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/ptx/execution/calls/call_arguments.h"
#include "runtime/ptx/execution/calls/device_runtime.h"

namespace hpe::ptx {

namespace {

class argument_reader {
 public:
  explicit argument_reader(const void* arguments) : at_(static_cast<const std::uint8_t*>(arguments)) {}
  template <class T>
  T take() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    std::memcpy(&value, at_ + offset_, sizeof value);
    offset_ += sizeof value;
    ++taken_;
    return value;
  }
  [[nodiscard]] std::uint32_t taken() const noexcept { return taken_; }

 private:
  const std::uint8_t* at_;
  std::size_t offset_ = 0;
  std::uint32_t taken_ = 0;
};

template <class T>
void append(std::string& to, const std::string& specification, T value) {
  char small[64];
// The specification agrees with the type of the argument, because convert() has parsed the specification.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int length = std::snprintf(small, sizeof small, specification.c_str(), value);
  if (length < 0) return;
  if (static_cast<std::size_t>(length) < sizeof small) {
    to += small;
    return;
  }
  std::string large(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(large.data(), large.size(), specification.c_str(), value);
#pragma GCC diagnostic pop
  to.append(large, 0, static_cast<std::size_t>(length));
}

// Formats the conversion specification that begins with the % at `from`. Returns the address after the specification.
const char* convert(std::string& to, const char* from, argument_reader& arguments) {
  std::string specification = "%";
  const char* at = from + 1;
  while (*at != '\0' && std::strchr("-+ #0", *at) != nullptr) specification += *at++;
  const auto number = [&] {
    if (*at == '*') {
      specification += std::to_string(arguments.take<int>());
      ++at;
    }
    while (*at >= '0' && *at <= '9') specification += *at++;
  };
  number();
  if (*at == '.') {
    specification += *at++;
    number();
  }
  unsigned longs = 0;
  while (*at != '\0' && std::strchr("hlLzjt", *at) != nullptr) {
    if (*at != 'h') ++longs;
    if (*at == 'h') specification += 'h';
    ++at;
  }
  const char conversion = *at;
  switch (conversion) {
    case '%': to += '%'; break;
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      if (longs > 0) {
        append(to, specification + "ll" + conversion, arguments.take<long long>());
      } else {
        append(to, specification + conversion, arguments.take<int>());
      }
      break;
    case 'c': append(to, specification + conversion, arguments.take<int>()); break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A': append(to, specification + conversion, arguments.take<double>()); break;
    case 'p': append(to, specification + conversion, arguments.take<void*>()); break;
    case 's': {
      const char* const text = arguments.take<const char*>();
      append(to, specification + conversion, text == nullptr ? "(null)" : text);
      break;
    }
    default:
      to.append(from, static_cast<std::size_t>(at - from));
      return at;  // not a conversion specification: copies the text unchanged
  }
  return at + 1;
}

}  // namespace

formatted_text format_message(const char* format, const void* arguments) {
  std::string text;
  argument_reader reader(arguments);
  for (const char* at = format; *at != '\0';) {
    if (*at == '%') {
      at = convert(text, at, reader);
    } else {
      text += *at++;
    }
  }
  return {std::move(text), reader.taken()};
}

void call_system(block_context& block, const function& callee, std::uint8_t* formals) {
  const surroundings& around = *block.configuration->surroundings;
  call_arguments arguments(callee, formals);
  switch (callee.system_call) {
    case builtin::print: {
      // CUDA's printf returns the number of arguments, or -1 if the format is null.
      const auto* const format = arguments.get<const char*>(0);
      if (format == nullptr) return arguments.set_result(std::uint64_t(-1));
      const formatted_text printed = format_message(format, arguments.get<const void*>(1));
      if (around.print) around.print(printed.text);
      return arguments.set_result(printed.arguments);
    }
    case builtin::allocate: {
      const auto bytes = arguments.get<std::uint64_t>(0);
      arguments.set_result(around.allocate ? reinterpret_cast<std::uint64_t>(around.allocate(bytes)) : 0);
      return;
    }
    case builtin::release: {
      void* const memory = arguments.get<void*>(0);
      if (around.release && memory != nullptr) around.release(memory);
      return;
    }
    case builtin::assertion: {
      const dimensions& in = block.ctaid;
      const dimensions who = block.thread_of(block.current);
      // The message has the same words as CUDA's.
      block.record(
          trap::reason::assertion, 0,
          fmt::format("{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.",
                      arguments.get<const char*>(1), arguments.get<std::uint32_t>(2), arguments.get<const char*>(3),
                      in.x, in.y, in.z, who.x, who.y, who.z, arguments.get<const char*>(0)));
      block.stop();
    }
    case builtin::device_runtime: return call_device_runtime(block, callee, formals);
    case builtin::none: return;
  }
}

}  // namespace hpe::ptx
