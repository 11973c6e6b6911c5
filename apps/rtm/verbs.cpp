// Both verbs compute one shot after another and write each finished shot to disk, so that an interrupted run resumes
// with the first missing shot.
#include "apps/rtm/verbs.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/command_line/program.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/files/segy.h"
#include "apps/rtm/model/model_file.h"
#include "apps/rtm/model/model_picture.h"
#include "apps/rtm/records.h"
#include "apps/rtm/run.h"
#include "apps/rtm/survey.h"

namespace hpe::rtm {

namespace {

struct request {
  std::string survey, json;
  std::int64_t devices = 0, groups = 1, parts = 1;
  bool fresh = false, explain = false, quiet = false, help = false;
};

/// Returns the options of a verb. migrates: the verb is `migrate`, which has additional options.
std::vector<command_line::option> options_of(request& r, bool migrates) {
  using namespace command_line;
  std::vector<option> all{
      {"SURVEY", "", "a TOML file that describes the survey", to_text(r.survey)},
      {"--fresh", "", "start again from the first shot; without this option, a run resumes with the first missing shot",
       to_flag(r.fresh)},
      {"--parts", "N", "under mpirun: divide each grid among N ranks; groups of N ranks compute different shots (1)",
       to_whole(r.parts, 1, 1 << 20)},
      devices_option(r.devices),
      {"--groups", "N", "divide the devices into N groups that compute different shots at once (1)",
       to_whole(r.groups, 1, 1 << 20)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help)};
  if (migrates)
    all.insert(all.begin() + 1,
               {"--explain", "",
                "do not migrate: print the memory, disk space and time of each way to keep wave fields on this machine",
                to_flag(r.explain)});
  return all;
}

void print_help(const std::string& verb, const std::string& text) {
  request defaults;
  command_line::print_help(fmt::format(
      "Usage: hpe rtm {} [options] SURVEY\n\n{}\n\n{}\n"
      "Fields of the survey file, in metres, seconds, hertz and metres a second, with defaults in parentheses:\n\n{}",
      verb, text, command_line::lines_of_help(options_of(defaults, verb == "migrate")), help_on_surveys()));
}

/// Reads the command line; throws bad_input if it names no survey.
request parsed(const std::string& verb, int argc, char** argv, const team& with) {
  request r;
  command_line::read(options_of(r, verb == "migrate"), argc, argv);
  if (!r.help && r.survey.empty()) throw bad_input("which survey? Usage: hpe rtm " + verb + " [options] SURVEY");
  if (r.parts > 1 && with.parts() == 1)
    throw bad_input(fmt::format("--parts {} needs as many ranks: mpirun -n {} hpe rtm {} ...", r.parts, r.parts, verb));
  if (r.parts > 1 && r.groups > 1)
    throw bad_input("--groups and --parts exclude each other: with --parts, the devices of a rank form one group");
  r.quiet = r.quiet || !with.first();
  return r;
}

/// Returns the files that both verbs read; the survey and the request name them.
std::vector<std::string> inputs_of(const survey& s, const request& r) {
  std::vector<std::string> all{r.survey, s.wavelet_file, s.geometry};
  for (const velocity_source* from : {&s.model, &s.migration}) {
    all.push_back(from->file);
    if (from->density != "gardner") all.push_back(from->density);
  }
  return all;
}

void must_state(const std::string& value, const std::string& field, const request& r) {
  if (value.empty()) throw bad_input(r.survey + ": " + field + " is not stated");
}

std::string title_of(const volume& v, const run_settings& r, std::size_t shots) {
  return fmt::format("{} x {} x {} cells of {} m, {} shots, {} samples of {:.4g} ms, {} steps of {:.3g} ms, {:.3g} Hz",
                     v.nx, v.ny, v.nz, v.spacing.text(), shots, r.samples, r.interval * 1e3, r.wave.steps,
                     r.wave.time_step * 1e3, r.wave.frequency);
}

void draw_if_asked(const velocity_source& from, const volume& v, const std::string& title, std::int64_t width) {
  if (!from.picture.empty()) pictures::write_png(from.picture, draw_velocities(v, title, width));
}

/// Reports the time of a run.
void answer(const request& r, const std::string& verb, const std::string& about, const std::string& title,
            const run_settings& run, double seconds, std::size_t shots, const std::string& text) {
  std::vector<command_line::figure> figures{{"time", seconds, "s"}, {"shots", static_cast<double>(shots), ""}};
  if (shots > 0) figures.push_back({"a shot", seconds / static_cast<double>(shots), "s"});
  command_line::answer({"hpe rtm " + verb, about, title, 1, command_line::names_of_devices(run.wave.devices), figures},
                       text, r.json, r.quiet);
}

/// Returns the number of devices to use. Throws bad_input if the devices do not form equal groups.
int devices_in_groups(const request& r) {
  const int devices = command_line::devices_of(r.devices);
  if (devices % r.groups != 0)
    throw bad_input(
        fmt::format("--groups {}: {} devices cannot be divided into that many equal groups", r.groups, devices));
  return devices;
}

/// The number of complete shots at the beginning of a file of records, and the number of their traces.
struct finished {
  std::size_t shots = 0;
  std::uint64_t traces = 0;
};
finished finished_of(const std::vector<placed_shot>& shots, std::uint64_t traces) {
  finished f;
  while (f.shots < shots.size() && f.traces + shots[f.shots].where.receivers.size() <= traces)
    f.traces += shots[f.shots++].where.receivers.size();
  return f;
}

finished found(const request& r, const std::string& path, const files::segy::header& head,
               const std::vector<placed_shot>& shots) {
  if (r.fresh) return {};
  try {
    return finished_of(shots, files::segy::whole_traces(path, head));
  } catch (const bad_input& e) {
    throw bad_input(fmt::format("{}: the file does not hold records of this survey; --fresh overwrites it", e.what()));
  }
}

int model(const request& r, team& with) {
  const survey s = read_survey(r.survey);
  must_state(s.records, "[records] file", r);
  const int devices = devices_in_groups(r);
  const volume velocity = load(s.model);
  const std::vector<placed_shot> shots = shots_of(s, velocity);
  run_settings run = settings_of(s, velocity, load_density(s.model, velocity), 0, 0, devices);
  run.wave.at_once = static_cast<int>(r.groups);
  check_records(shots, run);
  if (with.first())
    command_line::check_outputs({s.records, s.records_picture, s.model.picture, r.json}, inputs_of(s, r));
  const std::string title = title_of(velocity, run, shots.size());
  const files::segy::header head =
      records_header(s.records_format == "ibm" ? files::segy::sample_format::ibm : files::segy::sample_format::f32,
                     static_cast<std::uint64_t>(run.samples), run.interval, title, run_mark(velocity, run, shots));
  finished before;
  if (with.first()) before = found(r, s.records, head, shots);
  before.shots = static_cast<std::size_t>(with.of_first(static_cast<std::int64_t>(before.shots)));

  if (!r.quiet)
    fmt::print(stderr, "{}\n{}\n", title, estimate(velocity, run.wave, most_receivers(shots), shots.size(), 1));
  if (!r.quiet && before.shots > 0) fmt::print(stderr, "{} shots are in the file already\n", before.shots);
  if (with.first()) draw_if_asked(s.model, velocity, "Velocities", s.width);
  device_groups groups(velocity, run, static_cast<double>(shots.size() - before.shots), r.quiet, with);
  std::vector<std::unique_ptr<simulation>> on;
  std::vector<medium<float>> ground;
  for (std::size_t g = 0; g < groups.count(); ++g) {
    on.push_back(groups.make(g, run.wave.keep));
    ground.push_back(on.back()->medium_of(velocity));
  }
  std::optional<files::segy::writer> file;
  if (with.first()) file.emplace(s.records, head, before.traces);
  in_rounds(
      with, groups.count(), before.shots, shots.size(),
      [&](std::size_t g, std::size_t n) {
        on[g]->begin_shot(1);
        return std::array{on[g]->record(ground[g], shots[n].where, "recording")};
      },
      [&](std::size_t n, const auto& lists) {
        try {
          file->write(traces_of(head, shots[n], lists[0], run.stride, velocity));
          file->publish();
        } catch (const std::runtime_error& e) {
          throw std::runtime_error(
              fmt::format("{}; the file keeps {} of {} shots, and the same command resumes with the missing shots",
                          e.what(), n, shots.size()));
        }
        groups.finish_one();
      });
  if (!with.first()) return 0;
  file->close();
  if (!s.records_picture.empty()) {
    const shot_file written(s.records, velocity);
    const std::size_t shown = shots.size() / 2;
    pictures::write_png(s.records_picture,
                        draw_gather(written.data(shown, 0, run.interval, run.samples), run.samples, run.interval,
                                    fmt::format("Records of shot {}", shots[shown].number), s.width));
  }
  answer(r, "model", "shot records from a velocity model", title, run, groups.seconds(), shots.size() - before.shots,
         fmt::format("{}: {} shots, {} traces\n{:.1f} s\n", s.records, shots.size(), file->traces(), groups.seconds()));
  return 0;
}

/// Returns the velocities for migration: those of [migration] in the survey, or else the smoothed velocities of
/// [model].
volume migration_velocities(const survey& s) {
  if (!s.migration.file.empty() || !s.migration.builtin.empty()) return load(s.migration);
  const volume truth = load(s.model);
  return smooth(truth, s.smooth < 0 ? 8 * truth.spacing.z : s.smooth, 6 * truth.spacing.z);
}

/// Returns the densities for migration. If the survey states no migration velocities, the file of densities has the
/// format of [model].
std::shared_ptr<const volume> migration_density(const survey& s, const volume& velocity) {
  velocity_source from = s.migration.file.empty() && s.migration.builtin.empty() ? s.model : s.migration;
  from.density = s.migration.density;
  return load_density(from, velocity);
}

/// Writes the stack of all finished shots: only the picture during the run, and all files at the end of the run.
class image_files {
 public:
  image_files(const survey& s, const request& r) : survey_(s) {
    for (const std::string& ending : s.image_formats)
      if (ending != "sgy" && ending != "npy" && ending != "f32" && ending != "png")
        throw bad_input(fmt::format("{}: [image] formats: {}: sgy, npy, f32 and png are possible", r.survey, ending));
  }

