#include "runtime/check/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace hpe::check {

namespace {

std::string text_of(const finding_side& side) {
  std::string result = fmt::format("{} by {}", side.how, side.what);
  if (side.argument != 0) result += fmt::format(", argument {}", side.argument);
  if (!side.source.empty()) result += fmt::format(", at {}", side.source);
  result += fmt::format("; called at {}", side.place);
  if (side.stream != 0) result += fmt::format(" on stream {}", side.stream);
  return result;
}

std::string_view word(std::string_view& rest) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
  std::size_t size = 0;
  while (size < rest.size() && !is_space(rest[size])) ++size;
  const std::string_view result = rest.substr(0, size);
  rest.remove_prefix(size);
  while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
  while (!rest.empty() && is_space(rest.back())) rest.remove_suffix(1);
  return result;
}

}  // namespace

const std::vector<finding_kind>& kinds_of_findings() {
  static const std::vector<finding_kind> all{
      {"stream-race", "Work in two streams accesses the same bytes, and nothing orders it",
       "At least one of the two writes. Record an event behind the earlier work and let the later work's stream wait "
       "for "
       "it, or let the host wait between the two calls."},
      {"graph-race", "Two nodes of a graph access the same bytes, and no path of edges orders them",
       "At least one of the two writes. Add an edge between the nodes."},
      {"block-race", "Two blocks of a launch access the same bytes, and nothing orders them",
       "At least one of the two writes. Use an atomic operation, or divide the work between two launches."},
      {"shared-race", "Two threads of a block access the same bytes of shared memory, and nothing orders them",
       "At least one of the two writes. Add a barrier (__syncthreads) between the two accesses."},
      {"mpi-race",
       "Work or CPU code accesses bytes that a call of MPI may still use, or MPI bytes that work still uses",
       "At least one of the two writes. Wait for the request, or for the work, between the two calls."},
      {"rank-race", "Work of two processes accesses the same bytes of memory that they share, and nothing orders it",
       "At least one of the two writes. Let the host wait for the work before it tells the other process."},
      {"undeclared-write", "A kernel writes memory that its launch does not declare as written",
       "Declare the memory with hpe::out (HPE_OUT) or hpe::inout (HPE_INOUT) in the launch."},
      {"undeclared-read", "A kernel reads memory that its launch does not declare as read",
       "Declare the memory with hpe::in (HPE_IN) or hpe::inout (HPE_INOUT) in the launch, or write it before the "
       "read."},
      {"beyond-range", "A kernel accesses bytes beyond the range that its launch declares",
       "Declare a larger range in the launch, or test the index in the kernel."},
      {"out-of-range", "A kernel accesses bytes that belong to no allocation",
       "Test the index in the kernel, or allocate more memory."},
      {"use-after-free", "Work accesses memory that has been freed", "Free the memory behind its last use."},
      {"never-written", "Work reads device memory that nothing has written",
       "Write the bytes first, by a copy, a memset or a kernel."},
      {"leak", "The program ends and has not freed memory", "Free the memory.", false},
      {"never-waited", "The program ends and has not waited for work that it queued",
       "Wait for the stream before the program ends; otherwise the work may not run."},
      {"source-changed", "CPU code writes memory from which a queued copy may still read",
       "Let the host wait for the copy before it writes the memory."},
      {"host-touch", "CPU code accesses memory that queued work may still use",
       "Let the host wait for the work before CPU code accesses the memory."}};
  return all;
}

bool finding::matches(std::string_view wanted, std::string_view text) const {
  if (wanted != "*" && wanted != kind) return false;
  if (sentence.find(text) != std::string::npos) return true;
  const auto has = [&](const std::optional<finding_side>& side) {
    return side && (side->place.find(text) != std::string::npos || side->source.find(text) != std::string::npos ||
                    side->what.find(text) != std::string::npos);
  };
  return has(now) || has(earlier) || has(allocation);
}

ignored_findings::ignored_findings(std::string_view text) {
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, size);
    text.remove_prefix(std::min(size + 1, text.size()));
    rest = rest.substr(0, rest.find('#'));
    const std::string_view kind = word(rest);
    if (kind.empty()) continue;
    std::vector<std::string_view> kinds;
    for (const finding_kind& each : kinds_of_findings()) kinds.push_back(each.name);
    HPE_REQUIRE(!rest.empty(), HPE_ERROR_INVALID_ARGUMENT,
                "line {} of the findings to ignore: a text that occurs in the finding is missing behind \"{}\"", line,
                kind);
    HPE_REQUIRE(kind == "*" || std::find(kinds.begin(), kinds.end(), kind) != kinds.end(), HPE_ERROR_INVALID_ARGUMENT,
                "line {} of the findings to ignore: there is no kind \"{}\"; kinds: {} and * for all", line, kind,
                fmt::join(kinds, ", "));
    rules_.push_back({std::string(kind), std::string(rest)});
  }
}

bool ignored_findings::contains(const finding& what) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const rule& r) { return what.matches(r.kind, r.text); });
}

void finding_list::report(const std::string& key, const void* repeated_by, const std::function<finding()>& make) {
  const auto [place, is_new] = known_.try_emplace(key);
  known_finding& known = place->second;
  if (is_new) {
    known.what = make();
    known.is_ignored = ignored_.contains(known.what);
    keys_.push_back(key);
  } else if (known.last != repeated_by) {
    ++known.what.count;
  }
  known.last = repeated_by;
}

// Calls in code without lines can have the same text, although their stacks differ.
std::vector<finding> finding_list::all() const {
  std::vector<finding> result;
  std::map<std::string, std::size_t> places;  // in the result, by the text
  for (const std::string& key : keys_) {
    const known_finding& each = known_.at(key);
    if (each.is_ignored) continue;
    finding once = each.what;
    once.count = 1;
    const auto [place, is_new] = places.try_emplace(text_of(once), result.size());
    if (is_new)
      result.push_back(each.what);
    else
      result[place->second].count += each.what.count;
  }
  return result;
}

std::vector<finding> finding_list::take() {
  std::vector<finding> result = all();
  known_.clear();
  keys_.clear();
  return result;
}

std::string text_of(const finding& what) {
  std::string result = fmt::format("hpe check: {}: {}", what.kind, what.sentence);
  if (what.count > 1) result += fmt::format(" ({} times)", what.count);
  result += "\n";
  if (what.now) result += fmt::format("  now:     {}\n", text_of(*what.now));
  if (what.earlier) result += fmt::format("  earlier: {}\n", text_of(*what.earlier));
  if (what.allocation) {
    const std::string where =
        what.bytes == 0 ? ""
                        : fmt::format("byte {}{} of ", what.offset,
                                      what.bytes > 1 ? fmt::format(" and the {} bytes behind it", what.bytes - 1) : "");
    result += fmt::format("  memory:  {}the {} bytes that {} allocated at {} (address {:#x})\n", where,
                          what.allocation_bytes, what.allocation->what, what.allocation->place, what.address);
  } else if (what.bytes != 0) {
    result += fmt::format("  memory:  {} bytes at address {:#x}\n", what.bytes, what.address);
  }
  if (!what.missing.empty()) result += fmt::format("  missing: {}\n", what.missing);
  return result;
}

}  // namespace hpe::check
