#pragma once

/// An application in the form that `hpe predict` reads: a TOML file of formulas, which docs/predict.md describes.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/predict/demand.h"
#include "apps/predict/formula_value.h"

namespace hpe::predict {

/// A formula, and its place in the file for error messages.
struct formula {
  std::string text;
  std::string place;  ///< file:line: field

  /// Throws bad_input with a message that begins with the place.
  [[nodiscard]] double value(const variables& known) const;
  [[nodiscard]] double at_least(double least, const variables& known) const;
  [[nodiscard]] double above_zero(const variables& known) const;
};

struct transfer_formulas {
  std::string name;
  direction where;
  formula bytes, pieces, disk_passes;
  bool pinned, each_iteration, overlap;
};

struct exchange_formulas {
  std::string name;
  pattern how;
  formula bytes, members, rounds, copied, kernel_bytes;
  bool each_iteration, overlap;
};

class specification {
 public:
  /// Throws bad_input, with file, line and field, if the file is not a specification.
  [[nodiscard]] static specification read(const std::string& file);
  [[nodiscard]] static specification parse(const std::string& text, const std::string& file);

  /// Changes the values of sizes: "scale=2,width=2048". Throws bad_input for a size that the specification does not
  /// have.
  void set(const std::string& assignments);

  /// Returns the work of a run on this number of devices; nullopt if the application cannot run on that number. Throws
  /// bad_input with the place of a formula that has no value or an invalid value.
  [[nodiscard]] std::optional<demand> on(int all, topology where) const;

  std::string name, about;
  std::string source;   ///< source of the figures
  std::string assumed;  ///< figures without a source; empty: none

  std::vector<std::pair<std::string, formula>> sizes;  ///< in the order of the file; a size may use earlier sizes
  std::optional<formula> possible;                     ///< nonzero if the application can use this number of devices
  formula devices;                                     ///< number of devices that take part
  formula iterations, units, granule, block, launches, reference_seconds, reference_units, reference_bytes, cpu_seconds;
  formula host_bytes, device_bytes;
  std::vector<transfer_formulas> transfers;
  std::vector<exchange_formulas> exchanges;

 private:
  /// Returns the values of the variables P, shared and hosts, and of all sizes.
  [[nodiscard]] variables variables_on(int devices, topology where) const;
};

}  // namespace hpe::predict
