// The list of libhpe.so is the one of the process: hpe's other libraries add their checkers to this list
// (hpeAddToReport).

#include "runtime/check/process_report.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "runtime/base/log.h"

namespace hpe::check {

namespace {

class report_sources {
 public:
  // Never destroyed, because the exit handler uses it.
  static report_sources& of_process() {
    static auto* const all = new report_sources;
    return *all;
  }

  void add(report_source& from, bool is_first) { (is_first ? first_ : others_)[count_++ % most].store(&from); }

  /// Calls visit(source) for each checker. Takes no lock and allocates no memory, for children of fork.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const list* const each : {&first_, &others_})
      for (const auto& entry : *each)
        if (report_source* const source = entry.load()) visit(*source);
  }

 private:
  static constexpr unsigned most = 8;  // each library of hpe adds at most two checkers
  using list = std::array<std::atomic<report_source*>, most>;

  std::atomic<unsigned> count_{0};
  list first_{}, others_{};
};

struct collected_findings {
  const findings_report* form = nullptr;
  std::vector<finding> findings;
  std::vector<std::string_view> notes;
};

// Leaves out the checkers of a parent process.
collected_findings collect() {
  collected_findings result;
  report_sources::of_process().for_each([&](report_source& each) {
    const findings_report* const form = each.form();
    if (form == nullptr || !form->is_of_this_process()) return;
    result.form = form;
    std::vector<finding> its = each.finish();
    std::move(its.begin(), its.end(), std::back_inserter(result.findings));
    if (!each.note().empty()) result.notes.push_back(each.note());
  });
  return result;
}

// The process that has written its report: the child of a fork is another one.
std::atomic<::pid_t> reported_by{0};

// glibc runs the remaining exit handlers, and then ends the process with the other status.
void end_process(int status, void* /*unused*/) {
  if (const int other = end_report(status); other != status) std::exit(other);
}

// The library's constructor registers the handler before the program's code runs. So the handler runs after the
// program's own exit handlers and the destructors of its static objects.
[[gnu::constructor]] void register_end() { ::on_exit(end_process, nullptr); }

}  // namespace

void add_to_report(report_source& from, bool is_first) { report_sources::of_process().add(from, is_first); }

bool has_report() noexcept {
  bool result = false;
  report_sources::of_process().for_each([&](report_source& each) {
    const findings_report* const form = each.form();
    result = result || (form != nullptr && form->is_of_this_process());
  });
  return result && reported_by != ::getpid();
}

int end_report(int status) noexcept {
  if (reported_by.exchange(::getpid()) == ::getpid()) return status;
  try {
    const collected_findings all = collect();
    if (all.form != nullptr) return all.form->end_process(status, all.findings, all.notes);
  } catch (const std::exception& caught) {
    log(log_level::error, "HPE_CHECK: no report was written: {}", caught.what());
  }
  return status;
}

}  // namespace hpe::check
