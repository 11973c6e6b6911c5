#include "apps/scan/request.h"

#include <fmt/core.h>

#include <charconv>
#include <functional>
#include <vector>

namespace hpe::scan {

namespace {

/// One option: its name, what its value is called ("" for a switch), what it does, and where the value goes.
struct option {
  std::string name, value, help;
  std::function<void(request&, const std::string&)> set;
};

std::function<void(request&, const std::string&)> text(std::string request::*field) {
  return [field](request& r, const std::string& v) { r.*field = v; };
}

std::function<void(request&, const std::string&)> one_of(const std::string& name, std::string request::*field,
                                                         const std::vector<std::string>& known) {
  return [=](request& r, const std::string& v) {
    std::string list;
    for (const std::string& k : known) {
      if (k == v) {
        r.*field = v;
        return;
      }
      list += (list.empty() ? "" : ", ") + k;
    }
    throw bad_input(fmt::format("{} {}: possible are {}", name, v, list));
  };
}

std::function<void(request&, const std::string&)> count(const std::string& name, std::uint64_t request::*field) {
  return [=](request& r, const std::string& v) { r.*field = count_of(v, name); };
}

std::function<void(request&, const std::string&)> flag(bool request::*field) {
  return [field](request& r, const std::string&) { r.*field = true; };
}

const std::vector<option>& options() {
  static const std::vector<option> all = {
      {"--length", "N", "elements of a problem, as in 1000, 2^28 or 64M (what the file has, or 2^24)",
       count("--length", &request::length)},
      {"--problems", "G", "problems, one behind the other, scanned in one call (1)",
       count("--problems", &request::problems)},
      {"--type", "TYPE", "i32, i64, f32 or f64 (i32)", one_of("--type", &request::type, {"i32", "i64", "f32", "f64"})},
      {"--operator", "OP", "sum, min or max (sum)", one_of("--operator", &request::op, {"sum", "min", "max"})},
      {"--exclusive", "", "element i gets what is before it, and not itself", flag(&request::exclusive)},
      {"--in-place", "", "write over the input", flag(&request::in_place)},
      {"--algorithm", "HOW", "single-pass, three-stages or auto (auto)",
       one_of("--algorithm", &request::how, {"auto", "single-pass", "three-stages"})},
      {"--split", "HOW",
       "problems: whole ones to each device; mps: all devices share each problem;\nmp-pc: devices of one link domain "
       "share problems; auto: by batch and topology (auto)",
       one_of("--split", &request::spread, {"auto", "problems", "mps", "mp-pc"})},
      {"--iterations", "K", "three stages: iterations over a chunk, a power of two (searched for, and kept)",
       count("--iterations", &request::iterations)},
      {"--devices", "N", "use the first N devices (all; HPE_DEVICES=soft:N makes N)",
       count("--devices", &request::devices)},
      {"--repeats", "N", "timed runs; the median is told (5)", count("--repeats", &request::repeats)},
      {"--output", "FILE", "write the result there, as it lies in memory", text(&request::output)},
      {"--explain", "", "tell what was chosen, and why", flag(&request::explain)},
      {"--no-check", "", "do not compare the result with a scan on the host", flag(&request::no_check)},
      {"--help", "", "this text", flag(&request::help)},
  };
  return all;
}

}  // namespace

std::uint64_t count_of(const std::string& text, const std::string& what) {
  const auto fail = [&] {
    return bad_input(fmt::format("{} {}: it must be a count, as 1000, 2^28 or 64M", what, text));
  };
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || rest == text.data()) throw fail();
  constexpr std::uint64_t k = 1024;
  const std::string unit(rest, end);
  std::uint64_t factor = 1;
  if (unit.empty()) return value;
  if (unit == "k" || unit == "K")
    factor = k;
  else if (unit == "M")
    factor = k * k;
  else if (unit == "G")
    factor = k * k * k;
  else if (value == 2 && unit.front() == '^') {
    unsigned power = 0;
    const auto [last, wrong] = std::from_chars(unit.data() + 1, unit.data() + unit.size(), power);
    if (wrong != std::errc() || last != unit.data() + unit.size() || power > 62) throw fail();
    return std::uint64_t{1} << power;
  } else
    throw fail();
  if (value > (std::uint64_t{1} << 62) / factor) throw fail();
  return value * factor;
}

request parse(int argc, char** argv) {
  request r;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      if (!r.file.empty()) throw bad_input(fmt::format("one file is enough: \"{}\" or \"{}\"?", r.file, word));
      r.file = word;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const option* found = nullptr;
    for (const option& o : options())
      if (o.name == name) found = &o;
    if (found == nullptr) throw bad_input("unknown option " + name + "; --help lists them");
    if (found->value.empty() && equals != std::string::npos) throw bad_input(name + " takes no value");
    std::string value;
    if (equals != std::string::npos)
      value = word.substr(equals + 1);
    else if (!found->value.empty()) {
      if (i + 1 == argc) throw bad_input(name + " needs a value: " + found->value);
      value = argv[++i];
    }
    found->set(r, value);
  }
  if (r.repeats == 0) throw bad_input("--repeats 0: one run is the least");
  return r;
}

std::string help_text() {
  std::string result =
      "usage: hpe scan [FILE] [options]\n"
      "Batched prefix sums, minima or maxima on all devices: of the elements of FILE, or of random ones.\n\n";
  for (const option& o : options()) {
    std::string help = o.help;
    for (std::size_t at = 0; (at = help.find('\n', at)) != std::string::npos; at += 25)
      help.replace(at, 1, "\n" + std::string(24, ' '));
    result += fmt::format("  {:<21} {}\n", o.name + (o.value.empty() ? "" : " " + o.value), help);
  }
  return result + "\nK of three stages is kept in HPE_SCAN_CACHE (~/.cache/hpe/scan).\n";
}

}  // namespace hpe::scan
