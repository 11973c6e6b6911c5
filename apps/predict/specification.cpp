#include "apps/predict/specification.h"

#include <fmt/core.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

#include "apps/command_line/values.h"

namespace hpe::predict {

namespace {

/// A table of the file. Errors name file, line and field.
class table {
 public:
  table(const toml::table& values, const std::string& file, std::string name, const std::vector<std::string>& known)
      : values_(values), file_(file), name_(std::move(name)) {
    for (const auto& [key, value] : values) {
      const std::string field(key.str());
      if (known.empty() || std::find(known.begin(), known.end(), field) != known.end()) continue;
      const std::string meant = command_line::nearest(field, known);
      throw bad_input(place(field, value) + ": unknown field" + (meant.empty() ? "" : "; is " + meant + " meant?"));
    }
  }

  [[nodiscard]] std::string place(const std::string& field) const {
    const toml::node* const found = values_.get(field);
    return place(field, found != nullptr ? *found : static_cast<const toml::node&>(values_));
  }
  [[nodiscard]] bool has(const std::string& field) const { return values_.contains(field); }

  [[nodiscard]] std::string text(const std::string& field, const std::optional<std::string>& otherwise = {}) const {
    const toml::node* const found = required(field, otherwise.has_value());
    if (found == nullptr) return *otherwise;
    if (!found->is_string()) throw bad_input(place(field) + ": not a text in quotation marks");
    return found->value<std::string>().value();
  }
  [[nodiscard]] bool flag(const std::string& field, bool otherwise) const {
    const toml::node* const found = values_.get(field);
    if (found == nullptr) return otherwise;
    if (!found->is_boolean()) throw bad_input(place(field) + ": neither true nor false");
    return found->value<bool>().value();
  }
  /// Returns the value of a field, which is a number or a text with a formula.
  [[nodiscard]] formula expression(const std::string& field, const std::optional<std::string>& otherwise = {}) const {
    const toml::node* const found = required(field, otherwise.has_value());
    if (found == nullptr) return {*otherwise, place(field)};
    if (found->is_string()) return {found->value<std::string>().value(), place(field)};
    if (!found->is_number()) throw bad_input(place(field) + ": neither a number nor a formula in quotation marks");
    return {fmt::format("{}", found->value<double>().value()), place(field)};
  }
  template <class Value>
  [[nodiscard]] Value one_of(const std::string& field, const std::vector<std::pair<std::string, Value>>& known,
                             const std::optional<std::string>& otherwise = {}) const {
    const std::string word = text(field, otherwise);
    std::string all;
    for (const auto& [name, value] : known) {
      if (word == name) return value;
      all += (all.empty() ? "" : ", ") + name;
    }
    throw bad_input(fmt::format("{}: \"{}\" is none of {}", place(field), word, all));
  }

  [[nodiscard]] std::optional<table> part(const std::string& field, const std::vector<std::string>& known) const {
    if (!has(field)) return std::nullopt;
    const toml::table* const found = values_.get_as<toml::table>(field);
    if (found == nullptr) throw bad_input(place(field) + ": not a table; a table begins with the line [" + field + "]");
    return table(*found, file_, field, known);
  }
  [[nodiscard]] std::vector<table> parts(const std::string& field, const std::vector<std::string>& known) const {
    std::vector<table> all;
    if (!has(field)) return all;
    const toml::array* const found = values_.get_as<toml::array>(field);
    if (found == nullptr)
      throw bad_input(place(field) + ": not an array of tables; each of its tables begins with the line [[" + field +
                      "]]");
    for (const toml::node& one : *found) {
      if (!one.is_table()) throw bad_input(place(field, one) + ": not a table");
      all.emplace_back(*one.as_table(), file_, field, known);
    }
    return all;
  }

  /// Returns the names of all fields, in the order of the file.
  [[nodiscard]] std::vector<std::string> fields() const {
    std::vector<std::pair<toml::source_position, std::string>> found;
    for (const auto& [key, value] : values_) found.emplace_back(value.source().begin, key.str());
    std::sort(found.begin(), found.end());
    std::vector<std::string> names;
    for (const auto& [where, name] : found) names.push_back(name);
    return names;
  }

