// Formulas, specifications and profiles as users write them, and the messages about errors.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "apps/predict/predict_request.h"
#include "apps/predict/predictions.h"
#include "apps/predict/svg.h"
#include "apps/predict/trace_specification.h"

namespace hpe::predict {
namespace {

std::string complaint(const std::function<void()>& body) {
  try {
    body();
  } catch (const bad_input& wrong) {
    return wrong.what();
  }
  return "";
}

const std::string good = R"(name = "a"
[sizes]
rows = 10
cells = "rows * 2"
[work]
units = "cells"
reference_seconds = 1
reference_units = 10
[[exchange]]
name = "rim"
pattern = "halo"
bytes = "cells / P"
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = good;
  return text.replace(text.find(from), from.size(), to);
}

std::string complaint_about(const std::string& text) {
  return complaint([&] {
    const specification s = specification::parse(text, "f.toml");
    static_cast<void>(s.on(2, topology::shared));
  });
}

TEST(Expression, KnowsArithmeticFunctionsAndVariables) {
  EXPECT_EQ(7, evaluate("ceil(P / 3) + floor(4.5)", {{"P", 8}}));
  EXPECT_EQ(1, evaluate("rint(sqrt(P))^2 == P ? 1 : 0", {{"P", 9}}));
  EXPECT_EQ(512, evaluate("2^9", {}));
}

TEST(Expression, NamesTheError) {
  const std::string unknown = complaint([] { static_cast<void>(evaluate("rows * 2", {{"P", 8}, {"row", 1}})); });
  EXPECT_NE(std::string::npos, unknown.find("\"rows\"")) << unknown;
  EXPECT_NE(std::string::npos, unknown.find("P, row")) << unknown;
  EXPECT_NE("", complaint([] { static_cast<void>(evaluate("1 / 0", {})); }));
  EXPECT_NE("", complaint([] { static_cast<void>(evaluate("(1", {})); }));
}

TEST(Specification, EvaluatesItsFormulas) {
  specification s = specification::parse(good, "f.toml");
  demand d = s.on(4, topology::shared).value();
  EXPECT_EQ(20, d.units);
  EXPECT_EQ(5, d.exchanges.at(0).bytes);
  EXPECT_EQ(4, d.exchanges.at(0).members);
  s.set("rows=30");
  EXPECT_EQ(60, s.on(1, topology::shared)->units);
  EXPECT_NE(std::string::npos, complaint([&] { s.set("row=1"); }).find("rows"));
}

TEST(Specification, LeavesOutNumbersOfDevicesThatAreNotPossible) {
  const specification s = specification::parse("possible = \"P != 3\"\n" + good, "f.toml");
  EXPECT_FALSE(s.on(3, topology::shared).has_value());
  EXPECT_TRUE(s.on(4, topology::shared).has_value());
}

TEST(Specification, DevicesThatTakeNoPartDoNotCount) {
  const specification s = specification::parse(with("[work]\n", "[work]\ndevices = \"P == 4 ? 2 : P\"\n"), "f.toml");
  const demand d = s.on(4, topology::shared).value();
  EXPECT_EQ(2, d.devices);
  EXPECT_EQ(10, d.exchanges.at(0).bytes);
  EXPECT_EQ(2, d.exchanges.at(0).members);
  EXPECT_EQ(3, s.on(3, topology::shared)->devices);
  for (const char* const wrong : {"0", "P + 1", "P / 4"})
    EXPECT_EQ(0U, complaint_about(with("[work]\n", fmt::format("[work]\ndevices = \"{}\"\n", wrong)))
                      .find("f.toml:6: work.devices: "))
        << wrong;
}

TEST(Specification, ErrorsNameLineAndField) {
  EXPECT_EQ("", complaint_about(good));
  EXPECT_EQ(0U, complaint_about(with("units = \"cells\"", "units = \"cell\"")).find("f.toml:6: work.units: \"cell\""));
  EXPECT_EQ(0U, complaint_about(with("units = \"cells\"", "units = true")).find("f.toml:6: work.units: neither"));
  EXPECT_EQ("f.toml:6: work.unit: unknown field; is units meant?",
            complaint_about(with("units = \"cells\"", "unit = \"cells\"")));
  EXPECT_EQ("f.toml:5: work.units: missing", complaint_about(with("units = \"cells\"\n", "")));
  EXPECT_EQ(0U, complaint_about(with("reference_seconds = 1", "reference_seconds = -1"))
                    .find("f.toml:7: work.reference_seconds: -1 is below 0"));
  EXPECT_EQ(0U,
            complaint_about(with("\"halo\"", "\"hallo\"")).find("f.toml:11: exchange.pattern: \"hallo\" is none of"));
  EXPECT_EQ(0U, complaint_about(with("rows = 10", "rows = [")).find("f.toml:"));
  EXPECT_EQ(0U, complaint_about(with("rows = 10", "P = 10")).find("f.toml:3: sizes.P"));
  EXPECT_NE("", complaint_about(""));
}

TEST(Profile, IsWrittenAsItIsRead) {
  for (const char* const name :
       {"schaa-kaeli-shared", "schaa-kaeli-distributed", "dgx-h100", "pcie-workstation", "h200"}) {
    const machine_profile m = read_profile(HPE_PREDICT "/machines/" + std::string(name) + ".json");
    EXPECT_EQ(std::string(name) == "h200" ? "measured" : "published", m.origin);
    const std::string text = as_json(m);
    EXPECT_EQ(text, as_json(profile_of_json(text, "again"))) << name;
  }
}

TEST(Profile, ErrorsNameTheField) {
  const std::string text = as_json(read_profile(HPE_PREDICT "/machines/dgx-h100.json"));
  const auto complaint_with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return complaint([&] { static_cast<void>(profile_of_json(changed, "f")); });
  };
  EXPECT_EQ("f: profile.host.disk_byte_per_second: unknown field; is \"disk_bytes_per_second\" meant?",
            complaint_with("disk_bytes_per", "disk_byte_per"));
  EXPECT_EQ("f: profile.devices.count: expected a number of at least 0",
            complaint_with("\"count\": 8", "\"count\": -8"));
  EXPECT_NE(std::string::npos, complaint_with("{", "").find("f: not valid JSON"));
  EXPECT_EQ("f: profile.links.pinned_to_device: the first row must be for 1 device",
            complaint_with("\"devices\": 1", "\"devices\": 2"));
}

