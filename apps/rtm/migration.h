#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/rtm/grid.h"
#include "apps/rtm/volume.h"
#include "apps/rtm/wave.h"

namespace hpe::rtm {

/// A Ricker wavelet (negative second derivative of a Gaussian) with the given peak frequency in Hz, one sample for each
/// of `steps` time steps. Its peak is at ricker_delay(frequency) seconds.
std::vector<float> ricker(double frequency, double time_step, std::int64_t steps);
double ricker_delay(double frequency);

/// One experiment: the places of the source and the receivers, in cells of the model.
struct shot {
  kernels::point source;
  std::vector<kernels::point> receivers;
};

/// How the recorded data are changed before they are sent back into the ground.
enum class preparation {
  mute,     ///< the direct wave is faded out: everything before offset / velocity at the source + two periods
  residual  ///< the data of the smooth model are subtracted, and with them direct and diving waves
};

struct migration_settings {
  double frequency = 15;        ///< of the wavelet's peak, Hz
  double time_step = 0;         ///< seconds
  std::int64_t steps = 0;       ///< of each pass
  std::int64_t keep_every = 8;  ///< steps between kept wave fields
  int devices = 1;
  boundaries edges;
  preparation data = preparation::mute;
};

/// Images shots one after the other and stacks them. "Observed" data are modelled in the true velocities; the image is
/// made with the smooth ones only.
class migration {
 public:
  /// Called with the name of the step and its progress within the shot, from 0 to 1.
  using progress = std::function<void(const std::string& what, double part)>;

  /// Throws bad_input for settings that are not possible: a time step above the stable one, or too little memory.
  migration(const volume& truth, const volume& smooth, const migration_settings& settings, progress tell);

  void run(const shot& s);

  /// The stack of all shots so far: sum(source * receiver) / (sum(source^2) + epsilon).
  [[nodiscard]] volume image() const;

 private:
  void forward(const medium<float>& m, const traces<float>& source, const traces<float>& receivers,
               const std::string& what, bool keep);
  void backward(const traces<float>& receivers);
  /// Reports the progress at regular intervals. First waits for the steps done, so that the report is true and the
  /// queue stays short.
  void report(const std::string& what, std::int64_t done) const;
  [[nodiscard]] std::vector<kernels::point> on_grid(const std::vector<kernels::point>& cells) const;
  void mute(std::vector<float>& data, const shot& s) const;

  const migration_settings settings_;
  const progress tell_;
  const std::int64_t nx_, ny_, nz_;
  const grid grid_;
  const decomposition parts_;
  const volume truth_values_;
  medium<float> truth_, smooth_;
  propagator<float> wave_;
  kept_fields<float> kept_;
  stack<float> stack_;
  int pass_ = 0;  ///< of the present shot
};

/// The source of the backward pass, for an image in phase with the reflectors: minus the time derivative of each trace,
/// faded out towards the end of the record. data is [step][trace].
std::vector<float> adjoint_source(const std::vector<float>& data, std::int64_t steps, double time_step);

/// Removes the smooth background that correlation leaves: returns minus the Laplacian of the image.
volume without_background(const volume& image);

}  // namespace hpe::rtm
