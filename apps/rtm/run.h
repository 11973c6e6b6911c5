#pragma once

/// Common parts of `hpe rtm model` and `hpe rtm migrate`: the settings that follow from a survey, the mark that
/// identifies a run, and the sums that a migration keeps on disk.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/command_line/progress.h"
#include "apps/rtm/migration.h"
#include "apps/rtm/model/volume.h"
#include "apps/rtm/records.h"
#include "apps/rtm/survey.h"

namespace hpe::rtm {

/// The settings of a run, and the sampling of its records.
struct run_settings {
  migration_settings wave;
  double interval = 0;       ///< seconds between samples of a record
  std::int64_t stride = 1;   ///< steps between samples
  std::int64_t samples = 0;  ///< number of samples of a trace
};

/// Returns the settings for records with this sample interval and length in seconds. If `interval` is 0, the interval
/// of the survey is used. The length of the survey, if stated, replaces `length`. Values that are not stated anywhere
/// are chosen by hpe. Throws bad_input for an interval that is too long for the wavelet, and for a wavelet file that
/// cannot be used.
[[nodiscard]] run_settings settings_of(const survey& s, const volume& velocity, std::shared_ptr<const volume> density,
                                       double interval, double length, int devices);

/// Returns a mark of sixteen hexadecimal digits, a hash of velocities, settings, places and `also`. Runs with different
/// results have different marks.
[[nodiscard]] std::string run_mark(const volume& velocity, const run_settings& r, const std::vector<placed_shot>& shots,
                                   const std::string& also = {});

/// Returns the largest number of receivers of a shot.
[[nodiscard]] std::size_t most_receivers(const std::vector<placed_shot>& shots);

/// Throws bad_input if devices or the host have too little memory for the records of a shot.
void check_records(const std::vector<placed_shot>& shots, const run_settings& r);

/// The groups into which this process divides its devices, and the progress of their shots. Each group has a simulation
/// of its own.
class device_groups {
 public:
  /// `shots` is the number of all shots. The velocities and the team must outlive this object, which must outlive its
  /// simulations.
  device_groups(const volume& velocity, const run_settings& run, double shots, bool quiet, team& with);

  [[nodiscard]] std::size_t count() const { return parts_.size(); }
  [[nodiscard]] double seconds() const { return progress_.seconds(); }
  [[nodiscard]] double done() const { return done_; }

  /// Makes a simulation on the devices of a group.
  [[nodiscard]] std::unique_ptr<simulation> make(std::size_t group, const keeping& keep);

  /// Sets the number of shots that earlier runs have finished.
  void begin_at(std::size_t shots) { done_ = static_cast<double>(shots); }

  /// Counts a finished shot. Must not be called while a group is making a shot.
  void finish_one();

 private:
  void tell(std::size_t group, const std::string& what, double part);

  const volume& velocity_;
  const migration_settings all_;
  team& with_;
  std::mutex mutex_;
  std::vector<double> parts_;  ///< progress of the present shot of each group
  double done_ = 0;
  command_line::progress progress_;
};

/// The sums of a migration and the number of shots in them, in a file that is replaced as a whole. If a run is
/// interrupted, either the previous file or the new file exists.
class sums_file {
 public:
  sums_file(std::string path, std::string mark);

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Reads the sums and returns the number of shots in them; 0 if the file does not exist. Throws bad_input for a file
  /// of another run or a damaged file.
  [[nodiscard]] std::int64_t load(sums& to, std::size_t cells) const;

  /// Throws std::runtime_error if the file cannot be written; the previous file then stays unchanged.
  void store(const sums& from, std::int64_t shots) const;

  /// Removes the file. Throws bad_input if the file does not hold the sums of a migration.
  void remove() const;

 private:
  [[nodiscard]] std::string head(std::int64_t shots, std::size_t cells) const;

  const std::string path_, mark_;
};

}  // namespace hpe::rtm