TEST(Profile, WhatIfChangesParts) {
  const machine_profile m = read_profile(HPE_PREDICT "/machines/dgx-h100.json");
  const machine_profile changed = with_changes(m, "link=2x,network=0.5x");
  EXPECT_EQ(2 * m.pinned_to_host.of_each(8), changed.pinned_to_host.of_each(8));
  EXPECT_EQ(m.between_nodes->rate / 2, changed.between_nodes->rate);
  EXPECT_EQ(m.disk, changed.disk);
  for (const char* const wrong : {"link", "link=2", "link=0x", "lunk=2x", "link=x"})
    EXPECT_NE("", complaint([&] { static_cast<void>(with_changes(m, wrong)); })) << wrong;
}

/// Returns an event of a trace; process 7 is device 0, and process 1 contains the program's threads.
std::string event(int process, const std::string& kind, const std::string& name, double begin, double length,
                  double bytes = 0) {
  return fmt::format(R"(,{{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":0,"ts":{},"dur":{},"args":{{"bytes":{}}}}})",
                     name, kind, process, begin, length, bytes);
}

std::string trace_of(const std::string& events, int without_room = 0) {
  return R"({"traceEvents":[{"ph":"M","name":"process_name","pid":1,"args":{"name":"threads of the program"}},)"
         R"({"ph":"M","name":"process_name","pid":7,"args":{"name":"device 0: soft device 0"}},)"
         R"({"ph":"M","name":"process_name","pid":8,"args":{"name":"device 1: soft device 1"}})" +
         events + fmt::format(R"(],"otherData":{{"events_without_room":{}}}}})", without_room);
}

// Two steps of 1 s, then 1 s without work, then a copy of 4 s, of which 3 s overlap the third step. Events before the
// first kernel or after the last kernel, and calls of threads, do not belong to the run.
const std::string events_of_a_run =
    event(7, "copy", "copy to device", 0, 1e6, 1000) + event(7, "kernel", "step", 1e6, 1e6) +
    event(7, "kernel", "step", 2e6, 1e6) + event(1, "call", "hpeLaunch", 3e6, 9e6) +
    event(7, "copy", "copy to device", 4e6, 4e6, 6000) + event(7, "kernel", "step", 5e6, 4e6) +
    event(7, "copy", "copy to host", 9e6, 1e6, 1000);

TEST(Trace, GivesASpecificationOfItsRun) {
  const std::string text = specification_of_trace(trace_of(events_of_a_run), "t.json");
  const demand d = specification::parse(text, "t.toml").on(2, topology::shared).value();
  EXPECT_EQ(3, d.iterations);
  EXPECT_NEAR(6.0 / 3, d.reference_seconds, 1e-8);
  EXPECT_NEAR(1.0 / 3, d.cpu_seconds, 1e-8);
  ASSERT_EQ(1U, d.transfers.size());
  EXPECT_EQ(direction::to_device, d.transfers[0].where);
  EXPECT_EQ(1000, d.transfers[0].bytes);
  EXPECT_TRUE(d.transfers[0].overlap);
  EXPECT_TRUE(d.exchanges.empty());
}

