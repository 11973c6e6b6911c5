#include "runtime/spread/decision.h"

#include <algorithm>

namespace hpe::spread {

bool decision::gives_homes() const {
  return std::any_of(arrays.begin(), arrays.end(), [](const array_decision& a) {
    return a.move_to.how != array_placement::kind::stay && a.move_to.how != array_placement::kind::replicated;
  });
}

bool decision::uses_copies() const {
  return std::any_of(arrays.begin(), arrays.end(), [](const array_decision& a) { return a.use_replica; });
}

}  // namespace hpe::spread
