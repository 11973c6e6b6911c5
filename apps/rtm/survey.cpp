// The table of fields is the schema of survey files; parsing, checks and help use it.
#include "apps/rtm/survey.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <sstream>
#include <utility>
#include <variant>

#include "apps/command_line/command_options.h"
#include "apps/command_line/wrapping.h"
#include "apps/rtm/keep_choice.h"
#include "apps/rtm/records.h"

namespace hpe::rtm {

namespace {

/// The kinds of values; each kind points to the variable that it sets.
using real_number = double*;
using whole_number = std::int64_t*;
using yes_or_no = bool*;
using words = std::vector<std::string>*;
using cell = sides*;
struct text {
  std::string* place;
};
struct path {
  std::string* place;
  std::string word = {};  ///< a word that may replace the path; empty: none
};
struct one_of {
  std::string* place;
  std::vector<std::string> possible;
};
struct number_of {
  std::int64_t* place;
  std::vector<std::int64_t> possible;
};
struct list {
  std::vector<double>* place;
  std::size_t count;
};
/// One of the names in `possible`; `take` receives the index of the name.
struct named {
  std::vector<std::string> possible;
  std::function<void(std::size_t)> take;
};
template <class Value>
named to_named(Value* to, const std::vector<std::pair<std::string, Value>>& values) {
  named n;
  for (const auto& [name, value] : values) n.possible.push_back(name);
  n.take = [to, &values](std::size_t number) { *to = values[number].second; };
  return n;
}

struct field {
  std::string table, key;
  std::variant<real_number, whole_number, yes_or_no, cell, text, path, one_of, named, number_of, list, words> value;
  std::string help;
  double least = -HUGE_VAL;  ///< the smallest valid value, if the value is a number
};

constexpr double above_zero = std::numeric_limits<double>::min();

const std::vector<std::pair<std::string, bool>> codecs{{"blocks", false}, {"zfp", true}};

std::vector<field> velocities(const std::string& table, velocity_source& v) {
  return {
      {table, "file", path{&v.file}, "velocities: SEG-Y (.sgy, .segy), NumPy (.npy), else raw float32"},
      {table, "builtin", one_of{&v.builtin, {"salt", "flat"}}, "a built-in model instead of a file"},
      {table, "size", list{&v.size, 3},
       "raw and built-in models: number of cells along x, y and z; with y = 1, the model is a two-dimensional section",
       1},
      {table, "spacing", &v.spacing, "side of a cell, or its sides along x, y and z; SEG-Y files contain the sides",
       above_zero},
      {table, "every", &v.every, "use only every n-th cell along each axis (1)", 1},
      {table, "unit", one_of{&v.unit, {"m/s", "km/s"}}, "unit of the file's velocities"},
      {table, "order", text{&v.order}, "raw and .npy: the axes from the fastest to the slowest (\"zyx\")"},
      {table, "origin", list{&v.origin, 2}, "x and y of the first cell; SEG-Y files contain the position"},
      {table, "density", path{&v.density, "gardner"},
       "file with the densities of the same cells in kg/m3 or g/cm3, or gardner: densities from Gardner's relation "
       "(constant density)"},
      {table, "picture", path{&v.picture}, "PNG file to write, with the velocities"},
  };
}

std::vector<field> fields_of(survey& s) {
  std::vector<field> all = velocities("model", s.model);
  for (const field& f : velocities("migration", s.migration)) all.push_back(f);
  const std::vector<field> rest{
      {"migration", "smooth", &s.smooth,
       "without file and builtin: deviation of the Gaussian that smooths [model] (8 cells); 0: none", 0},
      {"migration", "data", one_of{&s.data, {"mute", "residual"}},
       "mute fades out the direct wave; residual subtracts the records of the migration model"},
      {"migration", "angle", &s.angle, "degrees: mute also fades out reflections at larger angles of incidence (90)",
       above_zero},
      {"migration", "keep_every", &s.keep_every,
       "steps between kept wave fields (6 fields are kept in a period of the highest frequency)", 1},
      {"migration", "compress", number_of{&s.keep.bits, {0, 4, 8, 16}},
       "bits for each cell of these fields, relative to the value range of the cell's block; 0: uncompressed (0)"},
      {"migration", "codec", to_named(&s.keep.zfp, codecs),
       "compressor of the kept fields: blocks, in kernels, or zfp, on the host (blocks)"},
      {"migration", "keep", to_named(&s.keep.how, keep_methods),
       "what is stored: these fields; the cells around the model, to reconstruct fields; or a few states, from which "
       "steps are repeated (auto)"},
      {"migration", "place", to_named(&s.keep.where, keep_places), "where this data is stored (auto)"},
      {"migration", "folder", path{&s.keep.folder},
       "folder of the file for place = \"disk\" (default: the folder of the survey file)"},
      {"migration", "checkpoints", &s.keep.checkpoints, "number of states (as many as fit into memory)", 1},
      {"wavelet", "frequency", &s.frequency,
       "peak frequency of a Ricker wavelet (9 cells in a wavelength of the slowest wave)", above_zero},
      {"wavelet", "file", path{&s.wavelet_file}, "samples: the first trace of a SEG-Y file, or .npy or raw float32"},
      {"wavelet", "interval", &s.wavelet_interval, "seconds between samples of a .npy or raw file", above_zero},
      {"shots", "x", list{&s.shots_x, 3}, "first, last and step"},
      {"shots", "y", list{&s.shots_y, 3}, "first, last and step (the middle)"},
      {"shots", "depth", &s.shot_depth, "(2 cells)", 0},
      {"receivers", "x", list{&s.receivers_x, 3}, "first, last and step, the same for all shots (every second cell)"},
      {"receivers", "y", list{&s.receivers_y, 3}, "first, last and step (the middle)"},
      {"receivers", "offset", list{&s.offsets, 3},
       "instead of x: first, last and step of the distances from the shot; places outside the model are left out"},
      {"receivers", "depth", &s.receiver_depth, "(2 cells)", 0},
      {"receivers", "geometry", path{&s.geometry},
       "instead of [shots] and other fields: a SEG-Y file with the places of shots and receivers"},
      {"space", "order", number_of{&s.order, {4, 8, 12, 16}}, "order of the derivatives in space (8)"},
      {"time", "length", &s.length, "seconds of a record (long enough for the deepest reflections)", above_zero},
      {"time", "interval", &s.interval,
       "seconds between samples of a record (8 samples in a period of the wavelet's peak, at most 0.004)", above_zero},
      {"time", "step", &s.time_step, "upper bound of the time step (0.9 of the longest stable one)", above_zero},
      {"edges", "sponge", &s.sponge, "width of the absorbing layers in cells (40)", 0},
      {"edges", "cpml", &s.cpml,
       "width of perfectly matched layers in cells, in place of a sponge (none; 20 are usual)", 1},
      {"edges", "free_surface", &s.free_surface, "the surface reflects instead of absorbing"},
      {"records", "file", path{&s.records}, "SEG-Y: `hpe rtm model` writes it, `hpe rtm migrate` reads it"},
      {"records", "format", one_of{&s.records_format, {"ieee", "ibm"}}, "sample format of the written file"},
      {"records", "picture", path{&s.records_picture}, "PNG file to write, with the records of the middle shot"},
      {"records", "shift", &s.shift, "seconds by which records are moved towards later times before migration"},
      {"image", "name", path{&s.image}, "name of the image's files, without an ending"},
      {"image", "formats", &s.image_formats, "endings: sgy, npy, f32 (raw), png (sgy and png)"},
      {"image", "condition", one_of{&s.condition, {"normalised", "correlation"}},
       "normalised divides the correlation by the illumination (the default)"},
      {"image", "illumination", path{&s.illumination},
       "a file for the sum of squares of the source's field: .sgy, .npy or raw"},
      {"image", "laplacian", &s.laplacian, "remove the smooth background (true)"},
      {"image", "gain", &s.gain, "multiply the picture, not the data, by this power of the depth (0.5)", 0},
      {"image", "width", &s.width, "width of the picture in pixels (1240)", 100},
  };
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

std::string type_of(const field& f) {
  struct {
    std::string operator()(real_number) const { return "number"; }
    std::string operator()(whole_number) const { return "whole number"; }
    std::string operator()(yes_or_no) const { return "true or false"; }
    std::string operator()(cell) const { return "number or 3 numbers"; }
    std::string operator()(const text&) const { return "text"; }
    std::string operator()(const path& p) const {
      return p.word.empty() ? "path" : fmt::format("path or \"{}\"", p.word);
    }
    std::string operator()(const one_of& o) const { return fmt::format("\"{}\"", fmt::join(o.possible, "\" or \"")); }
    std::string operator()(const named& n) const { return fmt::format("\"{}\"", fmt::join(n.possible, "\" or \"")); }
    std::string operator()(const number_of& n) const { return fmt::format("{}", fmt::join(n.possible, " or ")); }
    std::string operator()(const list& l) const { return fmt::format("{} numbers", l.count); }
    std::string operator()(words) const { return "list of texts"; }
  } names;
  return std::visit(names, f.value);
}

/// A value of the file. Its errors name the file, the line and the field.
class given {
 public:
  given(const std::string& file, const field& f, const toml::node& node) : file_(file), field_(f), node_(node) {}

  void store() const { std::visit(*this, field_.value); }

  void operator()(real_number to) const { *to = checked(node_); }
  void operator()(whole_number to) const {
    const auto value = node_.value_exact<std::int64_t>();
    if (!value) refuse();
    *to = static_cast<std::int64_t>(checked(node_));
  }
  void operator()(yes_or_no to) const {
    const auto value = node_.value_exact<bool>();
    if (!value) refuse();
    *to = *value;
  }
  void operator()(cell to) const {
    const toml::array* const values = node_.as_array();
    if (values != nullptr && values->size() != 3) refuse();
    *to = values == nullptr ? sides(checked(node_))
                            : sides(checked((*values)[0]), checked((*values)[1]), checked((*values)[2]));
  }
  void operator()(const text& to) const { *to.place = word(node_); }
  void operator()(const path& to) const {
    const std::string given = word(node_);
    *to.place = given == to.word ? given : (std::filesystem::path(file_).parent_path() / given).string();
  }
  void operator()(const one_of& to) const {
    if (std::find(to.possible.begin(), to.possible.end(), word(node_)) == to.possible.end()) refuse();
    *to.place = word(node_);
  }
  void operator()(const named& to) const {
    const auto at = std::find(to.possible.begin(), to.possible.end(), word(node_));
    if (at == to.possible.end()) refuse();
    to.take(static_cast<std::size_t>(at - to.possible.begin()));
  }
  void operator()(const number_of& to) const {
    const auto value = node_.value_exact<std::int64_t>();
    if (!value || std::find(to.possible.begin(), to.possible.end(), *value) == to.possible.end()) refuse();
    *to.place = *value;
  }
  void operator()(const list& to) const {
    const toml::array* const values = node_.as_array();
    if (values == nullptr || values->size() != to.count) refuse();
    to.place->clear();
    for (const toml::node& n : *values) to.place->push_back(checked(n));
  }
  void operator()(words to) const {
    const toml::array* const values = node_.as_array();
    if (values == nullptr) refuse();
    to->clear();
    for (const toml::node& n : *values) to->push_back(word(n));
  }

 private:
  [[noreturn]] void refuse() const {
    std::ostringstream value;
    node_.visit([&](const auto& n) { value << n; });
    const std::string least = field_.least == above_zero    ? " above 0"
                              : std::isfinite(field_.least) ? fmt::format(", at least {}", field_.least)
                                                            : "";
    throw bad_input(fmt::format("{}, line {}: [{}] {} = {}: expected {}{}", file_, node_.source().begin.line,
                                field_.table, field_.key, value.str(), type_of(field_), least));
  }
  [[nodiscard]] double checked(const toml::node& n) const {
    const auto value = n.value<double>();
    if (!n.is_number() || !value || !std::isfinite(*value) || *value < field_.least) refuse();
    return *value;
  }
  [[nodiscard]] std::string word(const toml::node& n) const {
    const auto value = n.value_exact<std::string>();
    if (!value) refuse();
    return *value;
  }

  const std::string& file_;
  const field& field_;
  const toml::node& node_;
};

toml::table parsed(const std::string& path) {
  try {
    return toml::parse_file(path);
  } catch (const toml::parse_error& e) {
    const auto line = e.source().begin.line;
    if (line == 0) throw bad_input(fmt::format("{} cannot be read: {}", path, e.description()));
    throw bad_input(fmt::format("{}, line {}: {}", path, line, e.description()));
  }
}

/// Throws bad_input for a word that is not one of the known words.
void must_know(const std::string& path, const toml::node& node, const std::string& kind, const std::string& word,
               const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  const std::string meant = command_line::nearest(word, known);
  throw bad_input(fmt::format(
      "{}, line {}: unknown {} {}; {}", path, node.source().begin.line, kind, word,
      meant.empty() ? fmt::format("the possible values are {}", fmt::join(known, ", ")) : "is " + meant + " meant?"));
}

/// Returns the places of a row of points. range: first, last and step. Throws bad_input.
std::vector<double> places(const std::vector<double>& range, const std::string& name) {
  constexpr double most = 1e6;
  const double first = range[0], last = range[1], step = range[2];
  if (!(step > 0) || last < first)
    throw bad_input(
        fmt::format("{} = [{}, {}, {}]: expected first, last and step, in rising order, with a step above 0", name,
                    first, last, step));
  const double steps = std::floor((last - first) / step + 1e-6);
  if (!(steps < most))
    throw bad_input(fmt::format("{} = [{}, {}, {}]: these are {:.3g} places; at most {:.0f} are possible", name, first,
                                last, step, steps + 1, most));
  std::vector<double> all;
  for (double n = 0; n <= steps; ++n) all.push_back(first + n * step);
  if (all.size() > 1 && all[0] == all[1])
    throw bad_input(
        fmt::format("{} = [{}, {}, {}]: the step is too small to distinguish the places", name, first, last, step));
  return all;
}

/// Returns the index of the nearest cell, which may be outside the model.
std::int32_t cell_at(double metres, double origin, double side) {
  return static_cast<std::int32_t>(std::lround(std::clamp((metres - origin) / side, -1e9, 1e9)));
}

}  // namespace

survey read_survey(const std::string& path) {
  const toml::table root = parsed(path);
  survey s;
  s.keep.folder = std::filesystem::path(path).parent_path().string();
  const std::vector<field> fields = fields_of(s);
  std::vector<std::string> tables;
  for (const field& f : fields)
    if (std::find(tables.begin(), tables.end(), f.table) == tables.end()) tables.push_back(f.table);
  for (const auto& [name, node] : root) {
    const std::string table(name.str());
    must_know(path, node, "table", table, tables);
    if (!node.is_table())
      throw bad_input(
          fmt::format("{}, line {}: {} must be a table: write [{}]", path, node.source().begin.line, table, table));
    std::vector<std::string> keys;
    for (const field& f : fields)
      if (f.table == table) keys.push_back(f.key);
    for (const auto& [key, value] : *node.as_table())
      must_know(path, value, "field of [" + table + "]:", std::string(key.str()), keys);
    for (const field& f : fields)
      if (const toml::node* const value = f.table == table ? node.as_table()->get(f.key) : nullptr)
        given(path, f, *value).store();
  }
  return s;
}

std::string help_on_surveys() {
  survey s;
  std::string all;
  std::string table;
  for (const field& f : fields_of(s)) {
    if (f.table != table) all += fmt::format("  [{}]\n", f.table);
    table = f.table;
    constexpr std::size_t column = 16;
    const std::string text = fmt::format("{}: {}", type_of(f), f.help);
    all += fmt::format("  {:13} {}\n", f.key, command_line::wrapped(text, column, command_line::columns()));
  }
  return all;
}

std::vector<placed_shot> shots_of(const survey& s, const volume& model) {
  if (!s.geometry.empty()) return shot_file(s.geometry, model).shots();
  if (s.shots_x.empty()) throw bad_input("the survey states no shots; add [shots] x or [receivers] geometry");
  if (!s.offsets.empty() && !s.receivers_x.empty()) throw bad_input("[receivers] x and offset exclude each other");
  const double width = static_cast<double>(model.nx - 1) * model.spacing.x;
  const std::int64_t middle_cell = model.ny / 2;
  const double middle_y = model.y0 + static_cast<double>(middle_cell) * model.spacing.y;
  const std::vector<double> middle{middle_y, middle_y, model.spacing.y};
  const auto depth = [&](double metres) { return metres < 0 ? 2 : cell_at(metres, 0, model.spacing.z); };
  const std::vector<double> range =
      s.receivers_x.empty() ? std::vector<double>{model.x0, model.x0 + width, 2 * model.spacing.x} : s.receivers_x;
  const std::vector<double> along = places(s.receivers_y.empty() ? middle : s.receivers_y, "[receivers] y");

  std::vector<placed_shot> all;
  for (const double x : places(s.shots_x, "[shots] x"))
    for (const double y : places(s.shots_y.empty() ? middle : s.shots_y, "[shots] y")) {
      placed_shot one{
          static_cast<std::int64_t>(all.size()) + 1,
          {{cell_at(x, model.x0, model.spacing.x), cell_at(y, model.y0, model.spacing.y), depth(s.shot_depth)}, {}}};
      for (const double at :
           places(s.offsets.empty() ? range : s.offsets, s.offsets.empty() ? "[receivers] x" : "[receivers] offset")) {
        const std::int32_t there = cell_at(s.offsets.empty() ? at : x + at, model.x0, model.spacing.x);
        if (!s.offsets.empty() && (there < 0 || there >= model.nx)) continue;
        for (const double r : along)
          one.where.receivers.push_back({there, cell_at(r, model.y0, model.spacing.y), depth(s.receiver_depth)});
      }
      if (one.where.receivers.empty())
        throw bad_input(fmt::format("shot {} at x = {} m has no receiver inside the model", one.number, x));
      all.push_back(std::move(one));
    }
  return all;
}

}  // namespace hpe::rtm
