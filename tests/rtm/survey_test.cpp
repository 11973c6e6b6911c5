// Surveys on disk: the survey file, shot records and models in SEG-Y, the verbs, and runs that are interrupted.

#include "apps/rtm/survey.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <thread>

#include "apps/files/element_file.h"
#include "apps/rtm/records.h"
#include "apps/rtm/rtm_main.h"
#include "apps/rtm/run.h"
#include "tests/rtm/experiment.h"

namespace hpe::rtm::testing {
namespace {

namespace segy = files::segy;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct result {
  int status;
  std::string errors;
};

int run_verb(std::vector<std::string> words) {
  words.insert(words.begin(), "rtm");
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  return rtm_main(static_cast<int>(argv.size()), argv.data());
}

result rtm(const std::vector<std::string>& words) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  const int status = run_verb(words);
  static_cast<void>(::testing::internal::GetCapturedStdout());
  return {status, ::testing::internal::GetCapturedStderr()};
}

/// Files that are written grow to this many bytes at most.
class small_disk {
 public:
  explicit small_disk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const struct rlimit small { bytes, before_.rlim_max };
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~small_disk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    static_cast<void>(std::signal(SIGXFSZ, handler_));
  }
  small_disk(const small_disk&) = delete;
  small_disk& operator=(const small_disk&) = delete;

 private:
  struct rlimit before_ {};
  void (*handler_)(int);
};

class on_disk : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  std::string save_text(const std::string& text, const std::string& name = "survey.toml") const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  [[nodiscard]] std::string complaint(const std::string& text) const {
    try {
      static_cast<void>(read_survey(save_text(text)));
    } catch (const bad_input& e) {
      return e.what();
    }
    return "";
  }

  /// A survey of three shots, small enough for a test.
  std::string small_survey(const std::string& more = "") const {
    return save_text(
        "[model]\nbuiltin = \"flat\"\nsize = [70, 1, 40]\nspacing = 20\norigin = [1000, 500]\n"
        "[wavelet]\nfrequency = 9\n[shots]\nx = [1300, 2100, 400]\n[receivers]\nx = [1000, 2380, 20]\n"
        "[migration]\nsmooth = 40\n[time]\nlength = 0.9\ninterval = 0.008\n[records]\nfile = \"r.sgy\"\n"
        "[image]\nname = \"image\"\nformats = [\"npy\"]\n" +
        more);
  }

 private:
  /// A process that a death test starts gets the folder of the test that starts it.
  static std::filesystem::path folder() {
    constexpr const char* name = "HPE_TEST_SURVEY_FOLDER";
    setenv(name, (::testing::TempDir() + "/hpe-survey-" + std::to_string(getpid())).c_str(), 0);
    return getenv(name);
  }
  const std::filesystem::path folder_ = folder();
};

TEST_F(on_disk, a_survey_file_says_what_it_says) {
  const survey s =
      read_survey(save_text("[model]\nfile = \"v.sgy\"\nspacing = 10\n[shots]\nx = [0, 100, "
                            "12.5]\n[edges]\nfree_surface = true\nsponge = 30\n"
                            "[migration]\ndata = \"residual\"\n[image]\nformats = [\"npy\"]\n"));
  EXPECT_EQ(s.model.file, path("v.sgy")) << "relative to the survey";
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
      {"[model]\n\nspacing = \"wide\"", file + "3: [model] spacing = 'wide': number above 0 is wanted"},
      {"[model]\nspacing = -5", file + "2: [model] spacing = -5: number above 0 is wanted"},
      {"[model]\nspacing = inf", file + "2: [model] spacing = inf"},
      {"[model]\nsize = [1, 2]", file + "2: [model] size = [ 1, 2 ]: 3 numbers, at least 1 is wanted"},
      {"[model]\nunit = \"furlong\"", file + "2: [model] unit = 'furlong': \"m/s\" or \"km/s\" is wanted"},
      {"[edges]\nfree_surface = 1", file + "2: [edges] free_surface = 1: true or false is wanted"},
      {"[edges]\nsponge = 1.5", file + "2: [edges] sponge = 1.5: whole number, at least 0 is wanted"},
      {"[image]\nformats = \"png\"", file + "2: [image] formats = 'png': list of texts is wanted"},
      {"[shots]\ndeph = 5", file + "2: unknown field of [shots]: deph; is depth meant?"},
      {"[shotz]\ndepth = 5", file + "1: unknown table shotz; is shots meant?"},
      {"model = 5", file + "1: model is a table: write [model]"},
      {"[model\n", file + "1: "},
  };
  for (const auto& [text, sentence] : wrong) EXPECT_EQ(complaint(text).substr(0, sentence.size()), sentence);
  EXPECT_THROW(static_cast<void>(read_survey("/nowhere/survey.toml")), bad_input);
}

