#include "apps/rtm/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <utility>

#include "apps/command_line/program.h"
#include "apps/files/descriptor.h"
#include "apps/files/element_file.h"
#include "runtime/os/output_file.h"

namespace hpe::rtm {

namespace {

constexpr double microsecond = 1e-6;
constexpr std::string_view name_of_format = "hpe rtm sums";

struct wavelet {
  std::vector<double> samples;
  double interval = 0;
};

wavelet read_wavelet(const survey& s) {
  wavelet w{{}, s.wavelet_interval};
  if (is_segy(s.wavelet_file)) {
    const files::segy::reader file(s.wavelet_file);
    w.samples = file.read(0).samples;
    if (file.shape().interval > 0) w.interval = file.shape().interval * microsecond;
  } else {
    const files::description file = files::describe(s.wavelet_file);
    file.must_hold("f32");
    std::vector<float> values(file.elements(sizeof(float)));
    files::read(file, values.data());
    w.samples.assign(values.begin(), values.end());
  }
  if (!(w.interval > 0))
    throw bad_input("[wavelet] interval is missing, and " + s.wavelet_file + " does not state the interval either");
  constexpr std::size_t most = 1 << 16;
  if (w.samples.size() > most ||
      !std::all_of(w.samples.begin(), w.samples.end(), [](double v) { return std::isfinite(v); }) ||
      std::all_of(w.samples.begin(), w.samples.end(), [](double v) { return v == 0; }))
    throw bad_input(fmt::format(
        "{}: a wavelet must have at most {} samples, all of them finite numbers, and at least one of them not 0",
        s.wavelet_file, most));
  return w;
}

/// Returns the frequency in Hz at which the amplitude spectrum has its peak.
double peak_frequency(const wavelet& w) {
  const auto n = static_cast<double>(w.samples.size());
  const std::size_t frequencies = std::min<std::size_t>(w.samples.size() / 2, 2048);
  double best = 0, most = 0;
  for (std::size_t k = 1; k <= frequencies; ++k) {
    double real = 0, imaginary = 0;
    for (std::size_t i = 0; i < w.samples.size(); ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) * static_cast<double>(i) / n;
      real += w.samples[i] * std::cos(angle);
      imaginary += w.samples[i] * std::sin(angle);
    }
    if (const double size = std::hypot(real, imaginary); size > most) {
      most = size;
      best = static_cast<double>(k) / (n * w.interval);
    }
  }
  return best;
}

double time_of_peak(const wavelet& w) {
  const auto peak = std::max_element(w.samples.begin(), w.samples.end(),
                                     [](double a, double b) { return std::abs(a) < std::abs(b); });
  return static_cast<double>(peak - w.samples.begin()) * w.interval;
}

/// The 64-bit hash FNV-1a.
class hash {
 public:
  template <class T>
  void add(const T& value) {
    add_bytes(&value, sizeof value);
  }
  template <class T>
  void add(const std::vector<T>& values) {
    add(values.size());
    add_bytes(values.data(), values.size() * sizeof(T));
  }
  [[nodiscard]] std::string digits() const { return fmt::format("{:016x}", state_); }

 private:
  void add_bytes(const void* from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      state_ = (state_ ^ static_cast<const unsigned char*>(from)[i]) * 0x100000001b3;
  }
  std::uint64_t state_ = 0xcbf29ce484222325;
};

/// Returns the longest interval with eight samples in a period of the peak frequency, in seconds: whole microseconds,
/// and at most 4 ms.
double default_interval(double frequency) {
  constexpr double longest = 4e-3, samples = 8, rounding = 1e-6;
  return std::max(std::floor(std::min(longest, 1 / (samples * frequency)) / microsecond + rounding), 1.0) * microsecond;
}

}  // namespace

