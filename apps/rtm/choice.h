#pragma once

/// The choice among the ways to keep the source's field: the memory and disk that each needs on this machine, and the
/// time of a shot.

#include <string>
#include <utility>
#include <vector>

#include "apps/rtm/history.h"

namespace hpe::rtm {

/// The names of methods and places on command lines and in survey files.
inline const std::vector<std::pair<std::string, keep_method>> keep_methods{{"auto", keep_method::automatic},
                                                                           {"fields", keep_method::fields},
                                                                           {"boundary", keep_method::boundary},
                                                                           {"checkpoints", keep_method::checkpoints}};
inline const std::vector<std::pair<std::string, keep_place>> keep_places{{"auto", keep_place::automatic},
                                                                         {"device", keep_place::device},
                                                                         {"host", keep_place::host},
                                                                         {"disk", keep_place::disk}};

/// A way to keep the source's field, and its costs.
struct keep_option {
  keeping how;           ///< neither how nor where is automatic
  double on_device = 0;  ///< bytes of the device that needs most
  double on_host = 0;    ///< bytes
  double on_disk = 0;    ///< bytes
  double seconds = 0;    ///< of a shot, predicted from measured rates; 0 without rates
  bool as_requested = true;
  std::string missing;  ///< the memory that is not there; empty: it is possible
};

/// Rates of this machine for one grid, measured; 0: not measured.
struct keep_rates {
  double step = 0;      ///< seconds of a time step
  double keep = 0;      ///< seconds of keeping or correlating a field
  double boundary = 0;  ///< seconds of copying the cells around the model
  double link = 0;      ///< bytes a second between devices and host
  double disk = 0;      ///< bytes a second to the folder
  double pack = 0;      ///< bytes a second that the host packs with zfp
};

/// Runs a few steps, copies and writes, which takes about a second. Afterwards the propagator must be reset, and the
/// stack is unchanged.
[[nodiscard]] keep_rates measure_rates(propagator<float>& wave, const medium<float>& m, const stack<float>& onto,
                                       const history_shape& shape, const keeping& wanted);

/// All ways, for the memory that is free now.
[[nodiscard]] std::vector<keep_option> keep_options(const history_shape& shape, const keeping& wanted,
                                                    const keep_rates& rates);

/// The best of the possible ways that were requested: the first one if there are no rates, else the fastest.
/// `automatic` does not choose a boundary, whose image has other last bits. Throws bad_input if none is possible.
[[nodiscard]] const keep_option& best_of(const std::vector<keep_option>& options, const keeping& wanted);

/// Chooses, and measures rates if not all fields fit into the memory of devices.
[[nodiscard]] keeping choose_keeping(propagator<float>& wave, const medium<float>& m, const stack<float>& onto,
                                     const history_shape& shape, const keeping& wanted);

/// A table of all ways with memory, disk and time, and the one that is chosen.
[[nodiscard]] std::string explain_keeping(const std::vector<keep_option>& options, const keeping& wanted,
                                          const history_shape& shape);

/// For example "fields on disk".
[[nodiscard]] std::string name_of(const keeping& k);

}  // namespace hpe::rtm
