#include "runtime/work/host_view.h"

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/touch.h"

namespace hpe::work {

using coherence::block_state;

namespace {

bool protect_view(void* view, std::size_t bytes, os::page_protection allowed) {
  const touch_watcher* const watcher = watcher_of_touches();
  const int level = allowed == os::page_protection::none ? 0 : allowed == os::page_protection::read ? 1 : 2;
  bool failed = false;
  if (watcher != nullptr && watcher->protects(view, bytes, level, failed)) return !failed;
  return os::protect(view, bytes, allowed);
}

}  // namespace

os::page_protection access_for(block_state state) noexcept {
  switch (state) {
    case block_state::shared: return os::page_protection::read;
    case block_state::host: return os::page_protection::read_write;
    case block_state::fresh:
    case block_state::device:
    case block_state::fetching: break;
  }
  return os::page_protection::none;
}

bool host_view::set(const coherence::region& r, coherence::block_run run, os::page_protection allowed) {
  const coherence::byte_range bytes = r.bytes_of(run);
  if (bytes.empty()) return true;
  counters::add(count_.protections, 1);
  return protect_view(r.layout.base + bytes.begin, bytes.size(), allowed);
}

std::span<std::byte> host_view::set_apart(const coherence::region& r, coherence::block_run run) noexcept {
  const coherence::byte_range bytes = r.bytes_of(run);
  const std::span<std::byte> view{r.layout.base + bytes.begin, bytes.size()};
  if (!view.empty()) os::set_apart(view.data(), view.size());
  return view;
}

void host_view::rejoin(std::span<std::byte> apart) noexcept {
  if (!apart.empty()) os::rejoin(apart.data(), apart.size());
}

void host_view::degrade(coherence::region& r) {
  log(log_level::warn,
      "the Linux kernel has no room for more mappings (vm.max_map_count); from now on the allocation of {} bytes at {} "
      "is "
      "kept "
      "coherent as a whole, which is slower",
      r.layout.bytes, static_cast<const void*>(r.layout.base));
  r.collapse();
  counters::add(count_.degraded, 1);
  HPE_REQUIRE(protect_view(r.layout.base, r.layout.extent, access_for(r.state(0))), HPE_ERROR_SYSTEM,
              "mprotect of a whole allocation failed for lack of mappings; raise vm.max_map_count");
}

}  // namespace hpe::work
