#include "apps/scan/scan_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>

#include "apps/scan/choice/tuning_cache.h"
#include "apps/scan/team/single_pass.h"
#include "apps/scan/team/three_stages.h"

namespace hpe::scan {

namespace {

double seconds(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void check_sizes(const batch& work, std::size_t element_size) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (work.length != 0 && work.problems > most / work.length / element_size)
    throw error(HPE_ERROR_INVALID_ARGUMENT,
                fmt::format("{} problems of {} elements of {} bytes have more than 2^63 - 1 bytes", work.problems,
                            work.length, element_size));
}

}  // namespace

std::string default_cache() {
  const auto value = [](const char* name) -> std::string {
    const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread sets variables
    return text == nullptr ? "" : text;
  };
  if (std::string own = value("HPE_SCAN_CACHE"); !own.empty()) return own;
  if (const std::string xdg = value("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/hpe/scan";
  if (const std::string home = value("HOME"); !home.empty()) return home + "/.cache/hpe/scan";
  return "";
}

plan::plan(const operation& what, const batch& work, wishes wished)
    : what_(what),
      work_(work),
      wished_(std::move(wished)),
      kernels_(load_kernels(what)),
      devices_(inspect(wished_.devices)),
      choice_(choose(work, devices_, kernels_.single_pass.has_value(), wished_.how, wished_.spread)) {
  check_sizes(work, what.element_size);
  if (wished_.iterations != 0 && !std::has_single_bit(wished_.iterations))
    throw error(HPE_ERROR_INVALID_ARGUMENT,
                fmt::format("K = {}: the number of iterations in a chunk must be a power of two", wished_.iterations));
  if (work.length == 0) return;
  for (const team& t : choice_.teams) {
    std::vector<device_traits> members;
    for (const int d : t.devices) members.push_back(devices_[d]);
    const batch share{work.length, t.count, work.inclusive};
    if (choice_.how == algorithm::single_pass) {
      teams_.push_back(std::make_unique<single_pass>(kernels_, share, std::move(members)));
      continue;
    }
    auto made = std::make_unique<three_stages>(kernels_, share, std::move(members));
    if (wished_.iterations != 0) made->set_iterations(wished_.iterations);
    teams_.push_back(std::move(made));
  }
}

std::string plan::key() const {
  return fmt::format("{} N={} G={} {} {} x{} {}", what_.suffix, work_.length, work_.problems, name_of(choice_.spread),
                     devices_.front().units, devices_.size(), devices_.front().name);
}

void plan::run(const void* input, void* output) {
  const std::size_t bytes = work_.length * work_.problems * what_.element_size;
  if (bytes == 0) return;
  const auto from = reinterpret_cast<std::uintptr_t>(input), to = reinterpret_cast<std::uintptr_t>(output);
  if (input == nullptr || output == nullptr)
    throw error(HPE_ERROR_INVALID_ARGUMENT, "a scan needs an input and an output, but one of them is null");
  if (from % what_.element_size != 0 || to % what_.element_size != 0)
    throw error(HPE_ERROR_INVALID_ARGUMENT,
                fmt::format("input and output of a scan must be aligned to the size of an element, {} bytes",
                            what_.element_size));
  if (from != to && from < to + bytes && to < from + bytes)
    throw error(HPE_ERROR_INVALID_ARGUMENT,
                "input and output of a scan overlap in part; they must be identical or disjoint");
  if (choice_.how == algorithm::three_stages && wished_.iterations == 0 && !searched_) search(input, output);
  queue(input, output);
}

void plan::queue(const void* input, void* output) {
  for (std::size_t t = 0; t < teams_.size(); ++t) {
    const std::size_t offset = choice_.teams[t].first * work_.length * what_.element_size;
    teams_[t]->queue({static_cast<const std::byte*>(input) + offset, static_cast<std::byte*>(output) + offset});
  }
}

// Searches for the fastest K. All teams use the same K, because the teams have about equal numbers of problems.
void plan::search(const void* input, void* output) {
  std::vector<three_stages*> teams;
  for (const auto& t : teams_) teams.push_back(static_cast<three_stages*>(t.get()));
  const auto set = [&](std::uint64_t k) {
    for (three_stages* t : teams) t->set_iterations(k);
  };
  const tuning_cache cache(wished_.cache);
  const std::vector<std::uint64_t>& candidates = teams.front()->candidates();
  if (const auto kept = cache.find(key());
      kept && std::find(candidates.begin(), candidates.end(), *kept) != candidates.end()) {
    set(*kept);
    search_report_ = fmt::format("K = {} was found before and kept in {}\n", *kept, wished_.cache);
    searched_ = true;
    return;
  }
  if (input == output) {
    search_report_ = "K follows from the premises: a scan in place overwrites its input, so a search is impossible\n";
    return;
  }
  std::uint64_t best = candidates.front();
  double least = std::numeric_limits<double>::infinity();
  search_report_ = "search:";
  for (const std::uint64_t k : candidates) {
    set(k);
    queue(input, output);
    synchronize();
    const double time = seconds([&] {
      queue(input, output);
      synchronize();
    });
    search_report_ += fmt::format(" K = {}: {:.3f} ms;", k, 1e3 * time);
    if (time < least) {
      least = time;
      best = k;
    }
  }
  search_report_.back() = '\n';
  set(best);
  cache.keep(key(), best);
  searched_ = true;
}

placement plan::where() const {
  std::vector<int> numbers;
  for (const device_traits& d : devices_) numbers.push_back(d.number);
  if (numbers.size() == 1) return on_device(numbers.front());
  return choice_.how == algorithm::single_pass && choice_.spread == split::mps ? cyclic_distribution(numbers)
                                                                               : block_distribution(numbers);
}

std::string plan::explain() const {
  std::string text =
      fmt::format("{} problem{} of {} elements of {} bytes, {}, {}\n", work_.problems, work_.problems == 1 ? "" : "s",
                  work_.length, what_.element_size, work_.inclusive ? "inclusive" : "exclusive", what_.suffix);
  text += fmt::format("spread: {}; algorithm: {}\n", name_of(choice_.spread), name_of(choice_.how));
  for (const std::string& reason : choice_.reasons) text += "  " + reason + "\n";
  for (std::size_t t = 0; t < teams_.size(); ++t) {
    if (teams_.size() > 1)
      text += fmt::format("team {}: {} problems from {}\n", t, choice_.teams[t].count, choice_.teams[t].first);
    text += teams_[t]->explain();
  }
  return text + search_report_;
}

}  // namespace hpe::scan
