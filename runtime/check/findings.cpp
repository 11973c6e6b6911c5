#include "runtime/check/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace hpe::check {

namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (static_cast<unsigned char>(c) < ' ')
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result + "\"";
}

std::string json_of(const finding_side& side) {
  std::string result = fmt::format("{{\"how\":{},\"what\":{}", quoted(side.how), quoted(side.what));
  if (side.argument != 0) result += fmt::format(",\"argument\":{}", side.argument);
  if (!side.source.empty()) result += fmt::format(",\"source\":{}", quoted(side.source));
  result += fmt::format(",\"place\":{}", quoted(side.place));
  if (side.stream != 0) result += fmt::format(",\"stream\":{}", side.stream);
  return result + "}";
}

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

const std::vector<std::string_view>& kinds_of_findings() {
  static const std::vector<std::string_view> all{
      "stream-race",  "graph-race",     "mpi-race",   "out-of-range",     "use-after-free",  "never-written", "leak",
      "never-waited", "source-changed", "host-touch", "undeclared-write", "undeclared-read", "beyond-range"};
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
    const auto& kinds = kinds_of_findings();
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

std::string json_of(const std::vector<finding>& all, const char* rank) {
  std::string result = rank == nullptr ? "{" : fmt::format("{{\"rank\":{},", rank);
  result += "\"findings\":[";
  for (const finding& f : all) {
    if (&f != all.data()) result += ",";
    result += fmt::format("\n{{\"kind\":{},\"count\":{},\"sentence\":{}", quoted(f.kind), f.count, quoted(f.sentence));
    if (f.bytes != 0)
      result += fmt::format(",\"address\":\"{:#x}\",\"offset\":{},\"bytes\":{}", f.address, f.offset, f.bytes);
    if (f.allocation)
      result += fmt::format(",\"allocation\":{{\"bytes\":{},\"call\":{},\"place\":{}}}", f.allocation_bytes,
                            quoted(f.allocation->what), quoted(f.allocation->place));
    if (f.now) result += fmt::format(",\"now\":{}", json_of(*f.now));
    if (f.earlier) result += fmt::format(",\"earlier\":{}", json_of(*f.earlier));
    if (!f.missing.empty()) result += fmt::format(",\"missing\":{}", quoted(f.missing));
    result += "}";
  }
  return result + "\n]}\n";
}

}  // namespace hpe::check