  void write(const migration& work, std::size_t shots, std::size_t all) const {
    volume image = work.image(survey_.condition == "correlation" ? condition::correlation : condition::normalised);
    if (survey_.laplacian) image = without_background(image);
    if (shots == all && !survey_.illumination.empty())
      save(survey_.illumination, work.illumination(), {"Illumination", "Written by hpe rtm migrate"});
    const std::string title =
        shots == all ? fmt::format("Image of {} shots", all) : fmt::format("Image of {} of {} shots", shots, all);
    for (const std::string& ending : survey_.image_formats) {
      if (ending == "png")
        pictures::write_png(name(ending), draw_image(image, title, survey_.gain, survey_.width));
      else if (shots == all)
        save(name(ending), image, {title, "Written by hpe rtm migrate", "Samples: depth; interval in millimetres"});
    }
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const std::string& ending : survey_.image_formats) all.push_back(name(ending));
    return all;
  }

 private:
  [[nodiscard]] std::string name(const std::string& ending) const { return survey_.image + "." + ending; }
  const survey& survey_;
};

/// Prints the memory, disk and time of each way to keep the source's field.
int explain(simulation& on, const volume& velocity) {
  const medium<float> ground = on.medium_of(velocity);
  const stack<float> onto(on.cells(), on.parts());
  const keeping& wanted = on.settings().keep;
  const keep_rates rates = measure_rates(on.wave(), ground, onto, on.shape(), wanted);
  const std::string table = explain_keeping(keep_options(on.shape(), wanted, rates), wanted, on.shape());
  if (on.with().first()) fmt::print("{}", table);
  return 0;
}

int migrate(const request& r, team& with) {
  const survey s = read_survey(r.survey);
  must_state(s.records, "[records] file", r);
  must_state(s.image, "[image] name", r);
  const int devices = devices_in_groups(r);
  const volume velocity = migration_velocities(s);
  const shot_file records(s.records, velocity);
  const std::vector<placed_shot>& shots = records.shots();
  run_settings run =
      settings_of(s, velocity, migration_density(s, velocity), records.interval(), records.length(), devices);
  run.wave.at_once = static_cast<int>(r.groups);
  check_records(shots, run);
  const image_files image(s, r);
  const std::vector<std::uint8_t>& head = records.file().head().bytes;
  const sums_file sums(s.image + ".sums", run_mark(velocity, run, shots,
                                                   fmt::format("{} {} {}", s.shift, records.file().traces(),
                                                               std::string(head.begin(), head.end()))));
  if (with.first()) {
    std::vector<std::string> outputs = image.names(), inputs = inputs_of(s, r);
    outputs.insert(outputs.end(), {sums.path(), s.migration.picture, s.illumination, r.json});
    inputs.push_back(s.records);
    command_line::check_outputs(outputs, inputs);
    if (r.fresh && !r.explain) sums.remove();
  }

  const std::string title = title_of(velocity, run, shots.size());
  if (!r.quiet)
    fmt::print(stderr, "{}\n{}\n", title, estimate(velocity, run.wave, most_receivers(shots), shots.size(), 2));
  if (with.first()) draw_if_asked(s.migration, velocity, "Migration velocities", s.width);
  device_groups groups(velocity, run, static_cast<double>(shots.size()), r.quiet, with);
  std::vector<std::unique_ptr<simulation>> on;
  on.push_back(groups.make(0, run.wave.keep));
  if (r.explain) return explain(*on[0], velocity);
  std::vector<std::unique_ptr<migration>> work;
  work.push_back(std::make_unique<migration>(*on[0], velocity));
  // All groups keep the field in the same way, so that the image does not depend on the group of a shot.
  for (std::size_t g = 1; g < groups.count(); ++g) {
    on.push_back(groups.make(g, work[0]->kept()));
    work.push_back(std::make_unique<migration>(*on[g], velocity));
  }
  migration& first = *work[0];
  if (!r.quiet) fmt::print(stderr, "the source's wave field is kept as {}\n", name_of(first.kept()));
  std::int64_t stored = 0;
  if (with.first()) stored = sums.load(first.stacked, static_cast<std::size_t>(velocity.cells()));
  const auto before = static_cast<std::size_t>(
      std::clamp<std::int64_t>(with.of_first(stored), 0, static_cast<std::int64_t>(shots.size())));
  if (!r.quiet && before > 0) fmt::print(stderr, "{} shots are in {} already\n", before, sums.path());
  constexpr double between_pictures = 5;  // seconds
  double last_picture = 0;
  groups.begin_at(before);
  in_rounds(
      with, groups.count(), before, shots.size(),
      [&](std::size_t g, std::size_t n) {
        on[g]->begin_shot(2);
        try {
          const struct sums made =
              work[g]->migrate(shots[n].where, records.data(n, s.shift, run.wave.time_step, run.wave.steps));
          return std::array{made.image, made.illumination};
        } catch (const std::runtime_error& e) {  // for example, because the disk has too little space for wave fields
          if (groups.done() == 0) throw;
          throw std::runtime_error(
              fmt::format("{}; {} keeps {} of {} shots, and the same command resumes with the missing shots", e.what(),
                          sums.path(), groups.done(), shots.size()));
        }
      },
      [&](std::size_t n, auto lists) {
        first.stacked.add({std::move(lists[0]), std::move(lists[1])});
        sums.store(first.stacked, static_cast<std::int64_t>(n) + 1);
        groups.finish_one();
        if (groups.seconds() - last_picture > between_pictures && n + 1 < shots.size()) {
          image.write(first, n + 1, shots.size());
          last_picture = groups.seconds();
        }
      });
  if (!with.first()) return 0;
  const double seconds = groups.seconds();
  image.write(first, shots.size(), shots.size());
  sums.remove();
  answer(r, "migrate", "a seismic image from shot records", title, run, seconds, shots.size() - before,
         fmt::format("{}: {} x {} x {} cells\n{:.1f} s\n", fmt::join(image.names(), ", "), velocity.nx, velocity.ny,
                     velocity.nz, seconds));
  return 0;
}

}  // namespace

int parts_of(int argc, char** argv) {
  request r;
  command_line::read(options_of(r, std::string(argv[0]) == "migrate"), argc, argv);
  return static_cast<int>(r.parts);
}

int model_survey(int argc, char** argv, team& with) {
  const request r = parsed("model", argc, argv, with);
  if (!r.help) return model(r, with);
  if (with.first())
    print_help(
        "model",
        "Simulates what the receivers of a survey record over the survey's velocity model, and writes the records "
        "of all\nshots into one SEG-Y file.");
  return 0;
}

int migrate_survey(int argc, char** argv, team& with) {
  const request r = parsed("migrate", argc, argv, with);
  if (!r.help) return migrate(r, with);
  if (with.first())
    print_help("migrate",
               "Makes a seismic image by reverse time migration from the records of a SEG-Y file. The picture is\n"
               "updated during the run; the sums of finished shots are in NAME.sums until the run ends.");
  return 0;
}

}  // namespace hpe::rtm
