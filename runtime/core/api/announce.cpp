// The C interface: work that waits in queues of the program.

#include "hpe/announce.h"

#include "runtime/core/api/api_guard.h"
#include "runtime/core/runtime.h"

using hpe::core::guarded;
using hpe::core::runtime;

hpeStatus hpeAnnounce(hpeAnnouncement* announcement, uint64_t homes, const hpeAccess* accesses, size_t count) {
  return guarded([&] {
    HPE_REQUIRE(announcement != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeAnnounce: the pointer for the handle is null");
    const auto named = hpe::core::require_accesses("work is announced", accesses, count);
    *announcement = runtime::instance().announced_work().announce(homes, named).release();
  });
}

hpeStatus hpeAcquire(hpeAnnouncement* announcement, const hpeAccess* accesses, size_t count) {
  return guarded([&] {
    HPE_REQUIRE(announcement != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeAcquire: the pointer for the handle is null");
    const auto named = hpe::core::require_accesses("work is announced", accesses, count);
    *announcement = runtime::instance().announced_work().acquire(named).release();
  });
}

hpeStatus hpeAnnouncedBegin(hpeAnnouncement announcement) {
  return guarded([&] {
    HPE_REQUIRE(announcement != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeAnnouncedBegin: the announcement is null");
    runtime::instance().announced_work().begin(*announcement);
  });
}

hpeStatus hpeAnnouncedEnd(hpeAnnouncement announcement) {
  return guarded([&] {
    HPE_REQUIRE(announcement != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeAnnouncedEnd: the announcement is null");
    const std::unique_ptr<hpeAnnouncement_st> ended(announcement);
    runtime::instance().announced_work().end(*ended);
  });
}

void hpeAnnouncedEndOnStream(void* /*stream*/, int /*status*/, void* announcement) {
  hpeAnnouncedEnd(static_cast<hpeAnnouncement>(announcement));
}