run_settings settings_of(const survey& s, const volume& velocity, std::shared_ptr<const volume> density,
                         double interval, double length, int devices) {
  constexpr double most_steps = 1e7;
  run_settings r;
  migration_settings& w = r.wave;
  const auto [slow, fast] = std::minmax_element(velocity.values.begin(), velocity.values.end());
  w.devices = devices;
  w.frequency = s.frequency > 0 ? s.frequency : default_frequency(*slow, longest_side(velocity));
  wavelet given;
  if (!s.wavelet_file.empty()) {
    given = read_wavelet(s);
    w.delay = time_of_peak(given);
    if (s.frequency <= 0) w.frequency = peak_frequency(given);
  }
  check_frequency(velocity, w.frequency);
  r.interval = interval > 0 ? interval : s.interval > 0 ? s.interval : default_interval(w.frequency);
  if (const double longest = 1 / (2 * highest_of_peak * w.frequency); r.interval > longest * (1 + 1e-9))
    throw bad_input(fmt::format(
        "records sampled every {:.4g} ms: a wavelet with its peak at {:.4g} Hz needs an interval of at most {:.4g} ms",
        r.interval * 1e3, w.frequency, longest * 1e3));
  w.order = s.order;
  w.edges.sponge = s.sponge;
  w.edges.cpml = s.cpml;
  w.edges.free_surface = s.free_surface;
  w.density = std::move(density);
  double step = 0.9 * stable_step(velocity, w.density.get(), w.edges, *fast, w.order);
  if (s.time_step > 0) step = std::min(step, s.time_step);
  r.stride = std::max<std::int64_t>(1, std::llround(std::ceil(std::min(r.interval / step, most_steps) - 1e-9)));
  w.time_step = r.interval / static_cast<double>(r.stride);
  if (s.length > 0) length = s.length;
  if (!(length > 0)) length = record_length(velocity, w.frequency);
  if (length / w.time_step > most_steps)
    throw bad_input(fmt::format("a record of {} s takes more than ten million steps of {} s", length, w.time_step));
  r.samples = std::llround(std::floor(length / r.interval + 1e-6)) + 1;
  w.steps = (r.samples - 1) * r.stride + 1;
  if (!given.samples.empty()) w.wavelet = resample({given.samples}, given.interval, 0, w.time_step, w.steps);
  w.keep_every = s.keep_every > 0 ? s.keep_every : default_keep_every(w.frequency, w.time_step);
  w.keep = s.keep;
  w.data = s.data == "mute" ? preparation::mute : preparation::residual;
  if (w.data != preparation::mute && s.angle != 90) throw bad_input("[migration] angle needs data = \"mute\"");
  w.largest_angle = s.angle;
  return r;
}

std::string run_mark(const volume& velocity, const run_settings& r, const std::vector<placed_shot>& shots,
                     const std::string& also) {
  hash h;
  h.add(std::vector<char>(also.begin(), also.end()));
  for (const double number : {velocity.spacing.x, velocity.spacing.y, velocity.spacing.z, velocity.x0, velocity.y0,
                              r.wave.frequency, r.wave.time_step, r.wave.delay, r.wave.largest_angle})
    h.add(number);
  for (const std::int64_t number :
       {velocity.nx, velocity.ny, velocity.nz, r.stride, r.samples, r.wave.keep_every, r.wave.keep.bits, r.wave.order,
        r.wave.edges.cells(), r.wave.edges.cpml, static_cast<std::int64_t>(r.wave.edges.free_surface),
        static_cast<std::int64_t>(r.wave.data), static_cast<std::int64_t>(r.wave.keep.zfp),
        static_cast<std::int64_t>(r.wave.keep.how == keep_method::boundary)})
    h.add(number);
  h.add(velocity.values);
  if (r.wave.density != nullptr) h.add(r.wave.density->values);
  h.add(r.wave.wavelet);
  for (const placed_shot& s : shots) {
    h.add(s.number);
    h.add(s.where.source);
    h.add(s.where.receivers);
  }
  return h.digits();
}

std::size_t most_receivers(const std::vector<placed_shot>& shots) {
  std::size_t most = 0;
  for (const placed_shot& s : shots) most = std::max(most, s.where.receivers.size());
  return most;
}

