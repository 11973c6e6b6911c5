#pragma once

#include "runtime/base/counters.h"
#include "runtime/core/memory/backing.h"
#include "runtime/memory/granule_table.h"
#include "runtime/node/exporter.h"
#include "runtime/work/block_copies.h"

namespace hpe::core {

/// Gives regions another home. One address cannot be backed by two devices at once, so a region moves through the
/// shadow: what the home alone has is copied there, and all is the host's then. The next device work uploads it as it
/// uploads what the host wrote. Any thread.
class mover {
 public:
  mover(const work::resources& with, memory::granule_table& granules, counters& count, backing& homes,
        node::exporter& others)
      : with_(with), granules_(granules), count_(count), backing_(homes), others_(others) {}

  /// Under the region's mutex. Waits for what uses it. Throws HPE_ERROR_OUT_OF_MEMORY, HPE_ERROR_DEVICE_LOST, and
  /// HPE_ERROR_NOT_SUPPORTED while other processes use it, with the region where it was.
  void move(coherence::region& r, unsigned device) HPE_REQUIRES(r.mutex);

 private:
  const work::resources with_;
  memory::granule_table& granules_;
  counters& count_;
  backing& backing_;
  node::exporter& others_;
};

}  // namespace hpe::core
