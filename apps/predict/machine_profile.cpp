#include "apps/predict/machine_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/command_line/report.h"
#include "apps/command_line/values.h"

namespace hpe::predict {

namespace {

using json = nlohmann::ordered_json;

struct speed_field {
  const char* name;
  rate_table machine_profile::*table;
};
constexpr std::array speed_fields{speed_field{"speeds_together", &machine_profile::speeds_together},
                                  speed_field{"memory_speeds_together", &machine_profile::memory_speeds_together},
                                  speed_field{"speeds_on_machines", &machine_profile::speeds_on_machines},
                                  speed_field{"memory_speeds_on_machines", &machine_profile::memory_speeds_on_machines},
                                  speed_field{"copy_speeds_on_machines", &machine_profile::copy_speeds_on_machines}};

/// A JSON object in a profile. Errors name the file and the path of the field.
class object {
 public:
  object(const json& value, std::string path, std::vector<std::string> known)
      : value_(value), path_(std::move(path)), known_(std::move(known)) {
    if (!value.is_object()) throw bad_input(path_ + ": not an object");
    for (const auto& [name, ignored] : value.items())
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
        const std::string meant = command_line::nearest(name, known_);
        throw bad_input(
            fmt::format("{}.{}: unknown field{}", path_, name, meant.empty() ? "" : "; is \"" + meant + "\" meant?"));
      }
  }

  [[nodiscard]] bool has(const std::string& name) const { return value_.contains(name); }
  [[nodiscard]] const json& at(const std::string& name) const {
    if (!has(name)) throw bad_input(fmt::format("{}.{}: missing", path_, name));
    return value_[name];
  }
  [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "." + name; }
  [[nodiscard]] std::string text(const std::string& name) const {
    if (!at(name).is_string()) throw bad_input(path_of(name) + ": not a text");
    return at(name).get<std::string>();
  }
  [[nodiscard]] double number(const std::string& name) const {
    if (!at(name).is_number() || at(name).get<double>() < 0)
      throw bad_input(path_of(name) + ": expected a number of at least 0");
    return at(name).get<double>();
  }
  [[nodiscard]] double positive(const std::string& name) const {
    if (number(name) == 0) throw bad_input(path_of(name) + ": must be above 0");
    return number(name);
  }
  [[nodiscard]] double number_or(const std::string& name, double otherwise) const {
    return has(name) ? number(name) : otherwise;
  }
  [[nodiscard]] object part(const std::string& name, std::vector<std::string> known) const {
    return {at(name), path_of(name), std::move(known)};
  }
  /// Returns the elements of an array as objects. `known`: the allowed fields of each object.
  [[nodiscard]] std::vector<object> parts(const std::string& name, const std::vector<std::string>& known) const {
    if (!at(name).is_array()) throw bad_input(path_of(name) + ": not an array");
    std::vector<object> all;
    for (std::size_t i = 0; i < at(name).size(); ++i)
      all.emplace_back(at(name)[i], fmt::format("{}[{}]", path_of(name), i), known);
    return all;
  }

