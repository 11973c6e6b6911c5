#include "apps/rtm/rtm_request.h"

#include <fmt/core.h>

#include <vector>

#include "apps/command_line/program.h"
#include "apps/rtm/keep_choice.h"

namespace hpe::rtm {

namespace {

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return {
      {"SIZE|FILE", "", "cells of a built-in model, as in 600x1x300; or the file of --model marmousi or raw",
       to_size_or_file(to_text(r.size), r.file)},
      {"--model", "NAME",
       "salt: built in, layers and a salt body (default); flat: built in, one flat reflector;\n"
       "marmousi: FILE is the Marmousi section, 1601 x 401 cells of 7.5 m, float32, km/s;\n"
       "raw: FILE is any float32 volume, described by the options below",
       to_text(r.model)},
      {"--size", "NXxNYxNZ",
       "number of cells of a raw or built-in model along x, along y, and in depth (salt: 600x1x300)", to_text(r.size)},
      {"--spacing", "METRES", "side of a cell (default for built-in models: a side with which the model is 3 km deep)",
       to_positive(r.spacing)},
      {"--order", "AXES", "raw: the axes from the fastest in the file to the slowest (zyx: depth fastest)",
       to_text(r.order)},
      {"--unit", "UNIT", "raw: m/s or km/s (m/s)", to_text(r.unit)},
      {"--extrude", "PLANES",
       "repeat a section of one plane along y (1). One plane is computed in two dimensions; "
       "up to 32 planes are a thin volume, periodic along y, with sources and receivers in every plane",
       to_whole(r.extrude, 1, 100000)},
      {"--smooth", "METRES",
       "deviation of the Gaussian that smooths the true velocities for the migration (8 cells); 0: migrate with the "
       "true ones",
       to_not_negative(r.smooth)},
      {"--frequency", "HZ", "peak frequency of the Ricker wavelet (9 cells in a wavelength of the slowest wave)",
       to_positive(r.frequency)},
      {"--time", "SECONDS", "length of the record (long enough for the deepest reflections)", to_positive(r.time)},
      {"--space-order", "N", "order of the derivatives in space: 4, 8, 12 or 16 (8)",
       to_one_of<std::int64_t>(r.space_order, {{"4", 4}, {"8", 8}, {"12", 12}, {"16", 16}})},
      {"--dt", "SECONDS", "time step (0.9 of the longest stable one)", to_positive(r.time_step)},
      {"--shots", "N or NXxNY", "number of shots, spread evenly over the surface (16)", to_text(r.shots)},
      {"--shot-depth", "METRES", "depth of the sources (2 cells)", to_not_negative(r.shot_depth)},
      {"--receivers", "FROM:TO:STEP", "positions of the receivers along x, in metres (the whole width, every 2 cells)",
       to_text(r.receivers)},
      {"--receiver-depth", "METRES", "depth of the receivers (2 cells)", to_not_negative(r.receiver_depth)},
      {"--data", "HOW",
       "mute: fade out the direct wave in the records (default); residual: subtract the records that the smooth model "
       "predicts",
       to_text(r.data)},
      {"--sponge", "CELLS", "width of the absorbing layers (40)", to_whole(r.sponge, 0, 10000)},
      {"--cpml", "CELLS", "perfectly matched layers of this width in place of the sponge (none; 20 are usual)",
       to_whole(r.cpml, 1, 10000)},
      {"--free-surface", "", "the surface reflects instead of absorbing", to_flag(r.free_surface)},
      {"--keep-every", "STEPS",
       "steps between kept wave fields (6 fields are kept in a period of the highest frequency)",
       to_whole(r.keep_every, 1, 1000000)},
      {"--compress", "BITS",
       "compress each cell of these fields to 16, 8 or 4 bits, relative to the value range of the cell's block (none)",
       to_one_of<std::int64_t>(r.keep.bits, {{"none", 0}, {"16", 16}, {"8", 8}, {"4", 4}})},
      {"--keep", "HOW",
       "what to keep of the source's wave field: fields (every --keep-every steps), boundary (fields are reconstructed "
       "from it), checkpoints (fields are computed again from them), or auto: fields, else checkpoints (default)",
       to_one_of<keep_method>(r.keep.how, keep_methods)},
      {"--place", "WHERE",
       "where to keep the wave field: device, host, disk, or auto: the fastest place with enough room (default)",
       to_one_of<keep_place>(r.keep.where, keep_places)},
      {"--folder", "FOLDER", "the folder for --place disk (.)", to_text(r.keep.folder)},
      devices_option(r.devices),
      {"--output", "NAME",
       "write NAME.png and NAME.f32 (rtm); with a NAME that ends in .png, .f32, .npy or .sgy, write only this file",
       to_text(r.output)},
      {"--raw-image", "", "keep the background in NAME.f32 and in the picture: apply no Laplacian filter",
       to_flag(r.raw_image)},
      {"--gain", "POWER", "multiply the picture, not the data, by this power of the depth (0.5)",
       to_not_negative(r.gain)},
      {"--width", "PIXELS", "widest picture (1240)", to_whole(r.width, 100, 20000)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help),
  };
}

}  // namespace

request parse(int argc, char** argv) {
  request r;
  command_line::read(options_of(r), argc, argv);
  return r;
}

std::string help_text() {
  request defaults;
  return "Usage: hpe rtm [demo] [options] [SIZE|FILE]\n\n"
         "Makes a seismic image by reverse time migration: simulates the records of receivers at the surface\n"
         "for the true velocities, propagates the records back through smooth velocities, and correlates both wave "
         "fields.\n"
         "Wave fields are divided among all devices along x. Writes the image as float32, depth fastest (NAME.f32), "
         "and as a picture (NAME.png).\n"
         "Without options it images the built-in salt model. `hpe rtm demo` is the same command.\n\n"
         "Two commands work on surveys on disk: `hpe rtm model SURVEY` writes simulated records to a SEG-Y file, and "
         "`hpe rtm\n"
         "migrate SURVEY` makes an image from records in a SEG-Y file. SURVEY is a TOML file; `hpe rtm model --help` "
         "lists its\n"
         "fields.\n\n" +
         command_line::lines_of_help(options_of(defaults)) +
         "\nExamples:\n"
         "  hpe rtm\n"
         "  hpe rtm --model marmousi vp_marmousi_bi --output marmousi\n"
         "  hpe rtm --model raw --size 300x1x200 --spacing 12.5 velocity.bin --shots 20\n"
         "  HPE_DEVICES=soft:4 hpe rtm 120x60x90 --shots 3x1\n"
         "  hpe rtm migrate survey.toml\n";
}

std::vector<double> numbers(const std::string& text, char separator, std::size_t least, std::size_t most,
                            const std::string& what) {
  std::vector<double> list;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find(separator, begin);
    list.push_back(command_line::real_number(what, text.substr(begin, end == std::string::npos ? end : end - begin)));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  if (list.size() < least || list.size() > most)
    throw bad_input(fmt::format("{} {}: expected {} numbers with {} between them, and there {} {}", what, text,
                                least == most ? std::to_string(most) : fmt::format("{} or {}", least, most), separator,
                                list.size() == 1 ? "is" : "are", list.size()));
  return list;
}

}  // namespace hpe::rtm