TEST(Trace, LeavesOutThePreparationOfTheFirstLaunch) {
  std::string events = event(7, "kernel", "transform", 0, 9e6);
  for (int i = 0; i < 4; ++i) events += event(7, "kernel", "transform", 10e6 + i * 1e6, 1e6);
  const demand d =
      specification::parse(specification_of_trace(trace_of(events), "t.json"), "t").on(1, topology::shared).value();
  EXPECT_NEAR(1, d.reference_seconds, 1e-8);
  EXPECT_NEAR(1.0 / 5, d.cpu_seconds, 1e-8);
}

TEST(Profile, GivesASpecificationOfItsRun) {
  const std::string text =
      "result: 1\nhpe profile\n  way\n  the run: 5.000000 s, of which threads waited 1.000000 s for data; 8 launches "
      "on 1 "
      "device; 8000 bytes to devices, 16 bytes to the host\n";
  const demand d = specification::parse(specification_of_profile(text, "p"), "p").on(2, topology::shared).value();
  EXPECT_EQ(8, d.iterations);
  EXPECT_NEAR(0.5, d.reference_seconds, 1e-8);
  ASSERT_EQ(2U, d.transfers.size());
  EXPECT_EQ(500, d.transfers[0].bytes);
  EXPECT_EQ(1, d.transfers[1].bytes);
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return complaint([&] { static_cast<void>(specification_of_profile(changed, "p")); });
  };
  EXPECT_EQ("p: the profile is of 2 devices; a specification is made from a run on one device",
            refusal("on 1 device;", "on 2 devices;"));
  EXPECT_EQ("p: the profile has no launches", refusal("8 launches", "0 launches"));
  EXPECT_NE(std::string::npos, refusal("the run:", "a run:").find("p: not a profile of hpe"));
}

TEST(Trace, OfSeveralDevicesIsRefusedSoThatNothingIsFitted) {
  const auto complaint_about_trace = [](const std::string& text) {
    return complaint([&] { static_cast<void>(specification_of_trace(text, "t.json")); });
  };
  EXPECT_EQ("", complaint_about_trace(trace_of(events_of_a_run)));
  EXPECT_EQ("t.json: kernels ran on 2 devices; a specification is made from a run on one device",
            complaint_about_trace(trace_of(events_of_a_run + event(8, "kernel", "step", 0, 1))));
  EXPECT_EQ("t.json: kernels ran on 0 devices; a specification is made from a run on one device",
            complaint_about_trace(trace_of("")));
  EXPECT_NE("", complaint_about_trace(trace_of(events_of_a_run, 1)));
  EXPECT_NE(std::string::npos, complaint_about_trace("{}").find("t.json is not an hpe trace"));
  EXPECT_NE(std::string::npos, complaint_about_trace("no").find("t.json is not an hpe trace"));
}

TEST(Predictions, AreDrawnWithAMarkForEachPoint) {
  specification s = specification::parse(good, "f.toml");
  s.name = "a & <b>";
  const machine_profile m = read_profile(HPE_PREDICT "/machines/dgx-h100.json");
  const auto count = [](const std::string& text, const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
    return found;
  };
  const std::string svg = as_svg(predict(s, m, {1, 16}, {topology::shared}, ""));
  EXPECT_EQ(16U * 2 + 2, count(svg, "<circle")) << "points of two models, and one mark of each model in the legend";
  EXPECT_EQ(8U * 2 + 1, count(svg, "fill=\"#fff\"")) << "hollow points beyond 8 devices, and the background";
  EXPECT_NE(std::string::npos, svg.find("a &amp; &lt;b> on ")) << svg;
  EXPECT_EQ(1U, count(svg, "time, logarithmic scale"));
  EXPECT_EQ(std::string::npos, svg.find("nan"));
  EXPECT_EQ(std::string::npos, as_svg(predict(s, m, {2, 2}, {topology::shared}, "")).find("nan"));
}

TEST(Predictions, NameTheFastestAndTheEffectOfChanges) {
  const specification s = specification::parse(good, "f.toml");
  const machine_profile m = read_profile(HPE_PREDICT "/machines/dgx-h100.json");
  const predictions all = predict(s, m, {1, 16}, {topology::shared}, "gpu=2x");
  EXPECT_EQ(32U, all.points.size());
  const point& best = all.best(model::modern);
  for (const point& p : all.points) EXPECT_TRUE(p.which != model::modern || p.time.seconds >= best.time.seconds);
  for (const point& p : all.points) {
    EXPECT_EQ(p.devices > 8, p.extrapolated);
    EXPECT_LT(p.time.seconds, p.unchanged.value());
    if (p.devices == 1) {
      EXPECT_EQ(1, p.speed_up);
    }
  }
  EXPECT_THROW(
      static_cast<void>(predict(specification::parse("possible = 0\n" + good, "f"), m, {1, 2}, {topology::shared}, "")),
      bad_input);
}

}  // namespace
}  // namespace hpe::predict
