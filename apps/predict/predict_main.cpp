#include "apps/predict/predict_main.h"

#include <fmt/core.h>

#include <fstream>
#include <iterator>

#include "apps/command_line/program.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/predict/predict_request.h"
#include "apps/predict/svg.h"
#include "apps/predict/trace_specification.h"

namespace hpe::predict {

namespace {

specification specification_of(const request& r) {
  if (!r.specification.empty()) return specification::read(file_of(r.specification, "applications", ".toml"));
  const std::string& file = r.trace.empty() ? r.profile : r.trace;
  std::ifstream stream(file);
  if (!stream) throw bad_input("cannot read " + file);
  const std::string seen{std::istreambuf_iterator<char>(stream), {}};
  const std::string text = r.trace.empty() ? specification_of_profile(seen, file) : specification_of_trace(seen, file);
  command_line::write_text(text, r.save_spec);
  return specification::parse(text, file);
}

int run(const request& r) {
  const std::string given = r.specification.empty() ? "" : file_of(r.specification, "applications", ".toml");
  const std::string machine = r.machine.empty() ? "" : file_of(r.machine, "machines", ".json");
  command_line::check_outputs({r.json, r.csv, r.charts, r.picture, r.save_spec}, {given, machine, r.trace, r.profile});
  specification s = specification_of(r);
  if (r.machine.empty()) return 0;
  s.set(r.sizes);
  const machine_profile m = read_profile(machine);
  const predictions all = predict(s, m, r.devices, topologies(r, m), r.what_if);
  if (!r.quiet && r.json != "-" && r.csv != "-" && r.charts != "-") {
    fmt::print("{}", as_table(all));
    if (m.origin == "published") fmt::print("figures of the machine: published, not measured\n");
    if (!s.assumed.empty()) fmt::print("assumed: {}\n", s.assumed);
  }
  command_line::write_text(as_json(all), r.json);
  command_line::write_text(as_csv(all), r.csv);
  command_line::write_text(as_charts(all), r.charts);
  command_line::write_text(as_svg(all), r.picture);
  return 0;
}

}  // namespace

}  // namespace hpe::predict

int predict_main(int argc, char** argv) {
  using namespace hpe;
  return command_line::guarded("hpe predict", [&] {
    const predict::request r = predict::parse(argc, argv);
    if (!r.help) return predict::run(r);
    hpe::command_line::print_help(predict::help_text());
    return 0;
  });
}