void check_records(const std::vector<placed_shot>& shots, const run_settings& r) {
  const std::size_t most = most_receivers(shots);
  // Each sample is stored twice on the devices, and twice on the host while the data are prepared.
  const double bytes =
      2.0 * r.wave.at_once * static_cast<double>(most) * static_cast<double>(r.wave.steps) * sizeof(float);
  command_line::check_room(fmt::format("records of {} receivers and {} steps", most, r.wave.steps), {bytes, bytes},
                           r.wave.devices);
}

device_groups::device_groups(const volume& velocity, const run_settings& run, double shots, bool quiet, team& with)
    : velocity_(velocity),
      all_(run.wave),
      with_(with),
      parts_(static_cast<std::size_t>(run.wave.at_once)),
      progress_("shot", shots, quiet) {}

std::unique_ptr<simulation> device_groups::make(std::size_t group, const keeping& keep) {
  migration_settings s = all_;
  s.devices = all_.devices / all_.at_once;
  s.first_device = static_cast<int>(group) * s.devices;
  s.keep = keep;
  return std::make_unique<simulation>(
      velocity_, fastest(velocity_), s,
      [this, group](const std::string& what, double part) { tell(group, what, part); }, with_);
}

void device_groups::tell(std::size_t group, const std::string& what, double part) {
  const std::lock_guard lock(mutex_);
  parts_[group] = part;
  progress_.at(done_ + std::accumulate(parts_.begin(), parts_.end(), 0.0) * with_.groups(), what);
}

void device_groups::finish_one() {
  ++done_;
  std::fill(parts_.begin(), parts_.end(), 0.0);
}

sums_file::sums_file(std::string path, std::string mark) : path_(std::move(path)), mark_(std::move(mark)) {}

std::string sums_file::head(std::int64_t shots, std::size_t cells) const {
  return fmt::format("{} 1\nrun {}\nshots {:10}\ncells {:14}\n", name_of_format, mark_, shots, cells);
}

std::int64_t sums_file::load(sums& to, std::size_t cells) const {
  if (!std::filesystem::exists(path_)) return 0;
  const files::descriptor file = files::open_to_read(path_);
  const std::size_t bytes = cells * sizeof(float);
  to.image.resize(cells);
  to.illumination.resize(cells);
  std::string found(head(0, cells).size(), '\0');
  const std::uint64_t size = files::size_of(file, path_);
  std::int64_t shots = 0;
  if (file.read_at(found.data(), found.size(), 0) == found.size())
    if (const std::size_t at = found.find("\nshots "); at != std::string::npos) shots = std::atoll(&found[at + 7]);
  if (found != head(shots, cells) || size != found.size() + 2 * bytes)
    throw bad_input(path_ + " holds the sums of another run, or is damaged; --fresh starts again");
  if (file.read_at(to.image.data(), bytes, found.size()) != bytes ||
      file.read_at(to.illumination.data(), bytes, found.size() + bytes) != bytes)
    throw bad_input(path_ + " cannot be read: " + files::reason());
  return shots;
}

void sums_file::store(const sums& from, std::int64_t shots) const {
  const std::string begin = head(shots, from.image.size());
  const std::size_t bytes = from.image.size() * sizeof(float);
  try {
    os::output_file file(path_, begin.size() + 2 * bytes);
    file.write(begin);
    file.write(from.image.data(), bytes);
    file.write(from.illumination.data(), bytes);
    file.close();
  } catch (const hpe::error& e) {
    throw std::runtime_error(fmt::format("{}; the file keeps the sums of the first {} shots", e.what(), shots - 1));
  }
}

void sums_file::remove() const {
  std::string found(name_of_format.size(), '\0');
  const bool is_another =
      std::filesystem::exists(path_) &&
      (files::open_to_read(path_).read_at(found.data(), found.size(), 0) != found.size() || found != name_of_format);
  if (is_another)
    throw bad_input(path_ + " does not hold the sums of a migration; move it away, or choose another [image] name");
  std::filesystem::remove(path_);
}

}  // namespace hpe::rtm
