#pragma once

/// The choice of a method to keep the source's field, from the memory and disk space that each method needs on this
/// machine, and from the time of a shot.

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

/// A method to keep the source's field, and its costs.
struct keep_option {
  keeping how;           ///< a method and a place, neither of them automatic
  double on_device = 0;  ///< bytes on the device that needs the most
  double on_host = 0;    ///< bytes of host memory
  double on_disk = 0;    ///< bytes on disk
  double seconds = 0;    ///< time of a shot, predicted from measured rates; 0 without rates
  bool as_requested = true;
  std::string missing;  ///< the reason why the method is not possible, for messages; empty: the method is possible
};

/// Measured rates of this machine for one grid; 0: not measured.
struct keep_rates {
  double step = 0;      ///< seconds of a time step
  double keep = 0;      ///< seconds to keep or correlate a field
  double boundary = 0;  ///< seconds to copy the cells around the model
  double link = 0;      ///< bytes a second between devices and host
  double disk = 0;      ///< bytes a second to the folder
  double pack = 0;      ///< bytes a second that the host packs with zfp
};

/// Measures the rates by a few steps, copies and writes, which take about a second. The caller must then reset the
/// propagator. The stack does not change.
[[nodiscard]] keep_rates measure_rates(propagator<float>& wave, const medium<float>& m, const stack<float>& onto,
                                       const history_shape& shape, const keeping& wanted);

/// Returns all methods with their costs. `missing` is set for methods that need more memory or disk space than is free.
[[nodiscard]] std::vector<keep_option> keep_options(const history_shape& shape, const keeping& wanted,
                                                    const keep_rates& rates);

/// Returns the best of the requested methods that are possible: the fastest one, or the first one if there are no
/// rates. `automatic` does not choose the method `boundary`, because this method changes the last bits of the image.
/// Throws bad_input if no requested method is possible.
[[nodiscard]] const keep_option& best_of(const std::vector<keep_option>& options, const keeping& wanted);

/// Chooses a method and a place. Measures rates if several of the requested methods and places are possible, unless
/// fields in device memory are one of them.
[[nodiscard]] keeping choose_keeping(propagator<float>& wave, const medium<float>& m, const stack<float>& onto,
                                     const history_shape& shape, const keeping& wanted);

/// Returns a table of all methods with their memory, disk space and time, and the chosen method.
[[nodiscard]] std::string explain_keeping(const std::vector<keep_option>& options, const keeping& wanted,
                                          const history_shape& shape);

/// Returns a name for messages, for example "fields on disk".
[[nodiscard]] std::string name_of(const keeping& k);

}  // namespace hpe::rtm
