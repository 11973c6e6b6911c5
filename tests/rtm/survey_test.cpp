// Survey files, shot records and models in SEG-Y, and wavelets.

#include "apps/rtm/survey.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <sstream>

#include "apps/files/element_file.h"
#include "apps/rtm/records.h"
#include "apps/rtm/run.h"
#include "tests/rtm/experiment.h"
#include "tests/rtm/on_disk.h"

namespace hpe::rtm::testing {
namespace {

namespace segy = files::segy;

TEST_F(on_disk, a_survey_file_gives_its_settings) {
  const survey s =
      read_survey(save_text("[model]\nfile = \"v.sgy\"\nspacing = 10\n[shots]\nx = [0, 100, "
                            "12.5]\n[edges]\nfree_surface = true\nsponge = 30\n"
                            "[migration]\ndata = \"residual\"\n[image]\nformats = [\"npy\"]\n"));
  EXPECT_EQ(s.model.file, path("v.sgy")) << "the path is relative to the survey file";
  EXPECT_EQ(s.model.spacing, 10);
  EXPECT_EQ(s.shots_x, (std::vector<double>{0, 100, 12.5}));
  EXPECT_TRUE(s.free_surface);
  EXPECT_EQ(s.sponge, 30);
  EXPECT_EQ(s.data, "residual");
  EXPECT_EQ(s.image_formats, std::vector<std::string>{"npy"});
}

TEST_F(on_disk, a_survey_file_is_refused_with_line_and_field) {
  const std::string file = path("survey.toml") + ", line ";
  const std::pair<const char*, std::string> wrong[] = {
      {"[model]\n\nspacing = \"wide\"", file + "3: [model] spacing = 'wide': expected number or 3 numbers above 0"},
      {"[model]\nspacing = -5", file + "2: [model] spacing = -5: expected number or 3 numbers above 0"},
      {"[model]\nspacing = [5, 5]", file + "2: [model] spacing = [ 5, 5 ]: expected number or 3 numbers above 0"},
      {"[model]\nspacing = inf", file + "2: [model] spacing = inf"},
      {"[model]\nsize = [1, 2]", file + "2: [model] size = [ 1, 2 ]: expected 3 numbers, at least 1"},
      {"[model]\nunit = \"furlong\"", file + "2: [model] unit = 'furlong': expected \"m/s\" or \"km/s\""},
      {"[edges]\nfree_surface = 1", file + "2: [edges] free_surface = 1: expected true or false"},
      {"[edges]\nsponge = 1.5", file + "2: [edges] sponge = 1.5: expected whole number, at least 0"},
      {"[edges]\ncpml = 0", file + "2: [edges] cpml = 0: expected whole number, at least 1"},
      {"[migration]\ncompress = 5", file + "2: [migration] compress = 5: expected 0 or 4 or 8 or 16"},
      {"[image]\nformats = \"png\"", file + "2: [image] formats = 'png': expected list of texts"},
      {"[shots]\ndeph = 5", file + "2: unknown field of [shots]: deph; is depth meant?"},
      {"[shotz]\ndepth = 5", file + "1: unknown table shotz; is shots meant?"},
      {"model = 5", file + "1: model must be a table: write [model]"},
      {"[model\n", file + "1: "},
  };
  for (const auto& [text, sentence] : wrong) EXPECT_EQ(complaint(text).substr(0, sentence.size()), sentence);
  EXPECT_THROW(static_cast<void>(read_survey("/nowhere/survey.toml")), bad_input);
}

TEST_F(on_disk, the_page_lists_the_fields_and_its_survey_is_one) {
  const std::filesystem::path docs = HPE_TEST_DOCS;
  const std::string page = contents(docs / "rtm.md");
  ::setenv("COLUMNS", "10000", 1);  // the page has each field on one line
  std::istringstream lines(help_on_surveys());
  for (std::string line; std::getline(lines, line);)
    EXPECT_NE(page.find(std::string_view(line).substr(2)), std::string::npos) << line;
  EXPECT_EQ(read_survey(docs / "examples/rtm/marmousi.toml").model.size, (std::vector<double>{1601, 1, 401}));
}

TEST(resampling, keeps_band_limited_signals) {
  constexpr double interval = 0.004, step = 0.0007;
  std::vector<std::vector<double>> samples(2);
  const auto signal = [](double t, double hertz) { return std::sin(2 * 3.14159265358979 * hertz * t); };
  for (int i = 0; i < 300; ++i) {
    samples[0].push_back(signal(i * interval, 12));
    samples[1].push_back(signal(i * interval, 40));
  }
  const std::vector<float> fine = resample(samples, interval, 0, step, 1500);
  for (std::size_t t = 200; t < 1300; ++t) {
    EXPECT_NEAR(fine[2 * t], signal(static_cast<double>(t) * step, 12), 2e-3);
    EXPECT_NEAR(fine[2 * t + 1], signal(static_cast<double>(t) * step, 40), 1e-2);
  }
  const std::vector<float> later = resample(samples, interval, 10 * interval, interval, 100);
  for (std::size_t t = 0; t < 100; ++t)
    EXPECT_NEAR(later[2 * t], t < 10 ? 0 : samples[0][t - 10], 1e-6) << "moved by ten samples";
}

TEST_F(on_disk, cells_that_are_no_cubes_survive_segy_and_surveys) {
  const volume v = salt_model(6, 5, 9, {20, 25, 12.5});
  save(path("v.sgy"), v, {"a model"});
  velocity_source from;
  from.file = path("v.sgy");
  from.every = 2;
  EXPECT_EQ(load(from).spacing, sides(40, 50, 25));
  from.every = 9;
  EXPECT_EQ(load(from).shape(), "1 x 1 x 1");
  from.every = 99999999999;
  EXPECT_THROW(static_cast<void>(load(from)), bad_input) << "no axis has so many cells";
  const survey s =
      read_survey(save_text("[model]\nbuiltin = \"salt\"\nsize = [60, 1, 40]\nspacing = [20, 20, 10]\n"
                            "[shots]\nx = [0, 400, 200]\ndepth = 30\n"));
  EXPECT_EQ(s.model.spacing, sides(20, 20, 10));
  const volume read = load(s.model);
  const placed_shot last = shots_of(s, read).back();
  EXPECT_EQ(last.where.source.x, 20);
  EXPECT_EQ(last.where.source.z, 3);
  EXPECT_EQ(read.spacing.text(), "20 x 20 x 10");
}

TEST_F(on_disk, densities_come_from_files_or_velocities) {
  const volume v = salt_model(12, 1, 9, 25);
  volume heavy = v;
  for (float& value : heavy.values) value = 1000 + value / 4;
  const std::string model = "[model]\nfile = \"v.npy\"\nspacing = 25\nevery = 2\nunit = \"km/s\"\n";
  volume in_kilometres = v;
  for (float& value : in_kilometres.values) value /= 1000;
  save(path("v.npy"), in_kilometres, {});
  const auto density = [&](const std::string& stated) {
    const survey s = read_survey(save_text(model + stated));
    return load_density(s.model, load(s.model));
  };
  EXPECT_EQ(density(""), nullptr);
  for (const std::string name : {"d.npy", "d.sgy"}) {
    save(path(name), heavy, {});
    const auto read = density("density = \"" + name + "\"\n");
    ASSERT_EQ(read->shape(), "6 x 1 x 5") << name;
    EXPECT_FLOAT_EQ(read->at(2, 0, 3), heavy.at(4, 0, 6)) << name << " has the unit of densities";
  }
  const auto related = density("density = \"gardner\"\n");
  EXPECT_FLOAT_EQ(related->at(0, 0, 0), 1000) << "water";
  EXPECT_NEAR(related->at(3, 0, 4), 310 * std::pow(v.at(6, 0, 8), 0.25), 0.1);

  heavy.values[5] = -1;
  save(path("d.npy"), heavy, {});
  try {
    static_cast<void>(density("density = \"d.npy\"\n"));
    FAIL() << "a density below zero";
  } catch (const bad_input& e) {
    EXPECT_NE(std::string(e.what()).find("densities are from 0.1 to 100000 kg/m3"), std::string::npos) << e.what();
  }
  // The densities have other cells than the velocities.
  save(path("d.npy"), salt_model(10, 1, 9, 25), {});
  const survey s = read_survey(save_text(model + "density = \"d.npy\"\n"));
  const volume velocity = load(s.model);
  EXPECT_THROW(static_cast<void>(settings_of(s, velocity, load_density(s.model, velocity), 0, 0, 1)), bad_input);
}

TEST_F(on_disk, models_survive_segy_and_npy) {
  volume v = salt_model(12, 5, 9, 25);
  v.x0 = 6500;
  v.y0 = -250;
  for (const char* const name : {"v.sgy", "v.npy"}) {
    save(path(name), v, {"a model"});
    velocity_source from;
    from.file = path(name);
    if (std::string(name) == "v.npy") {
      from.spacing = 25;
      from.origin = {6500, -250};
    }
    const volume back = load(from);
    EXPECT_EQ(back.values, v.values) << name;
    EXPECT_EQ(back.spacing, 25) << name;
    EXPECT_EQ(back.x0, 6500) << name;
    EXPECT_EQ(back.y0, -250) << name;
    from.every = 2;
    const volume thin = load(from);
    EXPECT_EQ(thin.nx, 6);
    EXPECT_EQ(thin.spacing, 50);
    EXPECT_EQ(thin.at(3, 2, 4), v.at(6, 4, 8));
  }
}

TEST_F(on_disk, models_that_are_no_rectangle_are_refused) {
  const auto sentence = [&](const std::function<void(std::vector<segy::trace>&)>& change, const sides& stated = {}) {
    const segy::header head = segy::make_header(segy::sample_format::f32, 3, 10000, {});
    std::vector<segy::trace> traces(6, segy::make_trace(head));
    for (std::size_t n = 0; n < 6; ++n) {
      traces[n].head.set(segy::in_trace::x, static_cast<std::int64_t>(25 * (n / 2)));
      traces[n].head.set(segy::in_trace::y, static_cast<std::int64_t>(25 * (n % 2)));
      traces[n].samples = {1500, 1600, 1700};
    }
    change(traces);
    segy::writer file(path("m.sgy"), head);
    file.write(traces);
    file.close();
    velocity_source from;
    from.file = path("m.sgy");
    from.spacing = stated;
    try {
      static_cast<void>(load(from));
    } catch (const bad_input& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  using traces = std::vector<segy::trace>;
  EXPECT_EQ(sentence([](traces&) {}), "");
  EXPECT_EQ(sentence([](traces& t) { std::swap(t[0], t[5]); }), "") << "the order of traces does not matter";
  EXPECT_EQ(sentence([](traces&) {}, {25, 25, 10}), "");
  EXPECT_NE(sentence([](traces&) {}, 25)
                .find("its cells are 25 m across, 25 m along y and 10 m down, but the stated "
                      "spacing is 25 m"),
            std::string::npos);
  EXPECT_NE(sentence([](traces& t) { t.pop_back(); }).find("do not form a full rectangle"), std::string::npos);
  EXPECT_NE(sentence([](traces& t) { t[5].head.set(segy::in_trace::x, 0); }).find("has the same position as another"),
            std::string::npos);
  EXPECT_NE(sentence([](traces& t) {
              for (std::size_t n = 4; n < 6; ++n) t[n].head.set(segy::in_trace::x, 80);
            }).find("at equal distances"),
            std::string::npos);
  EXPECT_NE(sentence([](traces& t) { t[2].samples[1] = 1.6; }).find("holds 1.6"), std::string::npos);
  EXPECT_NE(sentence([](traces& t) {
              for (auto& one : t) one.head.set(segy::in_trace::x, 0), one.head.set(segy::in_trace::y, 0);
            }).find("have no coordinates"),
            std::string::npos);
}

TEST_F(on_disk, an_interval_that_is_missing_is_never_guessed) {
  // Cells of 20 m x 10 m. If only the traces' headers state the interval, hpe reads it there.
  const auto loaded = [&](std::int64_t in_file, std::int64_t in_traces, const sides& stated = {}) {
    const segy::header head = segy::make_header(segy::sample_format::f32, 3, static_cast<double>(in_file), {});
    std::vector<segy::trace> traces(4, segy::make_trace(head));
    for (std::size_t n = 0; n < traces.size(); ++n) {
      traces[n].head.set(segy::in_trace::x, static_cast<std::int64_t>(20 * n));
      traces[n].head.set(segy::in_trace::interval, in_traces);
      traces[n].samples = {1500, 1600, 1700};
    }
    segy::writer file(path("m.sgy"), head);
    file.write(traces);
    file.close();
    velocity_source from;
    from.file = path("m.sgy");
    from.spacing = stated;
    return load(from).spacing;
  };
  EXPECT_EQ(loaded(10000, 0), sides(20, 20, 10));
  EXPECT_EQ(loaded(0, 10000), sides(20, 20, 10));
  EXPECT_EQ(loaded(0, 0, {20, 20, 12}), sides(20, 20, 12)) << "the survey states the sides of the cells";
  try {
    static_cast<void>(loaded(0, 0));
    ADD_FAILURE() << "a model without an interval was read";
  } catch (const bad_input& e) {
    const std::string sentence = e.what();
    EXPECT_NE(sentence.find("bytes 3217 and 3218, or in 117 and 118"), std::string::npos) << sentence;
  }
}

TEST_F(on_disk, records_keep_places_and_samples) {
  volume model = make_volume(50, 1, 30, 12.5, 2000);
  model.x0 = 400000;
  model.y0 = 6100000;
  const std::vector<placed_shot> shots{{7, {{5, 0, 2}, {{1, 0, 1}, {9, 0, 1}, {40, 0, 3}}}},
                                       {9, {{20, 0, 2}, {{0, 0, 1}, {49, 0, 29}}}}};
  for (const segy::sample_format format : {segy::sample_format::f32, segy::sample_format::ibm}) {
    const segy::header head = records_header(format, 4, 0.002, "test", "0");
    segy::writer file(path("r.sgy"), head);
    std::vector<std::vector<float>> data;
    for (const placed_shot& s : shots) {
      data.emplace_back(7 * s.where.receivers.size());
      for (std::size_t i = 0; i < data.back().size(); ++i) data.back()[i] = std::sin(static_cast<float>(i)) * 1e-3f;
      file.write(traces_of(head, s, data.back(), 2, model));
    }
    file.close();
    const shot_file back(path("r.sgy"), model);
    ASSERT_EQ(back.shots().size(), 2U);
    EXPECT_DOUBLE_EQ(back.interval(), 0.002);
    EXPECT_DOUBLE_EQ(back.length(), 0.006);
    for (std::size_t n = 0; n < 2; ++n) {
      const shot &wanted = shots[n].where, &got = back.shots()[n].where;
      EXPECT_EQ(back.shots()[n].number, shots[n].number);
      EXPECT_EQ(got.source.x, wanted.source.x);
      EXPECT_EQ(got.source.z, wanted.source.z);
      ASSERT_EQ(got.receivers.size(), wanted.receivers.size());
      const std::vector<float> samples = back.data(n, 0, 0.002, 4);
      for (std::size_t i = 0; i < got.receivers.size(); ++i) {
        EXPECT_EQ(got.receivers[i].x, wanted.receivers[i].x);
        EXPECT_EQ(got.receivers[i].z, wanted.receivers[i].z);
        for (std::size_t t = 0; t < 4; ++t)
          EXPECT_NEAR(samples[t * got.receivers.size() + i], data[n][2 * t * got.receivers.size() + i], 1e-9);
      }
    }
  }
}

TEST_F(on_disk, records_of_the_field_may_be_in_feet_with_dead_traces_and_a_delay) {
  const volume model = make_volume(100, 1, 30, 10, 2000);
  segy::header head = segy::make_header(segy::sample_format::i16, 3, 4000, {});
  head.set(segy::in_file::unit, 2);
  std::vector<segy::trace> traces(4, segy::make_trace(head));
  for (std::size_t n = 0; n < 4; ++n) {
    segy::header& h = traces[n].head;
    h.set(segy::in_trace::shot, 3);
    h.set(segy::in_trace::scalar, -10);
    h.set(segy::in_trace::depth_scalar, 1);
    h.set(segy::in_trace::source_x, 3281);                                          // 328.1 feet: 100 m
    h.set(segy::in_trace::receiver_x, 3281 + 1640 * static_cast<std::int64_t>(n));  // 50 m apart
    h.set(segy::in_trace::receiver_elevation, -66);                                 // 20 m deep
    h.set(segy::in_trace::delay, 8);
    traces[n].samples = {1, 2, static_cast<double>(n)};
  }
  traces[1].head.set(segy::in_trace::kind, 2);  // dead
  const auto write = [&] {
    segy::writer file(path("f.sgy"), head);
    file.write(traces);
    file.close();
  };
  const auto complaint = [&] {
    write();
    try {
      const shot_file file(path("f.sgy"), model);
      static_cast<void>(file.data(0, 0, 0.004, 5));
    } catch (const bad_input& e) {
      return std::string(e.what()).substr(path("f.sgy").size());
    }
    return std::string();
  };
  write();
  const shot_file file(path("f.sgy"), model);
  ASSERT_EQ(file.shots().size(), 1U);
  const shot& s = file.shots()[0].where;
  EXPECT_EQ(s.source.x, 10);
  ASSERT_EQ(s.receivers.size(), 3U);
  EXPECT_EQ(s.receivers[1].x, 20);
  EXPECT_EQ(s.receivers[2].x, 25);
  EXPECT_EQ(s.receivers[2].z, 2);
  const std::vector<float> data = file.data(0, 0.004, 0.004, 6), wanted{0, 0, 0, 1, 2, 3};
  for (std::size_t t = 0; t < 6; ++t) EXPECT_NEAR(data[3 * t + 2], wanted[t], 1e-6) << "8 ms delay and 4 ms shift";

  traces[3].head.set(segy::in_trace::delay, 12);
  EXPECT_EQ(complaint(), ", trace 4: its delay is 0.012 s, but the delay of other traces of the shot is 0.008 s");
  traces[3].head.set(segy::in_trace::delay, 8);
  traces[2].head.set(segy::in_trace::coordinate_unit, 3);
  EXPECT_EQ(complaint().substr(0, 41), ", trace 3: its coordinates are angles (by");
  traces[2].head.set(segy::in_trace::coordinate_unit, 1);
  traces[2].head.set(segy::in_trace::receiver_x, 400000);
  EXPECT_EQ(complaint().substr(0, 55), ", trace 3: the receiver at x = 12192 m, y = 0 m, depth ");
  for (segy::trace& t : traces) t.head.set(segy::in_trace::kind, 2);
  EXPECT_EQ(complaint(), " has only dead and auxiliary traces");
}

TEST_F(on_disk, a_wavelet_may_come_from_a_file) {
  // A Ricker wavelet from a file, in each format, gives the same records as the built-in wavelet of this frequency.
  const std::vector<float> ricker_samples = ricker(9, 0.002, 200);
  files::write(path("w.npy"), "f32", {200}, ricker_samples.data(), sizeof(float));
  const segy::header head = segy::make_header(segy::sample_format::f32, 200, 2000, {});
  segy::trace t = segy::make_trace(head);
  t.samples.assign(ricker_samples.begin(), ricker_samples.end());
  segy::writer segy_wavelet(path("w.sgy"), head);
  segy_wavelet.write(std::span(&t, 1));
  segy_wavelet.close();

  survey s = read_survey(small_survey());
  const volume model = load(s.model);
  const run_settings wanted = settings_of(s, model, nullptr, 0, 0, 1);
  const std::vector<float> known = ricker(9, wanted.wave.time_step, wanted.wave.steps);
  s.frequency = 0;
  s.wavelet_interval = 0.002;
  for (const char* const name : {"w.npy", "w.sgy"}) {
    s.wavelet_file = path(name);
    const run_settings got = settings_of(s, model, nullptr, s.interval, 0.9, 1);
    EXPECT_NEAR(got.wave.frequency, 9, 1.3) << "the peak of the spectrum, to its resolution of 2.5 Hz";
    EXPECT_NEAR(got.wave.delay, ricker_delay(9), 0.002);
    ASSERT_EQ(got.wave.wavelet.size(), known.size());
    EXPECT_LT(norm(difference(got.wave.wavelet, known)), 1e-3 * norm(known)) << name;
  }
  // The survey may state the interval if the SEG-Y file does not.
  segy::header silent = head;
  silent.set(segy::in_file::interval, 0);
  t.head.set(segy::in_trace::interval, 0);
  segy::writer without(path("w.sgy"), silent);
  without.write(std::span(&t, 1));
  without.close();
  s.wavelet_file = path("w.sgy");
  EXPECT_NEAR(settings_of(s, model, nullptr, s.interval, 0.9, 1).wave.frequency, 9, 1.3);
  s.wavelet_interval = 0;
  EXPECT_THROW(static_cast<void>(settings_of(s, model, nullptr, s.interval, 0.9, 1)), bad_input);
  s.wavelet_file = path("w.npy");
  EXPECT_THROW(static_cast<void>(settings_of(s, model, nullptr, s.interval, 0.9, 1)), bad_input);
  const std::vector<float> silence(20, 0.0f);
  files::write(path("w.npy"), "f32", {20}, silence.data(), sizeof(float));
  s.wavelet_interval = 0.002;
  EXPECT_THROW(static_cast<void>(settings_of(s, model, nullptr, s.interval, 0.9, 1)), bad_input);
}

}  // namespace
}  // namespace hpe::rtm::testing
