// Each of hpe's libraries that contains this file has a list of its own.

#include "runtime/check/process_report.h"

#include <stdlib.h>

#include <atomic>
#include <iterator>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/thread_safety.h"

namespace hpe::check {

namespace {

class report_sources {
 public:
  // Never destroyed, because the exit handler uses it.
  static report_sources& of_process() {
    static auto* const all = new report_sources;
    return *all;
  }

  void add(report_source& from) {
    const lock_guard lock(mutex_);
    all_.push_back(&from);
  }
  [[nodiscard]] std::vector<report_source*> all() {
    const lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutex mutex_;
  std::vector<report_source*> all_ HPE_GUARDED_BY(mutex_);
};

struct collected_findings {
  const findings_report* form = nullptr;
  std::vector<finding> findings;
  std::vector<std::string_view> notes;
};

// Leaves out the checkers of a parent process.
collected_findings collect() {
  collected_findings result;
  for (report_source* const each : report_sources::of_process().all()) {
    const findings_report* const form = each->form();
    if (form == nullptr || !form->is_of_this_process()) continue;
    result.form = form;
    std::vector<finding> its = each->finish();
    std::move(its.begin(), its.end(), std::back_inserter(result.findings));
    if (!each->note().empty()) result.notes.push_back(each->note());
  }
  return result;
}

std::atomic<bool> others_report{false};

void end_process(int status, void* /*unused*/) {
  if (others_report) return;
  try {
    const collected_findings all = collect();
    if (all.form != nullptr) all.form->end_process(status, all.findings, all.notes);
  } catch (const std::exception& caught) {
    log(log_level::error, "HPE_CHECK: no report was written: {}", caught.what());
  }
}

// The library's constructor registers the handler before the program's code runs. So the handler runs after the
// program's own exit handlers and the destructors of its static objects.
[[gnu::constructor]] void register_end() { ::on_exit(end_process, nullptr); }

}  // namespace

void add_to_report(report_source& from) { report_sources::of_process().add(from); }

std::vector<finding> take_reported() {
  others_report = true;
  return collect().findings;
}

}  // namespace hpe::check
