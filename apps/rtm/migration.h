#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/rtm/grid.h"
#include "apps/rtm/keep_choice.h"
#include "apps/rtm/model/volume.h"
#include "apps/rtm/rtm_team.h"
#include "apps/rtm/wave.h"

namespace hpe::rtm {

/// Returns a Ricker wavelet (negative second derivative of a Gaussian) with the given peak frequency in Hz, one sample
/// for each of `steps` time steps. Its peak is at ricker_delay(frequency) seconds.
std::vector<float> ricker(double frequency, double time_step, std::int64_t steps);
double ricker_delay(double frequency);

/// The highest significant frequency of a Ricker wavelet, as a multiple of its peak frequency.
inline constexpr double highest_of_peak = 2.5;

/// Returns the frequency at which the slowest wave has nine cells per wavelength.
double default_frequency(double slowest, double longest_side);

/// Throws bad_input for a frequency at which the slowest wave has fewer than two cells per wavelength, because a grid
/// cannot represent such a wave.
void check_frequency(const volume& velocity, double frequency);

/// Returns a record length in seconds: 1.25 times the time down and up the slowest column, plus the length of the
/// wavelet. The factor 1.25 allows for slanted paths.
double record_length(const volume& velocity, double frequency);

/// Returns the number of steps between kept wave fields, so that six fields are kept in a period of the highest
/// frequency.
std::int64_t default_keep_every(double frequency, double time_step);

/// One experiment: the places of the source and the receivers, in cells of the model.
struct shot {
  kernels::point source;
  std::vector<kernels::point> receivers;
};

/// The change that a migration makes to the recorded data before the backward pass.
enum class preparation {
  /// Fades out all samples up to offset / (velocity at the source * sin(largest_angle)) + two periods after the
  /// wavelet's peak: the direct wave, and reflections at larger angles.
  mute,
  residual  ///< the data of the smooth model are subtracted, and with them direct and diving waves
};

struct migration_settings {
  double frequency = 15;        ///< peak frequency of the wavelet, Hz
  double time_step = 0;         ///< seconds
  std::int64_t steps = 0;       ///< number of steps of each pass
  std::int64_t keep_every = 8;  ///< steps between kept wave fields
  keeping keep = {};            ///< method and place for the source's wave field
  int devices = 1;
  int first_device = 0;                             ///< the first of the consecutive devices that are used
  int at_once = 1;                                  ///< concurrent simulations in this process, on separate devices
  std::shared_ptr<const volume> density = nullptr;  ///< densities of the model's cells, in any unit; null: constant
  boundaries edges;
  std::int64_t order = usual_order;  ///< order of the derivatives in space
  preparation data = preparation::mute;
  double largest_angle = 90;        ///< degrees of incidence; the mute fades out reflections at larger angles
  std::vector<float> wavelet = {};  ///< a sample for each step; empty: a Ricker wavelet
  double delay = 0;                 ///< time of the Ricker wavelet's peak, seconds
};

/// Returns a sentence about the steps and the memory of a run, and about the free memory. passes: the number of passes
/// for each shot: 1 to model, 2 to migrate, 3 for both.
[[nodiscard]] std::string estimate(const volume& model, const migration_settings& settings, std::size_t receivers,
                                   std::size_t shots, int passes);

/// Wave fields on the cells of a model, spread over devices, on which modelling and migration run shots.
class simulation {
 public:
  /// A function that is called with the name of the pass and the progress within the shot, from 0 to 1.
  using progress = std::function<void(const std::string& what, double part)>;

  /// Makes a simulation for models with the cells of `model` and velocities up to `fastest` m/s. Throws bad_input for
  /// invalid settings, such as a time step above the longest stable time step, or too many devices. The processes of
  /// the team share the shots and grids; the team must outlive the simulation.
  simulation(const volume& model, double fastest, const migration_settings& settings, progress tell,
             team& with = alone());

  [[nodiscard]] const migration_settings& settings() const { return settings_; }
  [[nodiscard]] const grid& cells() const { return grid_; }
  [[nodiscard]] const decomposition& parts() const { return parts_; }
  [[nodiscard]] history_shape shape() const {
    return {grid_, parts_, settings_.steps, settings_.keep_every, with_.parts() > 1, settings_.at_once};
  }
  [[nodiscard]] team& with() const { return with_; }
  [[nodiscard]] propagator<float>& wave() { return wave_; }

