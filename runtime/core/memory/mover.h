#pragma once

#include "runtime/core/memory/backing.h"
#include "runtime/core/work/environment.h"
#include "runtime/node/exporter.h"

namespace hpe::core {

/// Gives regions another home. One address cannot be backed by two devices at once, so a region moves through the
/// shadow: what the home alone has is copied there, and all is the host's then. The next device work uploads it as it
/// uploads what the host wrote. Any thread.
class mover {
 public:
  mover(const environment& env, backing& homes, node::exporter& others) : env_(env), backing_(homes), others_(others) {}

  /// Under the region's mutex. Waits for what uses it. Throws HPE_ERROR_OUT_OF_MEMORY, HPE_ERROR_DEVICE_LOST, and
  /// HPE_ERROR_NOT_SUPPORTED while other processes use it, with the region where it was.
  void move(coherence::region& r, unsigned device) HPE_REQUIRES(r.mutex);

 private:
  environment env_;
  backing& backing_;
  node::exporter& others_;
};

}  // namespace hpe::core
