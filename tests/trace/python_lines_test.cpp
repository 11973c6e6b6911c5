// Finds lines of Python programs. This program defines the functions of CPython that hpe looks for, and the memory of a
// thread that runs Python, in the layout of each version of CPython. hpe looks for an interpreter once in a process, so
// each test runs in a child process.

#include "runtime/trace/python_lines.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <string>
#include <vector>

#include "runtime/trace/call_stack.h"
#include "runtime/trace/location.h"

namespace {

// Memory of CPython, as words.
using object = std::array<std::uintptr_t, 64>;

// The offsets, in words, of the members that hpe reads.
struct offsets {
  unsigned long version;
  std::size_t thread_frame;
  int cframe_frame;  // -1: the thread refers to the frame itself
  std::size_t code, previous, instruction, file, bytecode;
};
constexpr std::array<offsets, 3> layouts{
    {{0x030b00f0, 7, 1, 4, 6, 7, 14, 23}, {0x030c04f0, 7, 0, 0, 1, 7, 14, 24}, {0x030d01f0, 9, -1, 0, 1, 7, 14, 25}}};

struct text_object {
  object words{};
  std::u32string text;
};

std::deque<object> objects;
std::deque<text_object> texts;
object* thread_state = nullptr;

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): names of CPython
extern "C" {
[[gnu::visibility("default")]] unsigned long Py_Version = 0;
[[gnu::visibility("default")]] std::uintptr_t PyCode_Type[4]{};
[[gnu::visibility("default")]] void* PyGILState_GetThisThreadState() { return thread_state; }
// The line of instruction n is 10 n; the line of instruction 99 is unknown.
[[gnu::visibility("default")]] int PyCode_Addr2Line(std::uintptr_t, int instruction) {
  return instruction == 99 ? -1 : 10 * instruction;
}
[[gnu::visibility("default")]] std::ptrdiff_t PyUnicode_GetLength(std::uintptr_t text) {
  return static_cast<std::ptrdiff_t>(reinterpret_cast<const text_object*>(text)->text.size());
}
[[gnu::visibility("default")]] std::uint32_t PyUnicode_ReadChar(std::uintptr_t text, std::ptrdiff_t at) {
  return reinterpret_cast<const text_object*>(text)->text.at(static_cast<std::size_t>(at));
}
}
// NOLINTEND(readability-identifier-naming)

namespace hpe::trace {
namespace {

// The stack of a Python thread.
class python_stack {
 public:
  explicit python_stack(const offsets& where) : where_(where) {
    Py_Version = where.version;
    thread_state = &objects.emplace_back();
    object* holder = thread_state;
    innermost_ = &(*thread_state)[where.thread_frame];
    if (where.cframe_frame >= 0) {
      holder = &objects.emplace_back();
      *innermost_ = address(holder);
      innermost_ = &(*holder)[static_cast<std::size_t>(where.cframe_frame)];
    }
  }

  /// Adds a frame around the frames so far.
  void call_from(const std::u32string& file, int instruction) {
    object& code = objects.emplace_back();
    code[1] = address(PyCode_Type);
    code[where_.file] = address(name(file));
    object& frame = objects.emplace_back();
    frame[where_.code] = address(&code);
    frame[where_.instruction] = address(&code) + 8 * where_.bytecode + static_cast<std::uintptr_t>(instruction);
    append(frame);
  }
  /// Adds a frame that belongs to no code.
  void call_from_nothing() {
    object& frame = objects.emplace_back();
    object& no_code = objects.emplace_back();
    frame[where_.code] = address(&no_code);
    append(frame);
  }
  void clear() {
    *innermost_ = 0;
    outermost_ = nullptr;
  }

 private:
  // Each file has one name, as in CPython.
  static const text_object* name(const std::u32string& file) {
    for (const text_object& each : texts)
      if (each.text == file) return &each;
    texts.push_back({{}, file});
    return &texts.back();
  }
  void append(object& frame) {
    (outermost_ != nullptr ? (*outermost_)[where_.previous] : *innermost_) = address(&frame);
    outermost_ = &frame;
  }

