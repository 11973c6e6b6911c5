#include "apps/fft/fft_request.h"

#include <utility>
#include <vector>

#include "apps/command_line/program.h"
#include "apps/fft/fft_choice.h"

namespace hpe::fft {

namespace {

void set_size(request& r, const std::string& name, const std::string& text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) {
    r.what.rows = 1;
    r.what.length = command_line::whole_number(name, text, 1);
  } else {
    try {
      r.what.rows = command_line::whole_number(name, text.substr(0, cross), 1);
      r.what.length = command_line::whole_number(name, text.substr(cross + 1), 1);
    } catch (const command_line::bad_input&) {
      throw command_line::bad_input(name + " " + text +
                                    ": expected two whole numbers above 0 with x between them, as in 4096x4096");
    }
  }
  r.sized = true;
}

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  const setter to_size = [&r](const std::string& name, const std::string& v) { set_size(r, name, v); };
  return {
      {"SIZE|FILE", "",
       "the number of random elements, as in 1000, 2^20 or 4096x4096 (default: 2^20); or a file of "
       "elements: .npy, or raw pairs of real and imaginary parts, float32, or float64 with --double",
       to_size_or_file(to_size, r.input)},
      {"--size", "N or ROWSxCOLUMNS",
       "the number of elements, or rows and columns, of one array in the file (default: the axes of the .npy file)",
       to_size},
      {"--batch", "B", "transform B arrays that follow each other (1)", to_whole(r.what.batch, 1)},
      {"--double", "", "double precision instead of single", to_flag(r.twice)},
      {"--inverse", "", "compute the inverse transform, without scaling", to_flag(r.inverse)},
      {"--form", "FORM",
       "how devices share an array: local, exchange (pairs of devices, log2 W steps), transpose (six-step), "
       "convolution "
       "(any length), or automatic",
       to_one_of(r.how.how, forms())},
      {"--scrambled", "", "leave the elements in the order of the last pass, which is faster",
       [&r](const std::string&, const std::string&) { r.how.elements = order::scrambled; }},
      devices_option(r.devices),
      {"--plan", "", "only print how the devices would share the work", to_flag(r.only_plan)},
      {"--effort", "EFFORT",
       "on soft devices: how long FFTW searches for its plans: estimate (default), measure, patient",
       to_one_of<effort>(r.how.soft_effort,
                         {{"estimate", effort::estimate}, {"measure", effort::measure}, {"patient", effort::patient}})},
      repeats_option(r.repeats),
      {"--seed", "N", "seed of the random input (1)", to_whole(r.seed, 0)},
      {"--output", "FILE", "write the result to this file: .npy if its name ends in .npy, else raw", to_text(r.output)},
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
         "Transforms complex numbers on all devices by the fast Fourier transform, transforms the result back, and "
         "prints "
         "the time\n"
         "and the error. Any length is possible. Results are not scaled: a forward and an inverse "
         "transform\n"
         "together multiply the input by its length. Without options it transforms 2^20 random numbers.\n"
         "\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe fft\n"
         "  hpe fft 1000003 --double\n"
         "  hpe fft 4096x4096 --form transpose\n"
         "  hpe fft signal.npy --output spectrum.npy\n";
}

}  // namespace hpe::fft
