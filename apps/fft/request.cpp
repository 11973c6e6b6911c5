#include "apps/fft/request.h"

#include <utility>
#include <vector>

#include "apps/command_line/values.h"
#include "apps/fft/choice.h"

namespace hpe::fft {

namespace {

void set_size(request& r, const std::string& name, const std::string& text) {
  const std::size_t cross = text.find('x');
  const bool flat = cross == std::string::npos;
  r.what.rows = flat ? 1 : command_line::whole_number(name, text.substr(0, cross), 1);
  r.what.length = command_line::whole_number(name, flat ? text : text.substr(cross + 1), 1);
  r.sized = true;
}

std::vector<std::pair<std::string, form>> forms() {
  std::vector<std::pair<std::string, form>> known;
  for (const form f : {form::automatic, form::local, form::exchange, form::transpose, form::convolution})
    known.emplace_back(name_of(f), f);
  return known;
}

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  constexpr std::int64_t most_devices = 16, most_repeats = 1000000;
  return {
      {"--size", "N or ROWSxCOLUMNS", "elements of one array, in one or two dimensions; 2^K may be written (2^20)",
       [&r](const std::string& name, const std::string& v) { set_size(r, name, v); }},
      {"--batch", "B", "transform B arrays that follow each other (1)", to_whole(r.what.batch, 1)},
      {"--double", "", "double precision instead of single", to_flag(r.twice)},
      {"--inverse", "", "the inverse transform, which is not scaled either", to_flag(r.inverse)},
      {"--form", "FORM",
       "how devices share an array: local, exchange (pairs of devices, log2 W steps), transpose\n(six-step), "
       "convolution "
       "(any length), or automatic",
       to_one_of(r.how.how, forms())},
      {"--scrambled", "", "leave the elements in the order that is quickest",
       [&r](const std::string&, const std::string&) { r.how.elements = order::scrambled; }},
      {"--devices", "N", "use the first N devices (all; HPE_DEVICES=soft:N makes N)",
       to_whole(r.how.devices, 1, most_devices)},
      {"--effort", "EFFORT", "soft devices: how FFTW looks for its plans: estimate (default), measure, patient",
       to_one_of<effort>(r.how.soft_effort,
                         {{"estimate", effort::estimate}, {"measure", effort::measure}, {"patient", effort::patient}})},
      {"--repeats", "N", "timed transforms, of which the median is told (5)", to_whole(r.repeats, 1, most_repeats)},
      {"--seed", "N", "of the random input (1)", to_whole(r.seed, 0)},
      {"--input", "FILE", "transform this file: pairs of real and imaginary parts, float32, or float64 with --double",
       to_text(r.input)},
      {"--output", "FILE", "write the result, likewise", to_text(r.output)},
      {"--help", "", "this text", to_flag(r.help)},
  };
}

}  // namespace

request parse(int argc, char** argv) {
  request r;
  command_line::read(options_of(r), argc, argv);
  return r;
}

std::string help_text() {
  constexpr std::size_t column = 27;
  request defaults;
  return "Usage: hpe fft [options]\n"
         "\n"
         "Transforms complex numbers by the fast Fourier transform over all devices, goes back, and tells how long it "
         "took\n"
         "and how exact it was. Any length is possible. Nothing is scaled: forward and inverse give the input times "
         "its\n"
         "length. Without options it transforms 2^20 random numbers.\n"
         "\n" +
         command_line::lines_of_help(options_of(defaults), column) +
         "\nExamples:\n"
         "  hpe fft\n"
         "  hpe fft --size 1000003 --double\n"
         "  hpe fft --size 4096x4096 --form transpose\n"
         "  hpe fft --input signal.c64 --output spectrum.c64\n";
}

}  // namespace hpe::fft
