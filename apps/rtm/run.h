#pragma once

/// What `hpe rtm model` and `hpe rtm migrate` share: the settings that follow from a survey, the mark that tells runs
/// apart, and the sums that a migration keeps on disk.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/rtm/migration.h"
#include "apps/rtm/model/volume.h"
#include "apps/rtm/records.h"
#include "apps/rtm/survey.h"

namespace hpe::rtm {

/// The settings of a run, and how its records are sampled.
struct run_settings {
  migration_settings wave;
  double interval = 0;       ///< between samples of a record, seconds
  std::int64_t stride = 1;   ///< steps between samples
  std::int64_t samples = 0;  ///< of a trace
};

/// Settings for records of this interval and length in seconds; 0 means: as the survey states, or else chosen. Throws
/// bad_input for an interval that is too long for the wavelet, and for a wavelet file that cannot be used.
[[nodiscard]] run_settings settings_of(const survey& s, const volume& velocity, double interval, double length,
                                       int devices);

/// Sixteen hexadecimal digits that differ for runs with other results: a hash of velocities, settings, places and
/// `also`.
[[nodiscard]] std::string run_mark(const volume& velocity, const run_settings& r, const std::vector<placed_shot>& shots,
                                   const std::string& also = {});

/// Throws bad_input if devices or the host have too little memory for the records of a shot.
void check_records(const std::vector<placed_shot>& shots, const run_settings& r);

/// The sums of a migration and the number of shots in them, in a file that is replaced as a whole: a run that is
/// interrupted at any time leaves the previous file or the new one.
class sums_file {
 public:
  sums_file(std::string path, std::string mark);

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Reads the sums and returns how many shots they contain; 0 if there is no file. Throws bad_input for the file of
  /// another run, or a damaged one.
  [[nodiscard]] std::int64_t load(sums& to, std::size_t cells) const;

  /// Throws std::runtime_error if the file cannot be written; the previous file stays then.
  void store(const sums& from, std::int64_t shots) const;

  void remove() const;

 private:
  [[nodiscard]] std::string head(std::int64_t shots, std::size_t cells) const;

  const std::string path_, mark_;
};

}  // namespace hpe::rtm
