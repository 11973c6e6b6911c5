#pragma once

/// The predictions of both models for several numbers of devices and topologies.

#include <optional>
#include <string>
#include <vector>

#include "apps/predict/demand.h"
#include "apps/predict/machine_profile.h"
#include "apps/predict/specification.h"

namespace hpe::predict {

enum class model { paper, modern };
[[nodiscard]] const char* name_of(model which);

struct point {
  int devices;
  topology where;
  model which;
  estimate time;
  std::optional<double> unchanged;  ///< seconds on the machine without the changes of --what-if
  double speed_up;    ///< relative to the smallest possible number of devices, by the same model in the same topology
  bool extrapolated;  ///< the topology is shared, and the machine has fewer devices
};

struct predictions {
  std::string specification, machine, what_if;
  std::vector<point> points;

  /// Returns the fastest point of a model; of equally fast points, the one with the fewest devices. Each model has at
  /// least one point.
  [[nodiscard]] const point& best(model which) const;
};

struct range {
  int first, last;
};

/// Returns the predictions of both models. Throws bad_input if the application can run on no number of devices in the
/// range, or if a model throws bad_input.
[[nodiscard]] predictions predict(const specification& s, const machine_profile& m, range devices,
                                  const std::vector<topology>& where, const std::string& what_if);

/// Return the predictions as a readable table, as comma-separated values, as JSON (docs/schemas/predictions.json), and
/// as charts (docs/schemas/charts.json).
[[nodiscard]] std::string as_table(const predictions& all);
[[nodiscard]] std::string as_csv(const predictions& all);
[[nodiscard]] std::string as_json(const predictions& all);
[[nodiscard]] std::string as_charts(const predictions& all);

}  // namespace hpe::predict