 private:
  const json& value_;
  std::string path_;
  std::vector<std::string> known_;
};

int device_number(const object& o, const std::string& name) {
  constexpr int most = 65536;
  const double value = o.number(name);
  if (value != std::floor(value) || value > most)
    throw bad_input(o.path_of(name) + ": expected a whole number from 0 to 65536");
  return static_cast<int>(value);
}

rate_table table_of(const object& o, const std::string& name, const std::string& value = "bytes_per_second") {
  std::vector<shared_rate> rows;
  for (const object& row : o.parts(name, {"devices", value}))
    rows.push_back({device_number(row, "devices"), row.positive(value)});
  try {
    return rate_table(std::move(rows));
  } catch (const bad_input& wrong) {
    throw bad_input(o.path_of(name) + ": " + wrong.what());
  }
}

std::optional<network> network_of(const object& o, const std::string& name) {
  if (!o.has(name)) return std::nullopt;
  const object n = o.part(name, {"bytes_per_second", "latency_seconds", "together"});
  return network{n.positive("bytes_per_second"), n.number("latency_seconds"),
                 n.has("together") ? table_of(n, "together") : rate_table{}};
}

peer_links peers_of(const object& o) {
  const object p = o.part("peers", {"latency_seconds", "pairs", "together", "by_kernels"});
  peer_links found{p.number("latency_seconds"), {}};
  for (const object& pair : p.parts("pairs", {"from", "to", "bytes_per_second"}))
    found.pairs.push_back({device_number(pair, "from"), device_number(pair, "to"), pair.positive("bytes_per_second")});
  if (found.pairs.empty())
    throw bad_input(p.path_of("pairs") + ": empty; leave `peers` out if the machine has no peer copies");
  if (p.has("together")) found.together = table_of(p, "together");
  if (p.has("by_kernels")) found.by_kernels = table_of(p, "by_kernels");
  return found;
}

machine_profile read_object(const object& o) {
  machine_profile m;
  m.name = o.text("name");
  m.origin = o.text("origin");
  if (m.origin != "published" && m.origin != "measured")
    throw bad_input(o.path_of("origin") + ": expected published or measured");
  if (!o.at("sources").is_array()) throw bad_input(o.path_of("sources") + ": not an array");
  for (const json& source : o.at("sources")) {
    if (!source.is_string()) throw bad_input(o.path_of("sources") + ": not texts");
    m.sources.push_back(source.get<std::string>());
  }
  if (m.sources.empty()) throw bad_input(o.path_of("sources") + ": empty");

  std::vector<std::string> in_devices{"count",
                                      "memory_bytes",
                                      "relative_speed",
                                      "launch_seconds",
                                      "kernel_floor_seconds",
                                      "blocks_in_a_wave",
                                      "kernel_memory_bytes_per_second"};
  for (const speed_field& f : speed_fields) in_devices.emplace_back(f.name);
  const object d = o.part("devices", in_devices);
  m.devices = device_number(d, "count");
  m.device_memory = d.positive("memory_bytes");
  if (d.has("relative_speed")) m.relative_speed = d.positive("relative_speed");
  m.kernel_memory = d.number_or("kernel_memory_bytes_per_second", 0);
  for (const speed_field& f : speed_fields)
    if (d.has(f.name)) m.*f.table = table_of(d, f.name, "speed");
  m.launch = d.number_or("launch_seconds", 0);
  m.kernel_floor = d.number_or("kernel_floor_seconds", 0);
  m.wave = d.number_or("blocks_in_a_wave", 0);

  const object l = o.part("links", {"pinned_to_device", "pinned_to_host", "pageable_to_device", "pageable_to_host",
                                    "both_ways", "latency_seconds", "pageable_latency_seconds"});
  m.pinned_to_device = table_of(l, "pinned_to_device");
  m.pinned_to_host = table_of(l, "pinned_to_host");
  m.pageable_to_device = table_of(l, "pageable_to_device");
  m.pageable_to_host = table_of(l, "pageable_to_host");
  if (l.has("both_ways")) m.both_ways = table_of(l, "both_ways");
  m.link_latency = l.number_or("latency_seconds", 0);
  m.pageable_latency = l.number_or("pageable_latency_seconds", m.link_latency);

  const object h = o.part("host", {"memory_bytes", "copy_bytes_per_second", "pinned_allocation_seconds",
                                   "pinned_allocation_seconds_per_byte", "disk_bytes_per_second"});
  m.host_memory = h.positive("memory_bytes");
  m.host_copy = h.positive("copy_bytes_per_second");
  m.pinned_allocation = h.number_or("pinned_allocation_seconds", 0);
  m.pinned_allocation_a_byte = h.number_or("pinned_allocation_seconds_per_byte", 0);
  m.disk = h.positive("disk_bytes_per_second");

  if (o.has("peers")) m.peers = peers_of(o);
  m.between_nodes = network_of(o, "network");
  m.between_ranks = network_of(o, "ranks");
  return m;
}

json as_rows(const rate_table& t, const char* value = "bytes_per_second") {
  json rows = json::array();
  for (const shared_rate& r : t.rows()) rows.push_back({{"devices", r.devices}, {value, r.rate}});
  return rows;
}

json as_object(const network& n) {
  json object{{"bytes_per_second", n.rate}, {"latency_seconds", n.latency}};
  if (!n.together.empty()) object["together"] = as_rows(n.together);
  return object;
}

void change(machine_profile& m, const std::string& part, double factor) {
  if (part == "link") {
    for (rate_table* t :
         {&m.pinned_to_device, &m.pinned_to_host, &m.pageable_to_device, &m.pageable_to_host, &m.both_ways})
      t->multiply(factor);
  } else if (part == "peer") {
    if (!m.peers) throw bad_input("--what-if peer: " + m.name + " has no peer copies");
    for (peer_rate& p : m.peers->pairs) p.rate *= factor;
    m.peers->together.multiply(factor);
    m.peers->by_kernels.multiply(factor);
  } else if (part == "network") {
    if (!m.between_nodes) throw bad_input("--what-if network: " + m.name + " has no network");
    m.between_nodes->rate *= factor;
    m.between_nodes->together.multiply(factor);
  } else if (part == "disk") {
    m.disk *= factor;
  } else if (part == "host") {
    m.host_copy *= factor;
  } else if (part == "memory") {
    m.host_memory *= factor;
  } else {
    m.relative_speed *= factor;
  }
}

machine_profile::speeds speeds_of(double alone, const rate_table& arithmetic, const rate_table& memory, int devices) {
  const double in_arithmetic = arithmetic.empty() ? 1 : arithmetic.of_each(devices);
  return {alone * in_arithmetic, alone * (memory.empty() ? in_arithmetic : memory.of_each(devices))};
}

}  // namespace

