#include "apps/predict/predictions.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/command_line/charts.h"
#include "apps/command_line/report.h"
#include "apps/predict/modern_model.h"
#include "apps/predict/paper_model.h"

namespace hpe::predict {

namespace {

constexpr std::array models{model::paper, model::modern};
constexpr std::array resources{resource::kernels,     resource::cpu,   resource::to_device,
                               resource::to_host,     resource::disk,  resource::pinning,
                               resource::host_copies, resource::peers, resource::network};

estimate predict_by(model which, const demand& d, const machine_profile& m) {
  return which == model::paper ? paper::predict(d, m) : modern::predict(d, m);
}

std::string in_words(const point& p) {
  return fmt::format("{} {}{}, {}: {:.4g} s, {:.2f} times as fast as the first; bound by {}", p.devices,
                     p.devices == 1 ? "device" : "devices", p.extrapolated ? "*" : "", name_of(p.where), p.time.seconds,
                     p.speed_up, name_of(p.time.bound()));
}

nlohmann::json as_object(const point& p) {
  nlohmann::json parts = nlohmann::json::object();
  for (const auto& [r, seconds] : p.time.busy) parts[name_of(r)] = seconds;
  nlohmann::json one{{"devices", p.devices},           {"topology", name_of(p.where)},
                     {"model", name_of(p.which)},      {"seconds", p.time.seconds},
                     {"speed_up", p.speed_up},         {"bound_by", name_of(p.time.bound())},
                     {"extrapolated", p.extrapolated}, {"busy_seconds", parts}};
  if (p.unchanged) one["unchanged_seconds"] = *p.unchanged;
  return one;
}

}  // namespace

const char* name_of(model which) { return which == model::paper ? "paper" : "modern"; }

const point& predictions::best(model which) const {
  const point* found = nullptr;
  for (const point& p : points) {
    if (p.which != which) continue;
    if (found == nullptr || p.time.seconds < found->time.seconds ||
        (p.time.seconds == found->time.seconds && p.devices < found->devices))
      found = &p;
  }
  return *found;
}

predictions predict(const specification& s, const machine_profile& m, range devices, const std::vector<topology>& where,
                    const std::string& what_if) {
  const machine_profile changed = with_changes(m, what_if);
  predictions all{s.name, m.name, what_if, {}};
  for (const topology t : where) {
    std::map<model, double> first;
    for (int n = devices.first; n <= devices.last; ++n) {
      const std::optional<demand> d = s.on(n, t);
      if (!d) continue;
      for (const model which : models) {
        const estimate e = predict_by(which, *d, changed);
        const double base = first.emplace(which, e.seconds).first->second;
        point p{n, t, which, e, std::nullopt, base / e.seconds, t == topology::shared && n > m.devices};
        if (!what_if.empty()) p.unchanged = predict_by(which, *d, m).seconds;
        all.points.push_back(p);
      }
    }
  }
  if (all.points.empty())
    throw bad_input(
        fmt::format("{} cannot run on {} to {} devices: {}", s.name, devices.first, devices.last, s.possible->place));
  return all;
}

std::string as_table(const predictions& all) {
  const bool changed = !all.what_if.empty();
  std::string text =
      fmt::format("{} on {}{}{}\n\n devices  topology     model   seconds     {}speed-up  bound by\n",
                  all.specification, all.machine, changed ? ", if " : "", all.what_if, changed ? "unchanged   " : "");
  bool extrapolated = false;
  for (const point& p : all.points) {
    text +=
        fmt::format("{:8}{} {:<12} {:<7} {:<11.5g} {}{:<9.2f} {}\n", p.devices, p.extrapolated ? "*" : " ",
                    name_of(p.where), name_of(p.which), p.time.seconds,
                    p.unchanged ? fmt::format("{:<11.5g} ", *p.unchanged) : "", p.speed_up, name_of(p.time.bound()));
    extrapolated = extrapolated || p.extrapolated;
  }
  text += "\n";
  for (const model which : models)
    text += fmt::format("best by the {} model: {}\n", name_of(which), in_words(all.best(which)));
  if (extrapolated) text += "*: more devices than the machine has\n";
  return text;
}

std::string as_csv(const predictions& all) {
  std::string text = "devices,topology,model,seconds,speed_up,bound_by,extrapolated,unchanged_seconds";
  for (const resource r : resources) text += fmt::format(",{}", name_of(r));
  text += "\n";
  for (const point& p : all.points) {
    text += fmt::format("{},{},{},{},{},{},{},{}", p.devices, name_of(p.where), name_of(p.which), p.time.seconds,
                        p.speed_up, name_of(p.time.bound()), p.extrapolated,
                        p.unchanged ? fmt::format("{}", *p.unchanged) : "");
    for (const resource r : resources) text += fmt::format(",{}", p.time.seconds_of(r));
    text += "\n";
  }
  return text;
}

std::string as_json(const predictions& all) {
  nlohmann::json object{{"program", "hpe predict"},
                        {"commit", command_line::commit()},
                        {"machine", command_line::machine()},
                        {"time", command_line::time_now()},
                        {"specification", all.specification},
                        {"profile", all.machine},
                        {"what_if", all.what_if},
                        {"predictions", nlohmann::json::array()},
                        {"best", nlohmann::json::array()}};
  for (const point& p : all.points) object["predictions"].push_back(as_object(p));
  for (const model which : models) object["best"].push_back(as_object(all.best(which)));
  return command_line::text_of(object, 1) + "\n";
}

std::string as_charts(const predictions& all) {
  using namespace command_line;
  chart seconds{all.specification + " on " + all.machine, {"devices"}, {"seconds", scale::decades}, {}};
  chart speed_up{"speed relative to the first number of devices", {"devices"}, {"speed-up"}, {}};
  std::map<std::string, std::pair<line, line>> lines;
  for (const point& p : all.points) {
    const std::string name = fmt::format("{}, {}", name_of(p.where), name_of(p.which));
    auto& [in_seconds, in_speed] = lines.try_emplace(name, line{name, {}}, line{name, {}}).first->second;
    in_seconds.points.emplace_back(p.devices, p.time.seconds);
    in_speed.points.emplace_back(p.devices, p.speed_up);
  }
  for (auto& [name, both] : lines) {
    seconds.lines.push_back(both.first);
    speed_up.lines.push_back(both.second);
  }
  return command_line::as_json("hpe predict: " + all.specification, {{"prediction", {seconds, speed_up}}});
}

}  // namespace hpe::predict