TEST_F(on_disk, the_page_lists_the_fields_and_its_survey_is_one) {
  const std::filesystem::path docs = HPE_TEST_DOCS;
  const std::string page = contents(docs / "rtm.md");
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

TEST_F(on_disk, models_that_are_no_cubes_or_no_rectangle_are_refused) {
  const auto sentence = [&](const std::function<void(std::vector<segy::trace>&)>& change, double interval = 25000) {
    const segy::header head = segy::make_header(segy::sample_format::f32, 3, interval, {});
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
  EXPECT_NE(sentence([](traces&) {}, 10000).find("cells must be cubes"), std::string::npos);
  EXPECT_NE(sentence([](traces& t) { t.pop_back(); }).find("no full rectangle"), std::string::npos);
  EXPECT_NE(sentence([](traces& t) { t[5].head.set(segy::in_trace::x, 0); }).find("lies where another"),
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
  EXPECT_EQ(complaint(), ", trace 4: its delay is 0.012 s, and that of other traces of the shot 0.008 s");
  traces[3].head.set(segy::in_trace::delay, 8);
  traces[2].head.set(segy::in_trace::coordinate_unit, 3);
  EXPECT_EQ(complaint().substr(0, 41), ", trace 3: its coordinates are angles (by");
  traces[2].head.set(segy::in_trace::coordinate_unit, 1);
  traces[2].head.set(segy::in_trace::receiver_x, 400000);
  EXPECT_EQ(complaint().substr(0, 55), ", trace 3: the receiver at x = 12192 m, y = 0 m, depth ");
  for (segy::trace& t : traces) t.head.set(segy::in_trace::kind, 2);
  EXPECT_EQ(complaint(), " has only dead and auxiliary traces");
}

TEST_F(on_disk, an_image_from_records_shows_the_reflector) {
  const std::string file = small_survey();
  const result modelled = rtm({"model", file});
  ASSERT_EQ(modelled.status, 0) << modelled.errors;
  const result migrated = rtm({"migrate", file});
  ASSERT_EQ(migrated.status, 0) << migrated.errors;
  EXPECT_FALSE(std::filesystem::exists(path("image.sums")));
  const files::description d = files::describe(path("image.npy"));
  EXPECT_EQ(d.shape, (std::vector<std::uint64_t>{70, 1, 40}));
  std::vector<float> image(70 * 40);
  files::read(d, image.data());
  for (std::size_t x = 25; x <= 45; x += 5) {
    const auto column = image.begin() + static_cast<std::ptrdiff_t>(40 * x);
    EXPECT_NEAR(static_cast<double>(std::max_element(column + 8, column + 38) - column), 19.5, 1.4) << x;
  }
}

TEST_F(on_disk, the_image_is_the_correlation_over_the_illumination) {
  const std::string file = small_survey("laplacian = false\nillumination = \"light.npy\"\n");
  ASSERT_EQ(rtm({"model", file}).status, 0);
  const auto values = [&](const std::string& name) {
    std::vector<float> all(70 * 40);
    files::read(files::describe(path(name)), all.data());
    return all;
  };
  ASSERT_EQ(rtm({"migrate", file}).status, 0);
  const std::vector<float> normalised = values("image.npy"), light = values("light.npy");
  const result r = rtm({"migrate", small_survey("laplacian = false\ncondition = \"correlation\"\n")});
  ASSERT_EQ(r.status, 0) << r.errors;
  const std::vector<float> plain = values("image.npy");
  const double mean = std::accumulate(light.begin(), light.end(), 0.0) / static_cast<double>(light.size());
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_GE(light[i], 0);
    const double wanted = plain[i] / (light[i] + 1e-3 * mean);
    EXPECT_NEAR(normalised[i], wanted, 1e-5 * (std::abs(wanted) + 1));
  }
}

TEST_F(on_disk, a_wavelet_may_come_from_a_file) {
  // A Ricker wavelet in a file gives the records of its frequency, in each format.
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
  const run_settings wanted = settings_of(s, model, 0, 0, 1);
  const std::vector<float> known = ricker(9, wanted.wave.time_step, wanted.wave.steps);
  s.frequency = 0;
  s.wavelet_interval = 0.002;
  for (const char* const name : {"w.npy", "w.sgy"}) {
    s.wavelet_file = path(name);
    const run_settings got = settings_of(s, model, s.interval, 0.9, 1);
    EXPECT_NEAR(got.wave.frequency, 9, 1.3) << "the peak of the spectrum, to its resolution of 2.5 Hz";
    EXPECT_NEAR(got.wave.delay, ricker_delay(9), 0.002);
    ASSERT_EQ(got.wave.wavelet.size(), known.size());
    EXPECT_LT(norm(difference(got.wave.wavelet, known)), 1e-3 * norm(known)) << name;
  }
  s.wavelet_file = path("w.npy");
  s.wavelet_interval = 0;
  EXPECT_THROW(static_cast<void>(settings_of(s, model, s.interval, 0.9, 1)), bad_input);
  const std::vector<float> silence(20, 0.0f);
  files::write(path("w.npy"), "f32", {20}, silence.data(), sizeof(float));
  s.wavelet_interval = 0.002;
  EXPECT_THROW(static_cast<void>(settings_of(s, model, s.interval, 0.9, 1)), bad_input);
}

TEST_F(on_disk, modelling_goes_on_after_a_full_disk_and_after_a_cut) {
  const std::string file = small_survey();
  ASSERT_EQ(rtm({"model", file}).status, 0);
  const std::string whole = contents(path("r.sgy"));
  std::filesystem::remove(path("r.sgy"));
  {
    const small_disk full(whole.size() / 2);
    const result r = rtm({"model", file});
    EXPECT_EQ(r.status, 1);
    EXPECT_NE(r.errors.find("it keeps 1 of 3 shots, and the same command goes on"), std::string::npos) << r.errors;
  }
  const result r = rtm({"model", file});
  EXPECT_EQ(r.status, 0);
  EXPECT_NE(r.errors.find("1 shots are there already"), std::string::npos) << r.errors;
  EXPECT_TRUE(contents(path("r.sgy")) == whole);

  std::ofstream(path("r.sgy"), std::ios::binary) << whole.substr(0, whole.size() - 1000);
  EXPECT_EQ(rtm({"model", file}).status, 0);
  EXPECT_TRUE(contents(path("r.sgy")) == whole);

  const std::string other = small_survey("[edges]\nsponge = 30\n");
  const result refused = rtm({"model", other});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.errors.find("--fresh overwrites"), std::string::npos) << refused.errors;
  EXPECT_TRUE(contents(path("r.sgy")) == whole);
  EXPECT_EQ(rtm({"model", "--fresh", other}).status, 0);
}

/// Runs the migration and kills the process as soon as a shot's sums are on the disk.
[[noreturn]] void migrate_until_killed(const std::string& survey, const std::string& sums) {
  std::thread([sums] {
    while (!std::filesystem::exists(sums)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::raise(SIGKILL);
  }).detach();
  std::exit(run_verb({"migrate", survey}));
}

TEST_F(on_disk, migration_goes_on_after_it_was_killed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string file = small_survey();
  EXPECT_EXIT(
      {
        static_cast<void>(run_verb({"model", file}));
        migrate_until_killed(file, path("image.sums"));
      },
      ::testing::KilledBySignal(SIGKILL), "");
  const std::string sums = contents(path("image.sums"));
  EXPECT_EQ(sums.substr(0, 16), "hpe rtm sums 1\nr");
  {
    const small_disk full(sums.size() / 2);
    const result r = rtm({"migrate", file});
    EXPECT_EQ(r.status, 1);
    EXPECT_NE(r.errors.find("File too large; it keeps the "), std::string::npos) << r.errors;
    EXPECT_TRUE(contents(path("image.sums")) == sums);
  }
  const result on = rtm({"migrate", file});
  EXPECT_EQ(on.status, 0) << on.errors;
  EXPECT_NE(on.errors.find("image.sums already"), std::string::npos) << on.errors;
  const std::string resumed = contents(path("image.npy"));
  EXPECT_EQ(rtm({"migrate", file}).status, 0);
  EXPECT_TRUE(contents(path("image.npy")) == resumed) << "the same bits without an interruption";

  save_text("hpe rtm sums 1\n", "image.sums");
  const result refused = rtm({"migrate", file});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.errors.find("--fresh begins anew"), std::string::npos) << refused.errors;
}

TEST_F(on_disk, verbs_say_what_is_missing) {
  EXPECT_NE(rtm({"model"}).errors.find("which survey?"), std::string::npos);
  EXPECT_NE(rtm({"model", save_text("[shots]\nx = [0, 1, 1]\n")}).errors.find("[records] file is not stated"),
            std::string::npos);
  EXPECT_NE(rtm({"migrate", save_text("[records]\nfile = \"r.sgy\"\n")}).errors.find("[image] name is not stated"),
            std::string::npos);
  std::string text = contents(small_survey());
  text.replace(text.find("interval = 0.008"), 16, "interval = 0.08");
  EXPECT_NE(rtm({"model", save_text(text)}).errors.find("needs at most 22.22 ms"), std::string::npos);
  const auto with_size = [&](const char* size) {
    std::string other = contents(small_survey());
    other.replace(other.find("[70, 1, 40]"), 11, size);
    return rtm({"model", save_text(other)}).errors;
  };
  EXPECT_NE(with_size("[70, 1.5, 40]").find("1.5 cells is no whole number"), std::string::npos);
  EXPECT_NE(with_size("[1e6, 1e6, 1e6]").find("EiB on the host"), std::string::npos);
  EXPECT_EQ(rtm({"migrate", "--help"}).status, 0);
}

}  // namespace
}  // namespace hpe::rtm::testing
