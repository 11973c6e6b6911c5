#include "apps/hpe/report/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

namespace hpe::cli {

namespace {

using nlohmann::json;

constexpr const char* format_of_addresses = "{:#x}";

std::string name_of(const json& part) {
  const std::string rank = part.at("rank");
  return rank.empty() ? fmt::format("process {}", part.at("process").get<long>()) : "rank " + rank;
}

std::uint64_t last_value(const json& part, std::string_view name) {
  const json& names = part.at("value_names");
  const auto found = std::find(names.begin(), names.end(), name);
  const json& samples = part.at("samples");
  if (found == names.end() || samples.empty()) return 0;
  return samples.back().at("values").at(static_cast<std::size_t>(found - names.begin()));
}

/// Returns the calls and seconds of the events of a category, summed by name.
std::vector<recorded_calls> calls_of(const json& part, std::string_view category) {
  std::map<std::string, recorded_calls> sums;
  const auto add = [&](const std::string& name, std::uint64_t calls, double seconds) {
    recorded_calls& sum = sums[name];
    sum.function = name;
    sum.calls += calls;
    sum.seconds += seconds;
  };
  for (const json& e : part.at("trace").at("traceEvents"))
    if (e.at("ph") == "X" && e.at("cat") == category) add(e.at("name"), 1, e.at("dur").get<double>() / 1e6);
  for (const json& e : part.at("trace").at("otherData").at("without_room"))
    if (e.at("cat") == category) add(e.at("name"), e.at("calls"), e.at("seconds"));
  std::vector<recorded_calls> result;
  for (auto& [name, sum] : sums) result.push_back(std::move(sum));
  return result;
}

json advice_of(const recorded_process& process) {
  json all = json::array();
  for (const advice& a : advise(process))
    all.push_back({{"rule", a.rule}, {"where", a.where}, {"text", a.text}, {"seconds", a.seconds}});
  return all;
}

json places_of(const recorded_process& process) {
  json all = json::array();
  for (const recorded_place& p : process.places) {
    const std::uint64_t touched = bytes_of_touches(p, process);
    all.push_back({{"way", p.way},
                   {"where", p.where},
                   {"calls", p.calls},
                   {"bytes", p.bytes + touched},
                   {"estimated", touched != 0},
                   {"seconds", p.seconds}});
  }
  return all;
}

json ways_of(const recorded_process& process) {
  std::map<std::string, recorded_place> sums;
  for (const recorded_place& p : process.places) {
    recorded_place& sum = sums[p.way];
    sum.calls += p.calls;
    sum.bytes += p.bytes + bytes_of_touches(p, process);
    sum.seconds += p.seconds;
  }
  json all = json::array();
  for (const auto& [way, sum] : sums)
    all.push_back({{"way", way}, {"calls", sum.calls}, {"bytes", sum.bytes}, {"seconds", sum.seconds}});
  return all;
}

json allocations_of(const recorded_process& process) {
  json all = json::array();
  for (const recorded_allocation& a : process.allocations)
    all.push_back({{"address", fmt::format(format_of_addresses, a.address)},
                   {"bytes", a.bytes},
                   {"made_at", a.made_at},
                   {"to_host", a.to_host},
                   {"to_device", a.to_device},
                   {"moves_to_host", a.moves_to_host},
                   {"moves_to_device", a.moves_to_device},
                   {"used_begin", a.used_begin},
                   {"used_end", a.used_end}});
  return all;
}

json kernels_of(const json& part) {
  json all = json::array();
  for (const recorded_calls& c : calls_of(part, "kernel"))
    all.push_back({{"kernel", c.function}, {"calls", c.calls}, {"seconds", c.seconds}});
  return all;
}

json mpi_of(const recorded_process& process) {
  json all = json::array();
  for (const recorded_calls& c : process.mpi)
    all.push_back({{"function", c.function}, {"calls", c.calls}, {"seconds", c.seconds}});
  return all;
}

/// Returns the events as short arrays: row, name, category, begin in us since the process began, duration in us, bytes.
json timeline_of(const json& part) {
  std::map<std::uint64_t, std::string> groups;  // names of processes, by their number in the trace
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> named;  // names of rows, by process and thread
  std::map<std::pair<std::uint64_t, std::uint64_t>, json> events;        // events, by row
  std::map<std::string, std::size_t> names;
  std::map<std::string, std::size_t> categories;
  const auto number = [](auto& table, const std::string& name) {
    return table.emplace(name, table.size()).first->second;
  };
  const double began = part.at("began_ticks");
  for (const json& e : part.at("trace").at("traceEvents")) {
    const std::uint64_t group = e.at("pid");
    if (e.at("ph") == "M") {
      if (e.at("name") == "process_name") groups[group] = e.at("args").at("name");
      if (e.at("name") == "thread_name") named[{group, e.at("tid")}] = e.at("args").at("name");
      continue;
    }
    json& row = events[{group, e.at("tid")}];
    row.push_back({0, number(names, e.at("name")), number(categories, e.at("cat")), e.at("ts").get<double>() - began,
                   e.at("dur"), e.at("args").at("bytes")});
  }
  json rows = json::array();
  json all = json::array();
  for (auto& [where, its] : events) {
    const auto name = named.find(where);
    const std::string row = name != named.end() ? name->second : fmt::format("thread {}", where.second);
    for (json& e : its) {
      e[0] = rows.size();
      all.push_back(std::move(e));
    }
    rows.push_back(fmt::format("{}: {}", groups[where.first], row));
  }
  const auto listed = [](const std::map<std::string, std::size_t>& table) {
    json list = json::array();
    for (const auto& [name, at] : table) list[at] = name;
    return list;
  };
  return {{"rows", rows},
          {"events", all},
          {"names", listed(names)},
          {"categories", listed(categories)},
          {"left_out", part.at("trace").at("otherData").at("events_without_room")}};
}

json shown(const json& part) {
  const recorded_process process = process_of(part);
  json totals;
  for (const std::string name : part.at("value_names")) totals[name] = last_value(part, name);
  json result{{"name", process.name},
              {"advice", advice_of(process)},
              {"ways", ways_of(process)},
              {"places", places_of(process)},
              {"allocations", allocations_of(process)},
              {"kernels", kernels_of(part)},
              {"mpi", mpi_of(process)},
              {"totals", totals},
              {"timeline", timeline_of(part)}};
  for (const char* const same :
       {"process", "host", "command", "complete", "began", "seconds", "devices", "value_names", "samples"})
    result[same] = part.at(same);
  return result;
}

}  // namespace

recorded_process process_of(const json& part) {
  recorded_process result;
  result.name = name_of(part);
  result.seconds = part.at("seconds");
  for (const json& p : part.at("profile").at("places"))
    result.places.push_back(
        {p.at("way"), p.at("where"), p.at("calls"), p.at("bytes"), p.at("seconds"), p.at("lowest"), p.at("highest")});
  for (const json& a : part.at("profile").at("allocations"))
    result.allocations.push_back({a.at("address"), a.at("bytes"), a.at("made_at"), a.at("to_host"), a.at("to_device"),
                                  a.at("moves_to_host"), a.at("moves_to_device"), a.at("used_begin"),
                                  a.at("used_end")});
  result.mpi = calls_of(part, "mpi");
  result.faults_read = last_value(part, "faults_read");
  result.faults_write = last_value(part, "faults_write");
  result.blocks_prefetched = last_value(part, "blocks_prefetched");
  result.degraded = last_value(part, "degraded");
  return result;
}

std::vector<json> read_parts(const std::filesystem::path& folder) {
  std::vector<std::pair<std::pair<long, long>, json>> found;  // parts, by rank and process
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    if (entry.path().extension() != ".json") continue;
    try {
      std::ifstream file(entry.path());
      json part = json::parse(file);
      static_cast<void>(shown(part));  // throws if the part lacks a value that the page needs
      const std::string rank = part.at("rank");
      long number = -1;
      std::from_chars(rank.data(), rank.data() + rank.size(), number);
      const long process = part.at("process");
      found.emplace_back(std::pair(number, process), std::move(part));
    } catch (const json::exception& e) {
      fmt::print(stderr, "hpe: {} is left out of the report, because it is not a part of a report: {}\n",
                 entry.path().string(), e.what());
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<json> parts;
  for (auto& [order, part] : found) parts.push_back(std::move(part));
  return parts;
}

std::string page_of(const std::vector<json>& parts, const std::string& command, const std::string& ending) {
  json data{{"command", command}, {"ending", ending}, {"version", HPE_PACKAGE_VERSION}, {"processes", json::array()}};
  for (const json& part : parts) data["processes"].push_back(shown(part));
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  // "</script>" in a string would end the element.
  for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) text.replace(at, 2, "<\\/");
  std::string page = page_template();
  const std::string_view place = "{{DATA}}";
  return page.replace(page.find(place), place.size(), text);
}

}  // namespace hpe::cli
