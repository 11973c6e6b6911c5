#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/rtm/grid.h"
#include "apps/rtm/volume.h"
#include "apps/rtm/wave.h"

namespace hpe::rtm {

/// A Ricker wavelet (second derivative of a Gaussian, turned up) of the given peak frequency in Hz, one sample for each
/// of `steps` time steps; its peak comes at ricker_delay(frequency) seconds.
std::vector<float> ricker(double frequency, double time_step, std::int64_t steps);
double ricker_delay(double frequency);

/// One experiment: where the source fires and who listens, in cells of the model.
struct shot {
  kernels::point source;
  std::vector<kernels::point> receivers;
};

/// What becomes of the recorded data before it is sent back into the ground.
enum class preparation {
  mute,     ///< the direct wave is faded out: all that arrives before offset / velocity at the source + two periods
  residual  ///< what the smooth model predicts is taken off; direct and diving waves go with it
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
  /// Told what is being done and which part of the shot, 0 to 1, is done.
  using progress = std::function<void(const std::string& what, double part)>;

  /// Throws bad_input for settings that cannot be run: a time step over the stable one, too little memory.
  migration(const volume& truth, const volume& smooth, const migration_settings& settings, progress tell);

  void run(const shot& s);

  /// The stack of all shots so far: sum(source * receiver) / (sum(source^2) + a little).
  [[nodiscard]] volume image() const;

 private:
  void forward(const medium<float>& m, const traces<float>& source, const traces<float>& receivers,
               const std::string& what, bool keep);
  void backward(const traces<float>& receivers);
  /// Reports every so many steps, after waiting for them, so that the report is true and the queue short.
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

/// What is to be sent back for the image to be in phase with the reflectors: minus the time derivative of each trace,
/// faded out towards the end of the record. data is [step][trace].
std::vector<float> adjoint_source(const std::vector<float>& data, std::int64_t steps, double time_step);

/// Takes away the smooth background that correlation leaves, by minus the Laplacian of the image.
volume without_background(const volume& image);

}  // namespace hpe::rtm
