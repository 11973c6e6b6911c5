#include "apps/imaging/imaging_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/files/element_file.h"
#include "apps/modules/modules.h"
#include "apps/pictures/picture.h"

namespace hpe::imaging {

std::vector<command_line::option> with_common(std::vector<command_line::option> own, common& c,
                                              const std::string& output_help) {
  using namespace command_line;
  const std::vector<option> all{
      devices_option(c.devices),
      {"--repeats", "N", "number of runs; the fastest is reported (3)", to_whole(c.repeats, 1)},
      {"--output", "FILE", output_help + "; if FILE has no ending, write a file of each of these formats",
       to_text(c.output)},
      json_option(c.json),
      quiet_option(c.quiet),
      help_option(c.help)};
  own.insert(own.end(), all.begin(), all.end());
  return own;
}

command_line::setter to_sizes(const std::vector<std::int64_t*>& places) {
  return [places](const std::string& name, const std::string& text) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    std::string rest = text;
    try {
      for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t cross = rest.find('x');
        if ((cross == std::string::npos) != (i + 1 == places.size())) throw bad_input("another number of sizes");
        *places[i] = command_line::whole_number(name, rest.substr(0, cross), 1, most);
        rest = cross == std::string::npos ? "" : rest.substr(cross + 1);
      }
    } catch (const bad_input&) {
      throw bad_input(fmt::format("{} {}: {} sizes are needed, from 1 to {}, with x between them", name, text,
                                  places.size(), most));
    }
  };
}

std::unique_ptr<team> begin(const make_team& make, const std::vector<command_line::option>& options, const common& c,
                            std::string (*help_text)(), int argc, char** argv) {
  command_line::read(options, argc, argv);
  std::unique_ptr<team> all = make(c.devices);
  if (!c.help) return all;
  if (all->leads()) hpe::command_line::print_help(help_text());
  return nullptr;
}

void check_memory(const std::string& what, const team& who, double on_host, double on_devices) {
  if (!who.leads()) return;
  command_line::check_room(what, {.on_devices = on_devices * sizeof(float), .on_host = on_host * sizeof(float)},
                           who.devices_here());
}

void tell(const std::string& program, const std::string& title, const common& c, const team& who, const times& t,
          const std::string& more) {
  if (!who.leads()) return;
  std::vector<command_line::figure> figures{{"time", t.seconds, "s"}};
  std::string parts;
  for (std::size_t p = 0; p < t.phases.size(); ++p) {
    figures.push_back({phase_names[p], t.phases[p], "s"});
    if (t.phases[p] > 0) parts += fmt::format("{}{} {:.4f} s", parts.empty() ? "" : ", ", phase_names[p], t.phases[p]);
  }
  command_line::answer({"hpe " + program, "fastest of the repeats", title, c.repeats,
                        command_line::names_of_devices(who.devices_here()), figures},
                       fmt::format("{} on {} device{}: {:.4f} s ({})\n{}", title, who.size(),
                                   who.size() == 1 ? "" : "s", t.seconds, parts, more),
                       c.json, c.quiet);
}

image read_image(const std::string& file) {
  image i;
  if (!files::is_npy(file)) {
    const pictures::pixels p = pictures::read_png(file);
    return {p.height, p.width, {p.values.begin(), p.values.end()}};
  }
  const files::description d = files::describe(file);
  d.must_hold("f32");
  if (d.shape.size() != 2) throw bad_input(fmt::format("{} has {} axes; an image has two", file, d.shape.size()));
  i.rows = static_cast<std::int64_t>(d.shape[0]);
  i.columns = static_cast<std::int64_t>(d.shape[1]);
  i.values.resize(d.elements(sizeof(float)));
  files::read(d, i.values.data());
  return i;
}

void write_image(const command_line::output_files& files, const image& i) {
  if (files.has(".npy"))
    files::write(files.stem + ".npy", "f32",
                 {static_cast<std::uint64_t>(i.rows), static_cast<std::uint64_t>(i.columns)}, i.values.data(),
                 sizeof(float));
  if (!files.has(".png")) return;
  pictures::picture p(i.columns, i.rows);
  for (std::int64_t y = 0; y < i.rows; ++y)
    for (std::int64_t x = 0; x < i.columns; ++x) {
      const double v = std::round(i.values[static_cast<std::size_t>(y * i.columns + x)]);
      p.put(x, y, {v, v, v});
    }
  pictures::write_png(files.stem + ".png", p);
}

command_line::output_files checked_outputs(const std::string& output, const std::string& json, output_kind kind,
                                           const std::vector<std::string>& inputs) {
  std::vector<std::string> endings{".npy"};
  if (kind == output_kind::image) endings.insert(endings.begin(), ".png");
  command_line::output_files files = command_line::outputs_named(output, endings, endings);
  std::vector<std::string> all = files.names();
  all.push_back(json);
  command_line::check_outputs(all, inputs);
  return files;
}

hpe::module kernels() { return hpe::module(modules::require("libhpe-imaging-kernels.so")); }

hpeShape grid_for(std::uint64_t elements) {
  constexpr std::uint64_t threads = 256, most = 1 << 16;
  return grid(static_cast<std::uint32_t>(std::clamp<std::uint64_t>((elements + threads - 1) / threads, 1, most)));
}

}  // namespace hpe::imaging
