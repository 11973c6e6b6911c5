#include "interpose/soft/cudart/check/checking.h"

#include "hpe/check.h"
#include "interpose/check/message_uses.h"
#include "interpose/soft/cudart/check/checked_memory.h"
#include "interpose/soft/cudart/check/watched_memory.h"
#include "interpose/soft/cudart/device/context.h"
#include "runtime/base/error.h"
#include "runtime/base/options.h"
#include "runtime/check/host_watch.h"
#include "runtime/check/process_report.h"

namespace hpe::cudart {

namespace {

class cuda_report final : public check::report_source {
 public:
  /// Returns the form, and begins the report.
  const check::findings_report& start(const options& chosen) { return *(form_ = new check::findings_report(chosen)); }

  const check::findings_report* form() override { return form_; }
  std::vector<check::finding> finish() override {
    process().finish_work_untold();
    check::host_watch::of_process()->end_all();
    return checker()->finish();
  }

 private:
  const check::findings_report* form_ = nullptr;
};

// Never destroyed, because the exit handler uses it.
cuda_report& report() {
  static auto* const made = new cuda_report;
  return *made;
}

class checked_messages final : public interpose::message_uses {
  check::checker& started_checker() override {
    static_cast<void>(process().devices());  // starts the checker
    return *checker();
  }
  buffer_memory memory_at(const void* address) const override {
    if (!process().memory().find_also_of_hpe(address)) return buffer_memory::ordinary;
    if (!process().memory().find(address)) return buffer_memory::other;
    return has_pages_of_host(address) ? buffer_memory::pinned : buffer_memory::of_cuda;
  }
};

[[gnu::constructor]] void register_report() {
  check(::hpeAddToReport(&report()));
  if (!options::valid_in_environment().check) return;
  static auto* const messages = new checked_messages;  // never deleted: threads use it until the process ends
  messages->make_known();
}

}  // namespace

void start_checking(const options& chosen) {
  constexpr const char* why =
      "HPE_CHECK works neither with HPE_SPREAD nor with HPE_OVERSUBSCRIBE=on: hpe runs launches of such programs in "
      "parts, whose accesses it does not record for each launch";
  HPE_REQUIRE(!chosen.spread && chosen.oversubscribe != oversubscription::on, HPE_ERROR_NOT_SUPPORTED, "{}", why);
  // Memory of hpeMalloc, and variables of modules, of which the memory table knows only those that the program has
  // asked for. The bytes behind an allocation of the program are memory of hpe too.
  const auto is_other = [](std::uint64_t address) {
    const auto found = process().memory().find_also_of_hpe(reinterpret_cast<const void*>(address));
    if (!found || is_kept_memory(found->base)) return false;
    const auto known = process().memory().find(found->base);
    return !known || known->kind == allocation_kind::variable || known->kind == allocation_kind::managed_variable;
  };
  const check::findings_report& form = report().start(chosen);
  // Neither object is ever deleted, because threads use them until the process ends.
  start_watching();
  set_checker(new check::checker(form.ignored(), is_fresh_memory, is_other,
                                 [] { return check::host_watch::of_process()->take_touches(); }),
              {fill_with_fresh_value, watch, [] { check::host_watch::of_process()->end_waited(*checker()); }});
}

std::vector<check::finding> take_findings() {
  return checker() != nullptr ? checker()->take() : std::vector<check::finding>();
}

}  // namespace hpe::cudart
