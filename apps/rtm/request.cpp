#include "apps/rtm/request.h"

#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

namespace hpe::rtm {

namespace {

/// One option: its name, what its value is called ("" for a switch), what it does, and where the value goes.
struct option {
  std::string name, value, help;
  std::function<void(request&, const std::string&)> set;
};

double number(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(v)) throw bad_input(name + ": \"" + text + "\" is not a number");
  return v;
}

std::function<void(request&, const std::string&)> text(std::string request::*field) {
  return [field](request& r, const std::string& v) { r.*field = v; };
}

std::function<void(request&, const std::string&)> positive(const std::string& name, double request::*field) {
  return [=](request& r, const std::string& v) {
    r.*field = number(name, v);
    if (r.*field <= 0) throw bad_input(name + " " + v + ": it must be more than 0");
  };
}

std::function<void(request&, const std::string&)> not_negative(const std::string& name, double request::*field) {
  return [=](request& r, const std::string& v) {
    r.*field = number(name, v);
    if (r.*field < 0) throw bad_input(name + " " + v + ": it must not be negative");
  };
}

std::function<void(request&, const std::string&)> count(const std::string& name, std::int64_t request::*field,
                                                        std::int64_t least, std::int64_t most) {
  return [=](request& r, const std::string& v) {
    const double n = number(name, v);
    if (n != std::floor(n) || n < static_cast<double>(least) || n > static_cast<double>(most))
      throw bad_input(name + " " + v + ": it must be a whole number from " + std::to_string(least) + " to " +
                      std::to_string(most));
    r.*field = static_cast<std::int64_t>(n);
  };
}

std::function<void(request&, const std::string&)> flag(bool request::*field) {
  return [field](request& r, const std::string&) { r.*field = true; };
}

const std::vector<option>& options() {
  static const std::vector<option> all = {
      {"--model", "NAME",
       "salt: built in, layers and a salt body (default); flat: built in, one flat reflector;\n"
       "marmousi: FILE is the Marmousi section, 1601 x 401 cells of 7.5 m, float32, km/s;\n"
       "raw: FILE is any float32 volume, described by the options below",
       text(&request::model)},
      {"--size", "NXxNYxNZ", "cells of a raw or built-in model across, along y, and down (salt: 600x1x300)",
       text(&request::size)},
      {"--spacing", "METRES", "side of a cell (built-in models: chosen so that they are 3 km deep)",
       positive("--spacing", &request::spacing)},
      {"--order", "AXES", "raw: the axes from the fastest in the file to the slowest (zyx: depth fastest)",
       text(&request::order)},
      {"--unit", "UNIT", "raw: m/s or km/s (m/s)", text(&request::unit)},
      {"--extrude", "PLANES",
       "repeat a section of one plane along y (1). One plane is computed in two dimensions;\n"
       "up to 32 planes are a thin volume, periodic along y, with sources and receivers in every plane",
       count("--extrude", &request::extrude, 1, 100000)},
      {"--smooth", "METRES",
       "deviation of the Gaussian that makes the migration velocities from the true ones\n(8 cells); 0: migrate with "
       "the true ones",
       not_negative("--smooth", &request::smooth)},
      {"--frequency", "HZ", "peak of the Ricker wavelet (the slowest wave gets 9 cells a wavelength)",
       positive("--frequency", &request::frequency)},
      {"--time", "SECONDS", "length of the record (long enough for the deepest reflections)",
       positive("--time", &request::time)},
      {"--dt", "SECONDS", "time step (0.9 of the longest stable one)", positive("--dt", &request::time_step)},
      {"--shots", "N or NXxNY", "how many, spread evenly over the surface (16)", text(&request::shots)},
      {"--shot-depth", "METRES", "depth of the sources (2 cells)", not_negative("--shot-depth", &request::shot_depth)},
      {"--receivers", "FROM:TO:STEP", "where receivers are across, in metres (the whole width, every 2 cells)",
       text(&request::receivers)},
      {"--receiver-depth", "METRES", "depth of the receivers (2 cells)",
       not_negative("--receiver-depth", &request::receiver_depth)},
      {"--data", "HOW",
       "mute: fade the direct wave out of the records (default); residual: take off what the\nsmooth model predicts",
       text(&request::data)},
      {"--sponge", "CELLS", "width of the absorbing layers (40)", count("--sponge", &request::sponge, 0, 10000)},
      {"--free-surface", "", "the surface reflects instead of absorbing", flag(&request::free_surface)},
      {"--keep-every", "STEPS", "steps between kept wave fields (6 in a period of the highest frequency)",
       count("--keep-every", &request::keep_every, 1, 1000000)},
      {"--devices", "N", "use the first N devices (all; HPE_DEVICES=soft:N makes N)",
       count("--devices", &request::devices, 1, 64)},
      {"--output", "NAME", "write NAME.png and NAME.f32 (rtm)", text(&request::output)},
      {"--raw-image", "", "leave the background in NAME.f32 and the picture: no Laplacian filter",
       flag(&request::raw_image)},
      {"--gain", "POWER", "amplify the picture, not the data, by depth to this power (0.5)",
       not_negative("--gain", &request::gain)},
      {"--width", "PIXELS", "widest picture (1240)", count("--width", &request::width, 100, 20000)},
      {"--quiet", "", "no progress", flag(&request::quiet)},
      {"--help", "", "this text", flag(&request::help)},
  };
  return all;
}

}  // namespace

request parse(int argc, char** argv) {
  request r;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      if (!r.file.empty()) throw bad_input("one file is enough: \"" + r.file + "\" or \"" + word + "\"?");
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
  return r;
}

std::string help_text() {
  std::string help =
      "Usage: hpe rtm [options] [FILE]\n"
      "\n"
      "Makes a seismic image by reverse time migration: models what receivers at the surface record over the true\n"
      "velocities, sends it back into smooth ones, and correlates both wave fields. Wave fields are spread over all\n"
      "devices along x. Writes the image as float32, depth fastest (NAME.f32), and as a picture (NAME.png).\n"
      "Without options it images the built-in salt model.\n"
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
         "  hpe rtm\n"
         "  hpe rtm --model marmousi vp_marmousi_bi --output marmousi\n"
         "  hpe rtm --model raw --size 300x1x200 --spacing 12.5 velocity.bin --shots 20\n"
         "  HPE_DEVICES=soft:4 hpe rtm --size 120x60x90 --shots 3x1\n";
}

std::vector<double> numbers(const std::string& text, char separator, std::size_t least, std::size_t most,
                            const std::string& what) {
  std::vector<double> list;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find(separator, begin);
    list.push_back(number(what, text.substr(begin, end == std::string::npos ? end : end - begin)));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  if (list.size() < least || list.size() > most)
    throw bad_input(what + " " + text + ": " + std::to_string(list.size()) + " numbers where " + std::to_string(most) +
                    " separated by '" + separator + "' are wanted");
  return list;
}

}  // namespace hpe::rtm