 private:
  [[nodiscard]] std::string place(const std::string& field, const toml::node& node) const {
    return fmt::format("{}:{}: {}{}{}", file_, std::max<std::uint32_t>(node.source().begin.line, 1), name_,
                       name_.empty() ? "" : ".", field);
  }
  [[nodiscard]] const toml::node* required(const std::string& field, bool has_default) const {
    const toml::node* const found = values_.get(field);
    if (found == nullptr && !has_default) throw bad_input(place(field) + ": missing");
    return found;
  }

  const toml::table& values_;
  const std::string& file_;
  std::string name_;
};

const std::vector<std::pair<std::string, bool>> periods{{"iteration", true}, {"run", false}};

transfer_formulas read_transfer(const table& t) {
  const auto where =
      t.one_of<direction>("direction", {{"to_device", direction::to_device}, {"to_host", direction::to_host}});
  const bool pinned = t.flag("pinned", false);
  // Input that is read from the disk replaces other data in host memory, which is first written to the disk. Output is
  // written to memory that is already free.
  const char* const passes = !pinned && where == direction::to_device ? "2" : "0";
  return {t.text("name"),
          where,
          t.expression("bytes"),
          t.expression("pieces", "1"),
          t.expression("disk_passes", passes),
          pinned,
          t.one_of<bool>("per", periods, "run"),
          t.flag("overlap", false)};
}

exchange_formulas read_exchange(const table& t) {
  const auto how = t.one_of<pattern>("pattern", {{"gather", pattern::gather},
                                                 {"scatter", pattern::scatter},
                                                 {"broadcast", pattern::broadcast},
                                                 {"all_gather", pattern::all_gather},
                                                 {"all_reduce", pattern::all_reduce},
                                                 {"all_to_all", pattern::all_to_all},
                                                 {"halo", pattern::halo},
                                                 {"shift", pattern::shift}});
  return {t.text("name"),
          how,
          t.expression("bytes"),
          t.expression("members", "P"),
          t.expression("rounds", "1"),
          t.expression("copied", "0"),
          t.expression("kernel_bytes", "0"),
          t.one_of<bool>("per", periods, "run"),
          t.flag("overlap", false)};
}

const std::vector<std::string> top_keys{"name",  "about", "source", "assumed",  "possible",
                                        "sizes", "work",  "memory", "transfer", "exchange"};
const std::vector<std::string> in_work{
    "devices",  "iterations",        "units",           "granule",         "block",
    "launches", "reference_seconds", "reference_units", "reference_bytes", "cpu_seconds"};
const std::vector<std::string> in_transfer{"name",   "direction", "bytes",   "pieces",
                                           "pinned", "per",       "overlap", "disk_passes"};
const std::vector<std::string> in_exchange{"name",   "pattern",      "bytes", "members", "rounds",
                                           "copied", "kernel_bytes", "per",   "overlap"};

specification read_table(const table& all) {
  specification s;
  s.name = all.text("name");
  s.about = all.text("about", "");
  s.source = all.text("source", "");
  s.assumed = all.text("assumed", "");
  if (const auto sizes = all.part("sizes", {}))
    for (const std::string& name : sizes->fields()) s.sizes.emplace_back(name, sizes->expression(name));
  if (all.has("possible")) s.possible = all.expression("possible");
  const auto work = all.part("work", in_work);
  if (!work) throw bad_input(all.place("work") + ": missing");
  s.devices = work->expression("devices", "P");
  s.iterations = work->expression("iterations", "1");
  s.units = work->expression("units");
  s.granule = work->expression("granule", "1");
  s.block = work->expression("block", "0");
  s.launches = work->expression("launches", "1");
  s.reference_seconds = work->expression("reference_seconds");
  s.reference_units = work->expression("reference_units");
  s.reference_bytes = work->expression("reference_bytes", "0");
  s.cpu_seconds = work->expression("cpu_seconds", "0");
  const auto memory = all.part("memory", {"host", "device"});
  s.host_bytes = memory ? memory->expression("host", "0") : formula{"0", ""};
  s.device_bytes = memory ? memory->expression("device", "0") : formula{"0", ""};
  for (const table& t : all.parts("transfer", in_transfer)) s.transfers.push_back(read_transfer(t));
  for (const table& t : all.parts("exchange", in_exchange)) s.exchanges.push_back(read_exchange(t));
  return s;
}

}  // namespace

double formula::value(const variables& known) const {
  try {
    return evaluate(text, known);
  } catch (const bad_input& wrong) {
    throw bad_input(place + ": " + wrong.what());
  }
}

double formula::at_least(double least, const variables& known) const {
  const double found = value(known);
  if (found < least) throw bad_input(fmt::format("{}: {} is below {}", place, found, least));
  return found;
}

double formula::above_zero(const variables& known) const {
  const double found = value(known);
  if (found <= 0) throw bad_input(fmt::format("{}: {} is not above 0", place, found));
  return found;
}

specification specification::read(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw bad_input("cannot read " + file);
  return parse({std::istreambuf_iterator<char>(stream), {}}, file);
}

specification specification::parse(const std::string& text, const std::string& file) {
  try {
    const toml::table all = toml::parse(text, file);
    return read_table({all, file, "", top_keys});
  } catch (const toml::parse_error& wrong) {
    throw bad_input(fmt::format("{}:{}: not valid TOML: {}", file, wrong.source().begin.line, wrong.description()));
  }
}

void specification::set(const std::string& assignments) {
  std::istringstream all(assignments);
  for (std::string one; std::getline(all, one, ',');) {
    const std::size_t sign = one.find('=');
    if (sign == std::string::npos) throw bad_input("--set " + one + ": expected NAME=VALUE");
    std::vector<std::string> known;
    for (const auto& size : sizes) known.push_back(size.first);
    const std::size_t place = command_line::place_among("--set", one.substr(0, sign), known);
    sizes[place].second = {one.substr(sign + 1), "--set " + known[place]};
  }
}

variables specification::variables_on(int devices, topology where) const {
  const bool shared = where == topology::shared;
  variables known{{"P", devices}, {"shared", shared ? 1 : 0}, {"hosts", shared ? 1 : devices}};
  for (const auto& [size, its_formula] : sizes) {
    const double found = its_formula.value(known);
    if (!known.emplace(size, found).second)
      throw bad_input(its_formula.place + ": the names P, shared and hosts are reserved");
  }
  return known;
}

std::optional<demand> specification::on(int all, topology where) const {
  const variables with_all = variables_on(all, where);
  if (possible && possible->value(with_all) == 0) return std::nullopt;
  const double part = devices.at_least(1, with_all);
  if (part > all || part != std::floor(part))
    throw bad_input(fmt::format("{}: the number of devices is {}, but it must be a whole number up to {}",
                                devices.place, part, all));
  const variables known = variables_on(static_cast<int>(part), where);
  demand d{};
  d.devices = static_cast<int>(part);
  d.where = where;
  d.iterations = iterations.at_least(1, known);
  d.units = units.above_zero(known);
  d.granule = granule.above_zero(known);
  d.block = block.at_least(0, known);
  d.launches = launches.at_least(0, known);
  d.reference_seconds = reference_seconds.at_least(0, known);
  d.reference_units = reference_units.above_zero(known);
  d.reference_bytes = reference_bytes.at_least(0, known);
  d.cpu_seconds = cpu_seconds.at_least(0, known);
  d.host_bytes = host_bytes.at_least(0, known);
  d.device_bytes = device_bytes.at_least(0, known);
  for (const transfer_formulas& t : transfers)
    d.transfers.push_back({t.name, t.where, t.bytes.at_least(0, known), t.pieces.above_zero(known), t.pinned,
                           t.each_iteration, t.overlap, t.disk_passes.at_least(0, known)});
  for (const exchange_formulas& x : exchanges)
    d.exchanges.push_back({x.name, x.how, x.bytes.at_least(0, known), x.members.at_least(1, known),
                           x.rounds.at_least(0, known), x.copied.at_least(0, known), x.each_iteration, x.overlap,
                           x.kernel_bytes.at_least(0, known)});
  return d;
}

}  // namespace hpe::predict
