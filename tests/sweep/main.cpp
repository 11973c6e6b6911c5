// --every N: only every N-th call fails. --most N: in each scenario, about N calls fail with each kind of failure,
// evenly distributed. --call N: the sweep begins with call N. If each failure needs a new process (subject::starts, the
// loss of a device), only every third of these calls fails, and with --most about N / 3 calls. Of failing allocations,
// only every fifth fails, except with --most. --all: without these exceptions, all calls fail, which takes hours.
// --stacks: the first and the last call with each call stack fail, which leaves out the repeated calls of loops.
// Without the name of a scenario, all scenarios are run.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tests/sweep/sweep.h"

namespace {

using namespace sweep;

struct wishes {
  std::vector<std::string> scenarios;
  std::optional<std::string> kind;
  std::optional<order> first;
  std::uint64_t every = 1;
  std::uint64_t most = 0;
  std::uint64_t call = 1;
  bool all = false;
  bool by_stack = false;
  bool verbose = false;
};

wishes read(int count, char** arguments) {
  wishes result;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const char* const next = i + 1 < count ? arguments[i + 1] : "";
    if (word == "--kind") result.kind = next;
    if (word == "--every") result.every = std::max(1UL, std::strtoul(next, nullptr, 10));
    if (word == "--most") result.most = std::strtoul(next, nullptr, 10);
    if (word == "--call") result.call = std::max(1UL, std::strtoul(next, nullptr, 10));
    if (word == "--order") result.first = std::strcmp(next, "host") == 0 ? order::host_first : order::devices_first;
    if (!word.starts_with("--"))
      result.scenarios.push_back(word);
    else if (word == "--all")
      result.all = true;
    else if (word == "--stacks")
      result.by_stack = true;
    else if (word == "--verbose")
      result.verbose = true;
    else
      ++i;
  }
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3 && std::strcmp(arguments[1], "--other") == 0) return other_process(arguments[2]);
  const wishes wanted = read(count, arguments);
  tally all;
  std::size_t ran = 0;
  for (const subject& s : subjects()) {
    const auto is_meant = [&](const std::string& word) {
      return word == s.name || (word.ends_with('.') && std::string(s.name).starts_with(word));
    };
    if (const auto& names = wanted.scenarios; !names.empty() && std::ranges::none_of(names, is_meant)) continue;
    ++ran;
    for (const failure kind : kinds_of_failure()) {
      if (wanted.kind && *wanted.kind != name_of(kind)) continue;
      for (const order first : orders()) {
        if (wanted.first ? first != *wanted.first : s.starts && first != order::host_first) continue;
        // The sweep tests fewer failures of kinds that need a new process for each failure, and fewer failures of
        // allocations, because there are very many allocations.
        const bool costly = s.starts || kind == failure::loss_before || kind == failure::loss_after;
        const bool many = kind == failure::allocation || kind == failure::allocations;
        const std::uint64_t stride = wanted.every * (wanted.all ? 1 : costly ? 3 : many ? 5 : 1);
        const std::uint64_t offset = first == order::devices_first ? stride / 2 : 0;
        const std::uint64_t most = costly ? (wanted.most + 2) / 3 : wanted.most;
        const tally t = drive({s.name, kind, first, wanted.call + (wanted.call == 1 ? offset : 0), stride},
                              {most, wanted.by_stack}, wanted.verbose);
        all += t;
        std::printf("%-18s %-12s %-13s %5lu calls, %4lu failed, %3lu findings, %lu hangs, %lu crashes\n", s.name,
                    name_of(kind), first == order::host_first ? "host first" : "devices first", t.calls, t.failures,
                    t.findings, t.hangs, t.crashes);
        std::fflush(stdout);
      }
    }
  }
  std::printf("%zu scenarios, %lu calls, %lu failures, %lu findings, %lu hangs, %lu crashes\n", ran, all.calls,
              all.failures, all.findings, all.hangs, all.crashes);
  return ran == 0 || all.findings + all.hangs + all.crashes != 0 ? 1 : 0;
}
