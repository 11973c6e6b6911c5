// A signal handler may interrupt the interpreter anywhere, so pointers in CPython's memory may be invalid. Therefore
// this file reads that memory with process_vm_readv, which fails where a load would fault. A frame counts only if its
// code is an object of CPython's type for code objects, so other memory is not mistaken for a frame.
//
// Each line is written once into `texts`, and never changed. From then on, a slot of `known` points to the line.
#include "runtime/trace/python_lines.h"

#include <dlfcn.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>

namespace hpe::trace {

namespace {

using address = std::uintptr_t;

// ---- CPython --------------------------------------------------------------------------------------------------------

// The offsets of members in the structs of one version of CPython; see pycore_frame.h, cpython/pystate.h and
// cpython/code.h.
struct layout {
  unsigned version;                   // major and minor version, one byte each
  std::size_t thread_frame;           // PyThreadState.cframe, or from 3.13 on current_frame
  std::optional<std::size_t> cframe;  // _PyCFrame.current_frame
  std::size_t frame_code;             // _PyInterpreterFrame.f_code or f_executable
  std::size_t frame_previous;
  std::size_t frame_instruction;  // prev_instr or instr_ptr
  std::size_t code_file;          // PyCodeObject.co_filename
  std::size_t code_begin;         // co_code_adaptive
};
constexpr std::array<layout, 3> layouts{{{0x030b, 56, 8, 32, 48, 56, 112, 184},
                                         {0x030c, 56, 0, 0, 8, 56, 112, 192},
                                         {0x030d, 72, std::nullopt, 0, 8, 56, 112, 200}}};
constexpr std::size_t object_type = 8;  // PyObject.ob_type

// Functions of CPython that read only their arguments, and need no lock.
struct interpreter {
  const layout* where = nullptr;
  address type_of_code = 0;
  void* (*this_thread)() = nullptr;  // PyGILState_GetThisThreadState
  int (*line_of)(address code, int instruction) = nullptr;
  std::ptrdiff_t (*length_of)(address text) = nullptr;
  std::uint32_t (*character_of)(address text, std::ptrdiff_t at) = nullptr;
};

constinit interpreter the_interpreter;
constinit std::atomic<bool> is_found{false};

template <class Function>
bool look_up(Function& found, const char* name) {
  void* const symbol = ::dlsym(RTLD_DEFAULT, name);
  if (symbol != nullptr) std::memcpy(&found, &symbol, sizeof symbol);
  return symbol != nullptr;
}

std::optional<interpreter> look_for_interpreter() {
  const unsigned long* version = nullptr;
  interpreter it;
  if (!look_up(version, "Py_Version") || !look_up(it.type_of_code, "PyCode_Type") ||
      !look_up(it.this_thread, "PyGILState_GetThisThreadState") || !look_up(it.line_of, "PyCode_Addr2Line") ||
      !look_up(it.length_of, "PyUnicode_GetLength") || !look_up(it.character_of, "PyUnicode_ReadChar"))
    return std::nullopt;
  const auto known =
      std::find_if(layouts.begin(), layouts.end(), [&](const layout& l) { return l.version == *version >> 16; });
  if (known == layouts.end()) return std::nullopt;
  it.where = &*known;
  return it;
}

// ---- frames ---------------------------------------------------------------------------------------------------------

/// Reads several words with one system call.
template <class... From>
std::optional<std::array<address, sizeof...(From)>> read_all(From... from) noexcept {
  std::array<address, sizeof...(From)> values{};
  const iovec local{values.data(), sizeof values};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): CPython's memory
  const std::array<iovec, sizeof...(From)> remote{iovec{reinterpret_cast<void*>(from), sizeof(address)}...};
  const auto got = ::process_vm_readv(::getpid(), &local, 1, remote.data(), remote.size(), 0);
  return got == sizeof values ? std::optional(values) : std::nullopt;
}
std::optional<address> read(address from) noexcept {
  const auto got = read_all(from);
  return got ? std::optional((*got)[0]) : std::nullopt;
}

struct frame {
  address code;
  address file;  // a Python str
  address instruction;
  address previous;  // the address of the next outer frame; 0: none
};

std::optional<frame> frame_at(address at, const interpreter& py) noexcept {
  const layout& where = *py.where;
  const auto own = read_all(at + where.frame_code, at + where.frame_instruction, at + where.frame_previous);
  if (!own) return std::nullopt;
  const auto [code, instruction, previous] = *own;
  const auto of_code = read_all(code + object_type, code + where.code_file);
  if (!of_code || (*of_code)[0] != py.type_of_code) return std::nullopt;
  return frame{code, (*of_code)[1], instruction, previous};
}

address innermost_frame(const interpreter& py) noexcept {
  const auto thread = reinterpret_cast<address>(py.this_thread());
  auto found = thread != 0 ? read(thread + py.where->thread_frame) : std::nullopt;
  if (found && py.where->cframe) found = read(*found + *py.where->cframe);
  return found.value_or(0);
}

// ---- lines ----------------------------------------------------------------------------------------------------------

constexpr std::size_t longest = 512;
struct line_text {
  std::array<char, longest> bytes{};
  std::size_t size = 0;

  void add(char c) noexcept {
    if (size < bytes.size()) bytes[size++] = c;
  }
  void add_utf8(std::uint32_t c) noexcept {
    if (c < 0x80) return add(static_cast<char>(c));
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    add(static_cast<char>((0xf0U << (3 - more) & 0xffU) | c >> 6 * more));
    for (int i = more - 1; i >= 0; --i) add(static_cast<char>(0x80U | (c >> 6 * i & 0x3fU)));
  }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes.data(), size}; }
};