rate_table::rate_table(std::vector<shared_rate> rows) : rows_(std::move(rows)) {
  if (rows_.empty() || rows_.front().devices != 1) throw bad_input("the first row must be for 1 device");
  for (std::size_t i = 1; i < rows_.size(); ++i)
    if (rows_[i].devices <= rows_[i - 1].devices) throw bad_input("the numbers of devices must ascend");
}

double rate_table::of_each(int devices) const {
  const auto sum = [](const shared_rate& r) { return r.rate * r.devices; };
  const auto above =
      std::find_if(rows_.begin(), rows_.end(), [&](const shared_rate& r) { return r.devices >= devices; });
  if (above == rows_.end()) return sum(rows_.back()) / devices;
  if (above->devices == devices) return above->rate;
  const auto below = std::prev(above);
  const double share = static_cast<double>(devices - below->devices) / (above->devices - below->devices);
  return std::lerp(sum(*below), sum(*above), share) / devices;
}

void rate_table::multiply(double factor) {
  for (shared_rate& r : rows_) r.rate *= factor;
}

double peer_links::rate(int devices) const {
  std::optional<double> among_first, of_all;
  for (const peer_rate& p : pairs) {
    of_all = std::min(of_all.value_or(p.rate), p.rate);
    if (p.from < devices && p.to < devices) among_first = std::min(among_first.value_or(p.rate), p.rate);
  }
  const double pair = among_first.value_or(*of_all);
  return together.empty() ? pair : std::min(pair, together.of_each(devices));
}

double peer_links::rate_of_kernels(int devices) const {
  return by_kernels.empty() ? rate(devices) : by_kernels.of_each(devices);
}

machine_profile::speeds machine_profile::on_one_machine(int devices) const {
  return speeds_of(relative_speed, speeds_together, memory_speeds_together, devices);
}

