#include "apps/fft/request.h"

#include <charconv>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "apps/fft/choice.h"

namespace hpe::fft {

namespace {

/// One option: its name, what its value is called ("" for a switch), what it does, and where the value goes.
struct option {
  std::string name, value, help;
  std::function<void(request&, const std::string&)> set;
};

/// A number, or 2^K.
std::int64_t whole(const std::string& name, const std::string& text, std::int64_t least, std::int64_t most) {
  const bool power = text.rfind("2^", 0) == 0;
  const char* const begin = text.data() + (power ? 2 : 0);
  const char* const end = text.data() + text.size();
  std::int64_t value = 0;
  const auto [stop, failure] = std::from_chars(begin, end, value);
  constexpr std::int64_t highest_power = 62;
  bool good = failure == std::errc{} && stop == end;
  if (good && power) {
    good = value >= 0 && value <= highest_power;
    value = good ? std::int64_t{1} << value : 0;
  }
  if (!good || value < least || value > most)
    throw bad_input(name + " " + text + ": a whole number from " + std::to_string(least) +
                    (most == std::numeric_limits<std::int64_t>::max() ? "" : " to " + std::to_string(most)) +
                    " is wanted, as 1000 or 2^20");
  return value;
}

constexpr auto no_limit = std::numeric_limits<std::int64_t>::max();

void set_size(request& r, const std::string& text) {
  const std::size_t cross = text.find('x');
  r.what.rows = cross == std::string::npos ? 1 : whole("--size", text.substr(0, cross), 1, no_limit);
  r.what.length = whole("--size", cross == std::string::npos ? text : text.substr(cross + 1), 1, no_limit);
  r.sized = true;
}

template <class Value>
Value one_of(const std::string& name, const std::string& text,
             const std::vector<std::pair<std::string, Value>>& known) {
  std::string names;
  for (const auto& [word, value] : known) {
    if (word == text) return value;
    names += (names.empty() ? "" : ", ") + word;
  }
  throw bad_input(name + " " + text + ": possible are " + names);
}

form form_named(const std::string& text) {
  std::vector<std::pair<std::string, form>> known;
  for (const form f : {form::automatic, form::local, form::exchange, form::transpose, form::convolution})
    known.emplace_back(name_of(f), f);
  return one_of("--form", text, known);
}

effort effort_named(const std::string& text) {
  return one_of<effort>("--effort", text,
                        {{"estimate", effort::estimate}, {"measure", effort::measure}, {"patient", effort::patient}});
}

const std::vector<option>& options() {
  constexpr std::int64_t most_devices = 16, most_repeats = 1000000;
  static const std::vector<option> all = {
      {"--size", "N or ROWSxCOLUMNS", "elements of one array, in one or two dimensions; 2^K may be written (2^20)",
       set_size},
      {"--batch", "B", "transform B arrays that follow each other (1)",
       [](request& r, const std::string& v) { r.what.batch = whole("--batch", v, 1, no_limit); }},
      {"--double", "", "double precision instead of single", [](request& r, const std::string&) { r.twice = true; }},
      {"--inverse", "", "the inverse transform, which is not scaled either",
       [](request& r, const std::string&) { r.inverse = true; }},
      {"--form", "FORM",
       "how devices share an array: local, exchange (pairs of devices, log2 W steps), transpose\n(six-step), "
       "convolution "
       "(any length), or automatic",
       [](request& r, const std::string& v) { r.how.how = form_named(v); }},
      {"--scrambled", "", "leave the elements in the order that is quickest",
       [](request& r, const std::string&) { r.how.elements = order::scrambled; }},
      {"--devices", "N", "use the first N devices (all; HPE_DEVICES=soft:N makes N)",
       [](request& r, const std::string& v) {
         r.how.devices = static_cast<int>(whole("--devices", v, 1, most_devices));
       }},
      {"--effort", "EFFORT", "soft devices: how FFTW looks for its plans: estimate (default), measure, patient",
       [](request& r, const std::string& v) { r.how.soft_effort = effort_named(v); }},
      {"--repeats", "N", "timed transforms, of which the median is told (5)",
       [](request& r, const std::string& v) { r.repeats = whole("--repeats", v, 1, most_repeats); }},
      {"--seed", "N", "of the random input (1)",
       [](request& r, const std::string& v) { r.seed = whole("--seed", v, 0, no_limit); }},
      {"--input", "FILE", "transform this file: pairs of real and imaginary parts, float32, or float64 with --double",
       [](request& r, const std::string& v) { r.input = v; }},
      {"--output", "FILE", "write the result, likewise", [](request& r, const std::string& v) { r.output = v; }},
      {"--help", "", "this text", [](request& r, const std::string&) { r.help = true; }},
  };
  return all;
}

}  // namespace

request parse(int argc, char** argv) {
  request r;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
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
  return r;
}

std::string help_text() {
  std::string help =
      "Usage: hpe fft [options]\n"
      "\n"
      "Transforms complex numbers by the fast Fourier transform over all devices, goes back, and tells how long it "
      "took\n"
      "and how exact it was. Any length is possible. Nothing is scaled: forward and inverse give the input times its\n"
      "length. Without options it transforms 2^20 random numbers.\n"
      "\n";
  constexpr std::size_t column = 27;
  for (const option& o : options()) {
    std::string left = "  " + o.name + (o.value.empty() ? "" : " " + o.value);
    left += left.size() < column - 1 ? std::string(column - left.size(), ' ') : "\n" + std::string(column, ' ');
    help += left;
    for (const char c : o.help) help += c == '\n' ? "\n" + std::string(column, ' ') : std::string(1, c);
    help += "\n";
  }
  return help +
         "\nExamples:\n"
         "  hpe fft\n"
         "  hpe fft --size 1000003 --double\n"
         "  hpe fft --size 4096x4096 --form transpose\n"
         "  hpe fft --input signal.c64 --output spectrum.c64\n";
}

}  // namespace hpe::fft
