// hpe rtm model and migrate: images, and runs that are interrupted.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "apps/files/element_file.h"
#include "apps/rtm/rtm_main.h"
#include "hpe/hpe.hpp"
#include "tests/rtm/experiment.h"
#include "tests/rtm/on_disk.h"
#include "tests/rtm/small_disk.h"

namespace hpe::rtm::testing {
namespace {

struct result {
  int status;
  std::string errors;
};

int run_verb(std::vector<std::string> words) {
  words.insert(words.begin(), "rtm");
  if (std::find(words.begin(), words.end(), "--devices") == words.end())
    words.insert(words.end(), {"--devices", "1"});  // more devices would only take longer
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

TEST_F(on_disk, groups_of_devices_write_the_bytes_of_one_device) {
  ASSERT_GE(device_count(), 4) << "this test needs several devices, as HPE_DEVICES=soft:4";
  const std::string file = small_survey();
  ASSERT_EQ(rtm({"model", file}).status, 0);
  ASSERT_EQ(rtm({"migrate", file}).status, 0);
  const std::string records = contents(path("r.sgy")), image = contents(path("image.npy"));
  // There are three shots. Two groups need two rounds. Four groups need one round, in which one group has no shot.
  for (const char* groups : {"2", "4"}) {
    const std::vector<std::string> several{"--devices", "4", "--groups", groups, "--fresh", file};
    for (const char* verb : {"model", "migrate"}) {
      std::vector<std::string> words{verb};
      words.insert(words.end(), several.begin(), several.end());
      const result r = rtm(words);
      ASSERT_EQ(r.status, 0) << r.errors;
    }
    EXPECT_TRUE(contents(path("r.sgy")) == records) << groups;
    EXPECT_TRUE(contents(path("image.npy")) == image) << groups;
  }
  const result uneven = rtm({"model", "--devices", "4", "--groups", "3", file});
  EXPECT_EQ(uneven.status, 2);
  EXPECT_NE(uneven.errors.find("--groups 3: 4 devices cannot be divided into"), std::string::npos) << uneven.errors;
}

TEST_F(on_disk, densities_change_records_and_belong_to_the_run) {
  ASSERT_EQ(rtm({"model", small_survey()}).status, 0);
  const std::string constant = contents(path("r.sgy"));
  std::string text = contents(small_survey());
  text.insert(text.find("origin ="), "density = \"gardner\"\n");
  text.insert(text.find("smooth ="), "density = \"gardner\"\n");
  const std::string file = save_text(text);
  const result refused = rtm({"model", file});
  EXPECT_EQ(refused.status, 2) << "the file has records of another ground";
  ASSERT_EQ(rtm({"model", "--fresh", file}).status, 0);
  const std::string varying = contents(path("r.sgy"));
  EXPECT_EQ(varying.size(), constant.size());
  EXPECT_FALSE(varying == constant);
  const result migrated = rtm({"migrate", file});
  EXPECT_EQ(migrated.status, 0) << migrated.errors;
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
    EXPECT_NE(r.errors.find("the file keeps 1 of 3 shots, and the same command resumes"), std::string::npos)
        << r.errors;
  }
  const result r = rtm({"model", file});
  EXPECT_EQ(r.status, 0);
  EXPECT_NE(r.errors.find("1 shots are in the file already"), std::string::npos) << r.errors;
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
  // The wave fields are on disk, and their file must not remain.
  std::string text = contents(small_survey());
  text.insert(text.find("smooth = 40"), "place = \"disk\"\n");
  const std::string file = save_text(text);
  EXPECT_EXIT(
      {
        static_cast<void>(run_verb({"model", file}));
        migrate_until_killed(file, path("image.sums"));
      },
      ::testing::KilledBySignal(SIGKILL), "");
  for (const auto& left : std::filesystem::directory_iterator(path("")))
    EXPECT_TRUE((std::set<std::string>{"survey.toml", "r.sgy", "image.sums"}).contains(left.path().filename().string()))
        << left.path();
  const std::string sums = contents(path("image.sums"));
  EXPECT_EQ(sums.substr(0, 16), "hpe rtm sums 1\nr");
  {
    static_cast<void>(hpe::device_count());  // starts hpe before the size of files is limited
    const small_disk full(sums.size() / 2);
    const result no_room = rtm({"migrate", file});
    EXPECT_EQ(no_room.status, 2);
    EXPECT_NE(no_room.errors.find("GiB for wave fields in "), std::string::npos) << no_room.errors;
    const result r = rtm({"migrate", small_survey()});  // the sums do not depend on the place of wave fields
    EXPECT_EQ(r.status, 1);
    EXPECT_NE(r.errors.find("File too large; the file keeps the "), std::string::npos) << r.errors;
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
  EXPECT_NE(refused.errors.find("--fresh starts again"), std::string::npos) << refused.errors;
}

TEST_F(on_disk, outputs_that_name_an_input_are_refused_and_change_nothing) {
  const std::string file = small_survey();
  ASSERT_EQ(rtm({"model", file}).status, 0);
  const std::string records = contents(path("r.sgy"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = contents(small_survey());
    return save_text(text.replace(text.find(from), from.size(), to), "other.toml");
  };
  const auto refused = [&](const std::vector<std::string>& words, const std::string& because) {
    const result r = rtm(words);
    EXPECT_EQ(r.status, 2);
    EXPECT_NE(r.errors.find(because), std::string::npos) << r.errors;
    EXPECT_TRUE(contents(path("r.sgy")) == records) << because;
  };
  const std::string image = "\"image\"\nformats = [\"npy\"]";
  refused({"migrate", with(image, "\"r\"\nformats = [\"sgy\"]")}, "r.sgy is an input, so it cannot be an output");
  std::filesystem::create_hard_link(path("r.sgy"), path("linked.sgy"));
  refused({"migrate", with(image, "\"linked\"\nformats = [\"sgy\"]")}, "r.sgy, which is an input");
  std::filesystem::create_symlink("r.sgy", path("pointed.npy"));
  refused({"migrate", with("\"image\"", "\"pointed\"")}, "r.sgy, which is an input");
  refused({"migrate", file, "--json", path("survey.toml")}, "survey.toml is an input");
  refused({"migrate", file, "--json", path("image.npy")}, "are the same file");
  // The records would overwrite the model from which they are computed.
  const volume v = salt_model(70, 1, 40, 20);
  save(path("v.sgy"), v, {"a model"});
  const std::string model = contents(path("v.sgy"));
  std::string text = contents(small_survey());
  const std::string builtin = "builtin = \"flat\"\nsize = [70, 1, 40]\nspacing = 20\norigin = [1000, 500]";
  text.replace(text.find(builtin), builtin.size(), "file = \"v.sgy\"");
  text.replace(text.find("r.sgy"), 5, "v.sgy");
  refused({"model", "--fresh", save_text(text, "other.toml")}, "v.sgy is an input, so it cannot be an output");
  EXPECT_TRUE(contents(path("v.sgy")) == model);
  // A file with the name of the sums, but with other contents, must stay unchanged.
  save_text("somebody's notes", "image.sums");
  refused({"migrate", "--fresh", file}, "image.sums does not hold the sums of a migration");
  EXPECT_EQ(contents(path("image.sums")), "somebody's notes");
}

TEST_F(on_disk, fresh_records_replace_the_old_ones_when_there_are_some) {
  const std::string file = small_survey();
  ASSERT_EQ(rtm({"model", file}).status, 0);
  const std::string records = contents(path("r.sgy"));
  {
    const small_disk full(1000);
    const result r = rtm({"model", "--fresh", small_survey("[edges]\nsponge = 30\n")});
    EXPECT_EQ(r.status, 1);
    EXPECT_NE(r.errors.find("r.sgy: File too large"), std::string::npos) << r.errors;
  }
  EXPECT_TRUE(contents(path("r.sgy")) == records);
}

TEST_F(on_disk, verbs_name_missing_settings) {
  EXPECT_NE(rtm({"model"}).errors.find("which survey?"), std::string::npos);
  EXPECT_NE(rtm({"model", save_text("[shots]\nx = [0, 1, 1]\n")}).errors.find("[records] file is not stated"),
            std::string::npos);
  EXPECT_NE(rtm({"migrate", save_text("[records]\nfile = \"r.sgy\"\n")}).errors.find("[image] name is not stated"),
            std::string::npos);
  std::string text = contents(small_survey());
  text.replace(text.find("interval = 0.008"), 16, "interval = 0.08");
  EXPECT_NE(rtm({"model", save_text(text)}).errors.find("needs an interval of at most 22.22 ms"), std::string::npos);
  std::string steps = contents(small_survey());
  steps.replace(steps.find("interval = 0.008"), 16, "step = 1e-15");
  EXPECT_NE(rtm({"model", save_text(steps)}).errors.find("takes more than ten million steps of "), std::string::npos);
  std::string places = contents(small_survey());
  places.replace(places.find("[1300, 2100, 400]"), 17, "[1300, 2100, 1e-15]");
  EXPECT_NE(rtm({"model", save_text(places)}).errors.find("these are 8e+17 places; at most 1000000 are possible"),
            std::string::npos);
  std::string equal = contents(small_survey());
  equal.replace(equal.find("[1300, 2100, 400]"), 17, "[1300, 1300.0000000001, 1e-15]");
  EXPECT_NE(rtm({"model", save_text(equal)}).errors.find("the step is too small to distinguish the places"),
            std::string::npos);
  std::string high = contents(small_survey());
  high.replace(high.find("frequency = 9"), 13, "frequency = 1e11");
  EXPECT_NE(rtm({"model", save_text(high)}).errors.find("its waves are "), std::string::npos);
  const auto with_size = [&](const char* size) {
    std::string other = contents(small_survey());
    other.replace(other.find("[70, 1, 40]"), 11, size);
    return rtm({"model", save_text(other)}).errors;
  };
  EXPECT_NE(with_size("[70, 1.5, 40]").find("1.5 cells is not a whole number"), std::string::npos);
  EXPECT_NE(with_size("[1e6, 1e6, 1e6]").find("EiB on the host"), std::string::npos);
  EXPECT_EQ(rtm({"migrate", "--help"}).status, 0);
}

}  // namespace
}  // namespace hpe::rtm::testing
