#include "apps/fft/request.h"

#include <utility>
#include <vector>

#include "apps/command_line/program.h"
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

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  const setter to_size = [&r](const std::string& name, const std::string& v) { set_size(r, name, v); };
  return {
      {"SIZE|FILE", "",
       "the number of random elements, as in 1000, 2^20 or 4096x4096 (2^20); or a file of elements: .npy, or raw\n"
       "pairs of real and imaginary parts, float32, or float64 with --double",
       to_size_or_file(to_size, r.input)},
      {"--size", "N or ROWSxCOLUMNS",
       "elements of one array of the file, in one or two dimensions (the axes of a .npy file)", to_size},
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
      devices_option(r.devices),
      {"--plan", "", "only tell how the devices would share the work", to_flag(r.only_plan)},
      {"--effort", "EFFORT", "soft devices: how FFTW looks for its plans: estimate (default), measure, patient",
       to_one_of<effort>(r.how.soft_effort,
                         {{"estimate", effort::estimate}, {"measure", effort::measure}, {"patient", effort::patient}})},
      repeats_option(r.repeats),
      {"--seed", "N", "of the random input (1)", to_whole(r.seed, 0)},
      {"--output", "FILE", "write the result there, as .npy if the name ends so, or raw", to_text(r.output)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help),
  };
}

}  // namespace

std::vector<std::pair<std::string, form>> forms() {
  std::vector<std::pair<std::string, form>> known;
  for (const form f : {form::automatic, form::local, form::exchange, form::transpose, form::convolution})
    known.emplace_back(name_of(f), f);
  return known;
}

request parse(int argc, char** argv) {
  request r;
  command_line::read(options_of(r), argc, argv);
  return r;
}

std::string help_text() {
  request defaults;
  return "Usage: hpe fft [options] [SIZE|FILE]\n"
         "\n"
         "Transforms complex numbers by the fast Fourier transform over all devices, transforms back, and prints "
         "the time\n"
         "and the error. Any length is possible. Nothing is scaled: forward and inverse give the input times "
         "its\n"
         "length. Without options it transforms 2^20 random numbers.\n"
         "\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe fft\n"
         "  hpe fft 1000003 --double\n"
         "  hpe fft 4096x4096 --form transpose\n"
         "  hpe fft signal.npy --output spectrum.npy\n";
}

}  // namespace hpe::fft
