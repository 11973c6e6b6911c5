#include "runtime/ptx/races/race_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "runtime/base/demangled.h"
#include "runtime/ptx/execution/thread_memory.h"

namespace hpe::ptx {

namespace {

std::pair<std::uint32_t, std::uint32_t> line_of(const instruction& i) {
  return i.source_line != 0 ? std::pair(i.source_file, i.source_line) : std::pair(0U, i.line);
}

auto place_in_grid(const dimensions& block) { return std::tuple(block.z, block.y, block.x); }

std::string text_of(const dimensions& d) { return fmt::format("({}, {}, {})", d.x, d.y, d.z); }

const char* present_of(memory_use how) {
  switch (how) {
    case memory_use::read: return "reads";
    case memory_use::write: return "writes";
    case memory_use::atomic: return "changes atomically";
    case memory_use::asynchronous_copy: return "copies asynchronously to";
  }
  return "";
}

const char* past_of(memory_use how) {
  switch (how) {
    case memory_use::read: return "read";
    case memory_use::write: return "wrote";
    case memory_use::atomic: return "changed atomically";
    case memory_use::asynchronous_copy: return "copied to asynchronously";
  }
  return "";
}

}  // namespace

void race_report::add(const race& found) {
  const auto [file, line] = line_of(*found.earlier.what);
  const auto [later_file, later_line] = line_of(*found.later.what);
  const lock_guard lock(mutex_);
  counted_race& known = entries_[{file, line, found.earlier.how, later_file, later_line, found.later.how}];
  // Several CPU threads run blocks in any order. The report names the race in the block that comes first in the grid.
  if (known.times++ == 0 || place_in_grid(found.later.block) < place_in_grid(known.example.later.block))
    known.example = found;
}

std::vector<std::string> race_report::take() {
  std::vector<std::string> sentences;
  const lock_guard lock(mutex_);
  for (auto& [lines, e] : entries_) {
    if (e.is_told) continue;
    sentences.push_back(sentence(e));
    e.is_told = true;
  }
  return sentences;
}

std::vector<race_report::placed_race> race_report::take_placed() {
  std::vector<placed_race> result;
  const lock_guard lock(mutex_);
  for (auto& [lines, e] : entries_) {
    if (std::exchange(e.is_placed, true)) continue;
    result.push_back({e.example, place(*e.example.earlier.what), place(*e.example.later.what),
                      name_of_shared(program_, kernel_, e.example.offset)});
  }
  return result;
}

std::string race_report::place(const instruction& i) const {
  if (i.source_line != 0) return fmt::format("{}:{}", program_.files[i.source_file], i.source_line);
  const auto holds = [&i](const auto& f) { return &i >= f->code.data() && &i < f->code.data() + f->code.size(); };
  const auto in = std::find_if(program_.functions.begin(), program_.functions.end(), holds);
  return fmt::format("PTX line {}, '{}'", i.line, program_.text_of(in == program_.functions.end() ? kernel_ : **in, i));
}

std::string race_report::sentence(const counted_race& e) const {
  const race::access &earlier = e.example.earlier, &later = e.example.later;
  const bool in_one_block = place_in_grid(earlier.block) == place_in_grid(later.block);
  const bool in_own = place_in_grid(e.example.owner) == place_in_grid(later.block);
  const std::string variable = name_of_shared(program_, kernel_, e.example.offset);
  std::string text =
      fmt::format("kernel {}: race in shared memory: thread {} of block {} {} offset {}", demangled(kernel_.name),
                  text_of(later.thread), text_of(later.block), present_of(later.how), e.example.offset);
  if (!variable.empty()) text += fmt::format(" ({})", variable);
  if (!in_own) text += fmt::format(" of block {}", text_of(e.example.owner));
  text += fmt::format(" at {}, which thread {}", place(*later.what), text_of(earlier.thread));
  if (!in_one_block) text += fmt::format(" of block {}", text_of(earlier.block));
  text +=
      fmt::format(" {} at {}, with no {} between", past_of(earlier.how), place(*earlier.what),
                  earlier.how == memory_use::asynchronous_copy ? "wait for the copy followed by a barrier" : "barrier");
  if (e.times > 1) text += fmt::format("; {} such pairs of accesses", e.times);
  return text;
}

}  // namespace hpe::ptx