  /// Returns the medium for a model's velocities. Throws bad_input if a velocity is above `fastest`, or if the number
  /// or spacing of cells differs from that of the constructor's model.
  [[nodiscard]] medium<float> medium_of(const volume& velocity) const;

  /// Call this before the `passes` passes of a shot: these passes then report their progress as parts of this shot.
  void begin_shot(int passes);

  /// Returns sqrt(density) at cells of the model; wave fields times these factors are pressures. The factors are 1 if
  /// the density is constant.
  [[nodiscard]] std::vector<float> roots_at(const std::vector<kernels::point>& cells) const;

  /// Returns the receivers of a shot at their places on the grid, with a record of zeros. Throws bad_input for a place
  /// outside the model.
  [[nodiscard]] traces<float> receivers_of(const shot& s) const;

  /// Returns, for each cell of the source (with periodic ends, a line of cells along y), the wavelet divided by
  /// sqrt(density) at this cell.
  [[nodiscard]] traces<float> source_of(const shot& s) const;

  /// Runs one pass forward in time: adds the source's wavelet, records the receivers, and fills the history unless it
  /// is null.
  void forward(const medium<float>& m, const traces<float>& source, const traces<float>& receivers,
               source_history* history, const std::string& what);

  /// Runs one pass backward in time: adds the receivers' records, and correlates the history with the wave field of
  /// these records.
  void backward(const medium<float>& m, const traces<float>& receivers, source_history& history,
                const stack<float>& onto, const std::string& what);

  /// Returns the records of a shot, [step][receiver], on part 0 of a team; an empty vector on all other parts.
  [[nodiscard]] std::vector<float> record(const medium<float>& m, const shot& s, const std::string& what);

 private:
  /// Reports the progress at regular intervals. Waits for the steps before it reports them, so that the report is true
  /// and the queue stays short.
  void report(const std::string& what, std::int64_t done);
  [[nodiscard]] std::vector<kernels::point> on_grid(const std::vector<kernels::point>& cells) const;

  /// Returns a team of this process alone.
  static team& alone();

  const migration_settings settings_;
  const progress tell_;
  team& with_;
  const double fastest_;
  const grid grid_;
  const decomposition parts_;
  propagator<float> wave_;
  int pass_ = 0, passes_ = 1;  ///< the present pass and the number of passes of the present shot
};

/// The imaging condition.
enum class condition {
  normalised,  ///< sum(source * receiver) / (sum(source^2) + epsilon): reflectors at all depths are about equally
               ///< strong
  correlation  ///< sum(source * receiver)
};

/// Image and illumination on the model's cells.
struct sums {
  std::vector<float> image, illumination;

  /// Adds the sums of a shot; does nothing in a process that has no sums.
  void add(const sums& shot);
};

/// Migrates shots one after another, and stacks their images. The sums of each shot are computed separately and then
/// added in the order of the shots, so that the stack does not depend on which process computes a shot.
class migration {
 public:
  /// Chooses how the source's wave field is kept, if the settings do not specify it. Throws bad_input if there is too
  /// little memory for it.
  migration(simulation& on, const volume& velocity);

  /// Migrates a shot with its records, [step][receiver], in two passes. Returns the sums on part 0 of a team; they are
  /// empty on the other parts.
  [[nodiscard]] sums migrate(const shot& s, std::vector<float> data);

  /// Migrates a shot and adds its sums to `stacked`.
  void add(const shot& s, std::vector<float> data) { stacked.add(migrate(s, std::move(data))); }

  /// Returns the method and the place by which the source's wave field is kept.
  [[nodiscard]] const keeping& kept() const { return keeping_; }

  /// The sums over all shots so far; a restarted migration sets them.
  sums stacked;

  /// Returns the stack of all shots so far. Throws bad_input if there are none.
  [[nodiscard]] volume image(condition how = condition::normalised) const;

  /// Returns sum(source^2) over all shots so far.
  [[nodiscard]] volume illumination() const;

 private:
  void mute(std::vector<float>& data, const shot& s) const;

  simulation& on_;
  const volume velocity_;
  const medium<float> medium_;
  const stack<float> stack_;
  const keeping keeping_;
  const std::unique_ptr<source_history> history_;
};

/// Returns the source of the backward pass, for an image in phase with the reflectors: minus the time derivative of
/// each trace, faded out towards the end of the record. data is [step][trace].
std::vector<float> adjoint_source(const std::vector<float>& data, std::int64_t steps, double time_step);

/// Removes the smooth background that correlation leaves: returns minus the Laplacian of the image.
volume without_background(const volume& image);

}  // namespace hpe::rtm