machine_profile::speeds machine_profile::on_machines(int machines) const {
  return speeds_of(relative_speed, speeds_on_machines, memory_speeds_on_machines, machines);
}

machine_profile profile_of_json(const std::string& text, const std::string& file) {
  try {
    const json value = json::parse(text);
    return read_object({value,
                        file + ": profile",
                        {"name", "origin", "sources", "commit", "time", "machine", "devices", "links", "host", "peers",
                         "network", "ranks"}});
  } catch (const json::parse_error& wrong) {
    throw bad_input(fmt::format("{}: not valid JSON: {}", file, wrong.what()));
  }
}

machine_profile read_profile(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw bad_input("cannot read " + file);
  return profile_of_json({std::istreambuf_iterator<char>(stream), {}}, file);
}

std::string as_json(const machine_profile& m) {
  json all{{"name", m.name}, {"origin", m.origin}, {"sources", m.sources}};
  all["devices"] = {{"count", m.devices},
                    {"memory_bytes", m.device_memory},
                    {"relative_speed", m.relative_speed},
                    {"launch_seconds", m.launch},
                    {"kernel_floor_seconds", m.kernel_floor},
                    {"blocks_in_a_wave", m.wave},
                    {"kernel_memory_bytes_per_second", m.kernel_memory}};
  for (const speed_field& f : speed_fields)
    if (!(m.*f.table).empty()) all["devices"][f.name] = as_rows(m.*f.table, "speed");
  all["links"] = {{"latency_seconds", m.link_latency},
                  {"pageable_latency_seconds", m.pageable_latency},
                  {"pinned_to_device", as_rows(m.pinned_to_device)},
                  {"pinned_to_host", as_rows(m.pinned_to_host)},
                  {"pageable_to_device", as_rows(m.pageable_to_device)},
                  {"pageable_to_host", as_rows(m.pageable_to_host)}};
  if (!m.both_ways.empty()) all["links"]["both_ways"] = as_rows(m.both_ways);
  all["host"] = {{"memory_bytes", m.host_memory},
                 {"copy_bytes_per_second", m.host_copy},
                 {"pinned_allocation_seconds", m.pinned_allocation},
                 {"pinned_allocation_seconds_per_byte", m.pinned_allocation_a_byte},
                 {"disk_bytes_per_second", m.disk}};
  if (m.peers) {
    json pairs = json::array();
    for (const peer_rate& p : m.peers->pairs)
      pairs.push_back({{"from", p.from}, {"to", p.to}, {"bytes_per_second", p.rate}});
    all["peers"] = {{"latency_seconds", m.peers->latency}, {"pairs", pairs}};
    if (!m.peers->together.empty()) all["peers"]["together"] = as_rows(m.peers->together);
    if (!m.peers->by_kernels.empty()) all["peers"]["by_kernels"] = as_rows(m.peers->by_kernels);
  }
  if (m.between_nodes) all["network"] = as_object(*m.between_nodes);
  if (m.between_ranks) all["ranks"] = as_object(*m.between_ranks);
  return command_line::text_of(all, 1) + "\n";
}

machine_profile with_changes(machine_profile m, const std::string& changes) {
  std::istringstream all(changes);
  for (std::string one; std::getline(all, one, ',');) {
    const std::size_t sign = one.find('=');
    if (sign == std::string::npos || !one.ends_with('x'))
      throw bad_input("--what-if " + one +
                      ": expected PART=FACTORx, as in link=2x; separate several changes by commas");
    static const std::vector<std::string> parts{"link", "peer", "network", "disk", "host", "memory", "gpu"};
    const std::string part = parts[command_line::place_among("--what-if", one.substr(0, sign), parts)];
    const double factor = command_line::real_number("--what-if " + part, one.substr(sign + 1, one.size() - sign - 2));
    if (factor <= 0) throw bad_input("--what-if " + one + ": the factor must be above 0");
    change(m, part, factor);
  }
  return m;
}

}  // namespace hpe::predict