line_text text_of(const frame& f, const interpreter& py) noexcept {
  line_text result;
  const std::ptrdiff_t length = py.length_of(f.file);
  for (std::ptrdiff_t i = 0; i < length; ++i) result.add_utf8(py.character_of(f.file, i));
  result.size = std::min(result.size, longest - 12);  // leaves room for the line number
  result.add(':');
  const int line = py.line_of(f.code, static_cast<int>(f.instruction - f.code - py.where->code_begin));
  std::array<char, 12> digits{};
  std::size_t count = 0;
  for (unsigned n = line > 0 ? static_cast<unsigned>(line) : 0; n != 0 || count == 0; n /= 10)
    digits[count++] = static_cast<char>('0' + n % 10);
  while (count > 0) result.add(digits[--count]);
  return result;
}

// Whether a line belongs to no source file: CPython inserts its own frames between the frames of the program.
bool is_of_the_interpreter(std::string_view line) noexcept {
  return line.starts_with("<frozen ") || line.starts_with("<interpreter trampoline>") || line.starts_with("<shim>");
}

// Whether a line is in one of Python's own modules or in an installed module, or in hpe's package in its source tree.
bool is_of_a_module(std::string_view line) noexcept {
  for (const std::string_view part : {"/lib/python3", "/site-packages/", "/dist-packages/", "/apps/python/hpe/"})
    if (line.find(part) != std::string_view::npos) return true;
  return false;
}

/// The files that are modules, by the address of the name and its length: programs have long stacks of modules.
class module_files {
 public:
  [[nodiscard]] bool contain(address file, std::ptrdiff_t length) const noexcept {
    return slot_of(file).load(std::memory_order_relaxed) == word_of(file, length);
  }
  void add(address file, std::ptrdiff_t length) noexcept {
    slot_of(file).store(word_of(file, length), std::memory_order_relaxed);
  }

 private:
  static std::uint64_t word_of(address file, std::ptrdiff_t length) noexcept {
    constexpr unsigned bits_of_address = 48;
    return file | static_cast<std::uint64_t>(length) << bits_of_address;
  }
  std::atomic<std::uint64_t>& slot_of(address file) noexcept { return slots_[file / alignment % slots_.size()]; }
  const std::atomic<std::uint64_t>& slot_of(address file) const noexcept {
    return slots_[file / alignment % slots_.size()];
  }

  static constexpr std::size_t alignment = 16;  // of Python's objects
  std::array<std::atomic<std::uint64_t>, 1024> slots_{};
};
constinit module_files modules;

constexpr std::size_t most_known_lines = 4096;
constinit std::array<char, std::size_t{1} << 18> texts{};
constinit std::atomic<std::size_t> used{0};
constinit std::array<std::atomic<const char*>, most_known_lines> known{};

// Returns the only address in `texts` at which the line is stored, and stores the line if it is new; nullptr if there
// is no room.
const char* kept(std::string_view line) noexcept {
  const char* mine = nullptr;
  const std::size_t first = std::hash<std::string_view>{}(line);
  for (std::size_t i = 0; i < most_known_lines; ++i) {
    std::atomic<const char*>& slot = known[(first + i) % most_known_lines];
    const char* there = slot.load(std::memory_order_acquire);
    if (there == nullptr) {
      if (mine == nullptr) {
        const std::size_t at = used.fetch_add(line.size() + 1);
        if (at + line.size() + 1 > texts.size()) return nullptr;
        std::memcpy(&texts[at], line.data(), line.size());
        mine = &texts[at];
      }
      if (slot.compare_exchange_strong(there, mine, std::memory_order_acq_rel)) return mine;
    }
    if (line == there) return there;
  }
  return nullptr;
}

}  // namespace

void python_lines::find_interpreter() {
  if (is_found.load(std::memory_order_acquire)) return;
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const auto found = look_for_interpreter();
  if (!found || is_found.load(std::memory_order_relaxed)) return;
  the_interpreter = *found;
  is_found.store(true, std::memory_order_release);
}

bool python_lines::has_interpreter() noexcept { return is_found.load(std::memory_order_acquire); }

const char* python_lines::here() noexcept {
  if (!is_found.load(std::memory_order_acquire)) return nullptr;
  constexpr int most_frames = 64;
  const interpreter& py = the_interpreter;
  std::optional<frame> innermost;
  address at = innermost_frame(py);
  for (int i = 0; i < most_frames && at != 0; ++i) {
    const auto f = frame_at(at, py);
    if (!f) {  // a frame of the interpreter itself
      at = read(at + py.where->frame_previous).value_or(0);
      continue;
    }
    at = f->previous;
    const std::ptrdiff_t length = py.length_of(f->file);
    if (!modules.contain(f->file, length)) {
      const line_text line = text_of(*f, py);
      if (is_of_the_interpreter(line.view())) continue;
      if (!is_of_a_module(line.view())) return kept(line.view());
      modules.add(f->file, length);
    }
    if (!innermost) innermost = f;
  }
  return innermost ? kept(text_of(*innermost, py).view()) : nullptr;
}

bool python_lines::is_one(const void* p) noexcept {
  const auto at = reinterpret_cast<address>(p);
  const auto first = reinterpret_cast<address>(texts.data());
  return at - first < texts.size();
}

}  // namespace hpe::trace
