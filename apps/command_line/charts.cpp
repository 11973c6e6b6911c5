#include "apps/command_line/charts.h"

#include <cerrno>
#include <nlohmann/json.hpp>

#include "apps/command_line/report.h"

namespace hpe::command_line {

namespace {

const char* name_of(scale s) {
  switch (s) {
    case scale::linear: return "linear";
    case scale::decades: return "decades";
    case scale::sizes: return "sizes";
  }
  return "";
}

}  // namespace

std::string as_json(const std::string& title, const std::vector<picture>& pictures) {
  nlohmann::json object{
      {"program", ::program_invocation_short_name}, {"title", title},     {"commit", commit()},
      {"machine", command_line::machine()},         {"time", time_now()}, {"charts", nlohmann::json::array()}};
  for (const picture& p : pictures)
    for (const chart& c : p.charts)
      for (const line& l : c.lines) {
        std::vector<double> xs, ys;
        for (const auto& [x, y] : l.points) {
          xs.push_back(x);
          ys.push_back(y);
        }
        object["charts"].push_back({{"picture", p.title},
                                    {"chart", c.title},
                                    {"line", l.name},
                                    {"x_label", c.x.label},
                                    {"y_label", c.y.label},
                                    {"x_scale", name_of(c.x.how)},
                                    {"y_scale", name_of(c.y.how)},
                                    {"x", xs},
                                    {"y", ys}});
      }
  return text_of(object, 1) + '\n';
}

}  // namespace hpe::command_line
