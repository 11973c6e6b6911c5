#pragma once

/// The copies of a region's blocks between shadow and home: uploads (from shadow to home) and downloads (from home to
/// shadow). Launches, lanes and migration copy blocks only through these functions.

#include "runtime/transfer/engine.h"
#include "runtime/work/accesses.h"
#include "runtime/work/host_view.h"

namespace hpe::work {

class residency;
class host_spill;

/// The objects that device work on regions needs. The runtime owns these objects and outlives all users of this struct.
struct resources {
  device::device_set& devices;
  transfer::engine& engine;
  host_view& views;
  residency& room;
  host_spill& host;
};

/// Queues the upload of blocks in state host, to run after all work that uses the home. The view of these blocks must
/// be closed to writers. Each block becomes shared when its upload is queued; if queuing throws, the later blocks stay
/// in state host. A region with a single copy has nothing to upload; only the states change. Returns the timepoint of
/// each queued upload, so that the caller can check each upload for failure. The caller holds the region's mutex.
std::vector<timepoint> upload(const resources& with, coherence::region& r, coherence::block_run run,
                              device::priority level) HPE_REQUIRES(r.mutex);

/// For work that overwrites rows of a range (device_access::rows): uploads the other bytes of the blocks in state host
/// that are entirely in the range. These blocks keep their state until the work is queued. Returns the timepoints of
/// the uploads. The caller holds the region's mutex.
std::vector<timepoint> upload_between_rows(const resources& with, const device_access& access)
    HPE_REQUIRES(access.region->mutex);

/// Uploads the bytes of a range that are newer on the host, for device work that reads them, and perhaps writes them:
/// makes their view readable, or closes it. Leaves out bytes that are only in the spill file, and everything if the
/// region is degraded or the operating system allows no more mappings (submissions handle these cases). Returns the
/// timepoint of the last upload; none() if there is none. The caller holds the region's mutex.
timepoint upload_newer(const resources& with, coherence::region& r, coherence::byte_range bytes, bool write)
    HPE_REQUIRES(r.mutex);

/// Whether work needs bytes whose only copy is in the spill file (host_spill). The caller holds the region's mutex.
[[nodiscard]] bool needs_file(const device_access& access) HPE_REQUIRES(access.region->mutex);
/// Uploads the bytes that work needs and whose only copy is in the spill file.
void upload_from_file(const resources& with, const device_access& access);

/// Queues the download of blocks, and appends the timepoint of each queued download to `copies`, so that the caller can
/// check each download for failure. The blocks' view must be closed and the home's writers must have finished. If
/// download throws, `copies` contains the timepoints of the downloads that were queued. The caller holds the region's
/// mutex.
void download(const resources& with, coherence::region& r, coherence::block_run run, device::priority level,
              std::vector<timepoint>& copies) HPE_REQUIRES(r.mutex);

/// Copies to the shadow all bytes that only homes have. Waits for all work that uses the region, and for the copies.
/// Afterwards every block that is not fresh is in state host; views do not change. If bring_to_host throws, no state
/// has changed. The caller holds the region's mutex.
void bring_to_host(const resources& with, coherence::region& r) HPE_REQUIRES(r.mutex);

/// Makes a region one block, because the operating system allows no more mappings. Call this for an access by the host:
/// afterwards the block is in state host, and its view is writable. The caller holds the region's mutex.
void degrade_to_host(const resources& with, coherence::region& r) HPE_REQUIRES(r.mutex);
/// Like degrade_to_host, for device work: uploads the blocks in state host. The one block is then in state device, and
/// its view is closed. Returns the timepoints of the uploads.
std::vector<timepoint> degrade_to_homes(const resources& with, coherence::region& r) HPE_REQUIRES(r.mutex);

/// Makes the home's copy of these bytes, which another process may have written, the only valid copy, except in blocks
/// in state host. Throws HPE_ERROR_SYSTEM if the operating system allows no more mappings and the region cannot become
/// one block (degrade_to_homes). The caller holds the region's mutex.
void drop_host_copy(const resources& with, coherence::region& r, coherence::byte_range bytes) HPE_REQUIRES(r.mutex);

}  // namespace hpe::work