  const offsets where_;
  std::uintptr_t* innermost_ = nullptr;
  object* outermost_ = nullptr;
};

std::string found() {
  const char* const line = python_lines::here();
  return line != nullptr ? line : "none";
}

void expect(const std::string& got, const std::string& expected, const char* what) {
  if (got == expected) return;
  std::cerr << what << ": " << got << " instead of " << expected << std::endl;
  std::_Exit(1);
}

void look_at(const offsets& where) {
  expect(found(), "none", "before the search");
  python_stack stack(where);
  python_lines::find_interpreter();
  expect(python_lines::has_interpreter() ? "yes" : "no", "yes", "an interpreter");
  expect(found(), "none", "no frame");
  stack.call_from(U"/home/user/train.py", 12);
  expect(found(), "/home/user/train.py:120", "the only frame");
  stack.call_from(U"/home/user/outer.py", 3);
  expect(found(), "/home/user/train.py:120", "the innermost frame");

  const char* const once = python_lines::here();
  expect(python_lines::here() == once ? "one" : "two", "one", "places of a line");
  expect(python_lines::is_one(once) ? "yes" : "no", "yes", "a line");
  expect(python_lines::is_one(&stack) || python_lines::is_one(nullptr) ? "yes" : "no", "no", "a line elsewhere");
  const call_stack here = call_stack::here();
  expect(location_of({here.frames.data(), static_cast<std::size_t>(here.count)}), "/home/user/train.py:120",
         "the location of a stack");

  stack.clear();
  stack.call_from_nothing();
  stack.call_from(U"<frozen runpy>", 1);
  stack.call_from(U"<shim>", 1);
  stack.call_from(U"<interpreter trampoline>", 1);
  stack.call_from(U"/usr/lib/python3.11/threading.py", 5);
  stack.call_from(U"/venv/site-packages/numpy/core.py", 6);
  expect(found(), "/usr/lib/python3.11/threading.py:50", "the innermost module, without a program");
  stack.call_from(U"/usr/lib/python3/dist-packages/x.py", 1);
  stack.call_from(U"/src/apps/python/hpe/array.py", 1);
  stack.call_from(U"main.py", 7);
  expect(found(), "main.py:70", "the program behind modules");
  expect(found(), "main.py:70", "the program behind modules that are known");

  stack.clear();
  stack.call_from(U"unknown.py", 99);
  expect(found(), "unknown.py:0", "an unknown line");
  stack.clear();
  stack.call_from(U"a\u007f\u0080\u07ff\u0800\uffff\U00010000.py", 0);
  expect(found(), "a\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80.py:0", "a name in UTF-8");
  for (const std::size_t length : {499U, 500U, 501U, 600U}) {
    stack.clear();
    stack.call_from(std::u32string(length, U'n'), 123456789);
    expect(found(), std::string(std::min<std::size_t>(length, 500), 'n') + ":1234567890", "a long name");
  }

  stack.clear();
  for (int n = 0; n < 63; ++n) stack.call_from_nothing();
  stack.call_from(U"deep.py", 1);
  expect(found(), "deep.py:10", "the 64th frame");
  stack.clear();
  for (int n = 0; n < 64; ++n) stack.call_from_nothing();
  stack.call_from(U"deep.py", 1);
  expect(found(), "none", "the 65th frame");

  // Lines beyond the room are not kept, but those that are known remain.
  stack.clear();
  const std::string name(400, 'x');
  std::size_t kept = 0;
  for (; kept < 1000; ++kept) {
    stack.clear();
    stack.call_from(std::u32string(name.begin(), name.end()) + std::u32string(1 + kept % 40, U'y'),
                    static_cast<int>(kept) + 200);
    if (found() == "none") break;
  }
  expect(kept > 500 && kept < 1000 ? "some" : std::to_string(kept), "some", "lines with room");
  stack.clear();
  stack.call_from(U"main.py", 7);
  expect(found(), "main.py:70", "a known line");
  thread_state = nullptr;
  expect(found(), "none", "a thread without Python");
  std::_Exit(0);
}

TEST(PythonLines, OfEachVersionOfCPython) {
  for (const offsets& each : layouts) EXPECT_EXIT(look_at(each), testing::ExitedWithCode(0), "") << each.version;
}

TEST(PythonLines, OfOtherVersionsAreNone) {
  const auto look = [] {
    const python_stack stack({0x030a00f0, 7, 1, 4, 6, 7, 14, 23});
    python_lines::find_interpreter();
    std::_Exit(python_lines::has_interpreter() || python_lines::here() != nullptr ? 1 : 0);
  };
  EXPECT_EXIT(look(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hpe::trace
