#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/files/segy.h"
#include "apps/rtm/migration.h"
#include "apps/rtm/model/volume.h"

namespace hpe::rtm {

/// A shot of a survey.
struct placed_shot {
  std::int64_t number = 0;  ///< field record number in SEG-Y files
  shot where;               ///< source and receivers, in cells of the model
};

/// Resamples several traces at once: sample j of trace i is samples[i][j], taken j * interval seconds after `begin`.
/// Returns [step][trace] for times 0, step, 2 step ..., by band-limited interpolation (a sinc of eight lobes on each
/// side under a Hann window). Before the first sample and after the last sample, the values are 0.
std::vector<float> resample(const std::vector<std::vector<double>>& samples, double interval, double begin, double step,
                            std::int64_t steps);

/// Returns the header of a file of shot records. run: the run's mark (run_mark).
[[nodiscard]] files::segy::header records_header(files::segy::sample_format format, std::uint64_t samples,
                                                 double interval, const std::string& title, const std::string& run);

/// Makes the traces of a shot from every `stride`-th step of `data`, which is [step][receiver]. Places are in the
/// coordinates of the model.
[[nodiscard]] std::vector<files::segy::trace> traces_of(const files::segy::header& head, const placed_shot& s,
                                                        const std::vector<float>& data, std::int64_t stride,
                                                        const volume& model);

/// Shots in a SEG-Y file. A shot is a run of traces with one field record number (bytes 9 to 12) and one source. Dead
/// and auxiliary traces, whose bytes 29 and 30 hold a number from 2 to 8, are left out. Sources and receivers may be
/// anywhere in the model; each is moved to the nearest cell.
class shot_file {
 public:
  /// Reads the headers of all traces. Throws bad_input for places outside the model and units that are not lengths.
  shot_file(const std::string& path, const volume& model);

  [[nodiscard]] const std::vector<placed_shot>& shots() const { return shots_; }
  [[nodiscard]] double interval() const;  ///< seconds
  [[nodiscard]] double length() const;    ///< seconds
  [[nodiscard]] const files::segy::reader& file() const { return file_; }

  /// Returns the records of shots()[number], [step][receiver], moved `shift` seconds towards later times.
  [[nodiscard]] std::vector<float> data(std::size_t number, double shift, double step, std::int64_t steps) const;

 private:
  const files::segy::reader file_;
  std::vector<placed_shot> shots_;
  std::vector<std::vector<std::uint64_t>> traces_;  ///< numbers of the traces of each shot
};

}  // namespace hpe::rtm
