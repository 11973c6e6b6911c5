#include "apps/predict/trace_specification.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace hpe::predict {

namespace {

/// An operation of a device. Times are microseconds.
struct event {
  std::string kind, name;
  double begin, end, bytes;
};

using events = std::vector<event>;

constexpr const char* without_exchange =
    "\n# A trace of one device does not show what several devices would exchange. For rims that go to both "
    "neighbours:\n"
    "# [[exchange]]\n# name = \"rims\"\n# pattern = \"halo\"\n# bytes = 65536\n# per = \"iteration\"\n";

/// Returns the time in which at least one of the events runs.
double covered(events all) {
  std::sort(all.begin(), all.end(), [](const event& a, const event& b) { return a.begin < b.begin; });
  double sum = 0, until = 0;
  for (const event& e : all) {
    sum += std::max(0.0, e.end - std::max(e.begin, until));
    until = std::max(until, e.end);
  }
  return sum;
}

events joined(events a, const events& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

template <class Condition>
events those(const events& all, const Condition& wanted) {
  events found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found), wanted);
  return found;
}

/// Returns the trace's numbers of the processes that represent devices.
std::set<double> devices_of(const nlohmann::json& entries) {
  std::set<double> devices;
  for (const auto& e : entries)
    if (e.at("ph") == "M" && e.at("name") == "process_name" &&
        e.at("args").at("name").get<std::string>().starts_with("device "))
      devices.insert(e.at("pid").get<double>());
  return devices;
}

/// Returns the events of the device that ran kernels. Throws bad_input if no device or several devices ran kernels.
events events_of_device(const nlohmann::json& entries, const std::string& file) {
  const std::set<double> devices = devices_of(entries);
  std::map<double, events> by_device;
  std::set<double> with_kernels;
  for (const auto& e : entries) {
    const double process = e.at("pid").get<double>();
    if (e.at("ph") != "X" || !devices.contains(process)) continue;
    const double begin = e.at("ts").get<double>();
    by_device[process].push_back({e.at("cat").get<std::string>(), e.at("name").get<std::string>(), begin,
                                  begin + e.at("dur").get<double>(), e.at("args").at("bytes").get<double>()});
    if (e.at("cat") == "kernel") with_kernels.insert(process);
  }
  if (with_kernels.size() != 1)
    throw bad_input(fmt::format("{}: kernels ran on {} devices; a specification is made from a run on one device", file,
                                with_kernels.size()));
  return by_device.at(*with_kernels.begin());
}

/// Returns the number of launches of the most frequent kernel.
double iterations_of(const events& kernels) {
  std::map<std::string, int> launches;
  for (const event& e : kernels) ++launches[e.name];
  int most = 0;
  for (const auto& [name, count] : launches) most = std::max(most, count);
  return most;
}

/// Returns the kernels without the work that only the first launch of a kernel did, such as making a plan of
/// transforms. If the first launch of a kernel took longer than all its later launches together, the first launch gets
/// the median time of the later launches.
events without_preparation(events kernels) {
  std::map<std::string, std::vector<event*>> by_name;
  for (event& e : kernels) by_name[e.name].push_back(&e);
  for (auto& [name, launches] : by_name) {
    if (launches.size() < 3) continue;
    const auto begins_earlier = [](const event* a, const event* b) { return a->begin < b->begin; };
    std::iter_swap(launches.begin(), std::min_element(launches.begin(), launches.end(), begins_earlier));
    std::vector<double> others;
    for (const event* e : std::span(launches).subspan(1)) others.push_back(e->end - e->begin);
    event& first = *launches.front();
    if (first.end - first.begin <= std::accumulate(others.begin(), others.end(), 0.0)) continue;
    std::nth_element(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2), others.end());
    first.begin = first.end - others[others.size() / 2];
  }
  return kernels;
}

std::string transfer_text(const std::string& direction, const events& copies, const events& kernels,
                          double iterations) {
  if (copies.empty()) return "";
  double bytes = 0;
  for (const event& e : copies) bytes += e.bytes;
  const double alone = covered(joined(copies, kernels)) - covered(kernels);
  return fmt::format(
      "\n[[transfer]]\n"
      "name = \"copies {0}\"\n"
      "direction = \"{0}\"\n"
      "bytes = \"work * {1} / P\"\n"
      "pieces = \"{2} / P\"\n"
      "per = \"iteration\"\n"
      "pinned = true\n"
      "overlap = {3}   # no kernel ran in {4:.0f} % of the time of these copies\n",
      direction, bytes / iterations, static_cast<double>(copies.size()) / iterations, alone < covered(copies) / 2,
      100 * alone / std::max(covered(copies), 1e-9));
}

std::string describe(const events& all, const std::string& file) {
  constexpr double micro = 1e-6;
  const events kernels = without_preparation(those(all, [](const event& e) { return e.kind == "kernel"; }));
  double first = kernels.front().begin, last = 0;
  for (const event& e : kernels) {
    first = std::min(first, e.begin);
    last = std::max(last, e.end);
  }
  const events run = joined(
      those(all, [&](const event& e) { return e.kind != "kernel" && e.begin >= first && e.end <= last; }), kernels);
  const auto copies = [&](const char* name) { return those(run, [&](const event& e) { return e.name == name; }); };
  const double iterations = iterations_of(kernels), idle = last - first - covered(run);
  return fmt::format(
             "name = \"{0}\"\n"
             "source = \"a trace of {1:.6g} s on one device, from its first kernel to its last\"\n"
             "\n[sizes]\nwork = 1   # factor: 1 is the work of the traced run\n"
             "\n[work]\n"
             "iterations = {2}\n"
             "units = \"work * 1e9\"\n"
             "reference_units = 1e9\n"
             "reference_seconds = {3:.9g}\n"
             "cpu_seconds = {4:.9g}   # the idle time of the device, which includes waits for launches\n"
             "launches = 0\n",
             file, (last - first) * micro, iterations, covered(kernels) / iterations * micro,
             std::max(0.0, idle) / iterations * micro) +
         transfer_text("to_device", copies("copy to device"), kernels, iterations) +
         transfer_text("to_host", copies("copy to host"), kernels, iterations) + without_exchange;
}

}  // namespace

std::string specification_of_trace(const std::string& text, const std::string& file) {
  try {
    const nlohmann::json trace = nlohmann::json::parse(text);
    if (trace.at("otherData").at("events_without_room").get<double>() > 0)
      throw bad_input(file + ": the trace is incomplete, because it had no space for all events; trace a shorter run");
    return describe(events_of_device(trace.at("traceEvents"), file), file);
  } catch (const nlohmann::json::exception& wrong) {
    throw bad_input(fmt::format("{} is not an hpe trace: {}", file, wrong.what()));
  }
}

std::string specification_of_profile(const std::string& text, const std::string& file) {
  const std::size_t place = text.find("\n  the run: ");
  double seconds = 0, waited = 0, launches = 0, devices = 0, to_device = 0, to_host = 0;
  constexpr int values = 6;
  const int read =
      place == std::string::npos
          ? 0
          : std::sscanf(text.c_str() + place,
                        " the run: %lf s, of which threads waited %lf s for data; %lf launches on %lf %*[a-z]; "
                        "%lf bytes to devices, %lf bytes to the host",
                        &seconds, &waited, &launches, &devices, &to_device, &to_host);
  if (read != values) throw bad_input(file + ": not a profile of hpe; HPE_PROFILE=1 prints one on standard error");
  if (devices != 1)
    throw bad_input(fmt::format("{}: the profile is of {} devices; a specification is made from a run on one device",
                                file, devices));
  if (launches == 0) throw bad_input(file + ": the profile has no launches");
  const auto transfer = [&](const char* direction, double bytes) {
    return fmt::format(
        "\n[[transfer]]\nname = \"copies {0}\"\ndirection = \"{0}\"\nbytes = \"work * {1} / P\"\nper = \"iteration\"\n",
        direction, bytes / launches);
  };
  return fmt::format(
             "name = \"{}\"\n"
             "source = \"a profile of {:.6g} s on one device\"\n"
             "assumed = \"the time in which no thread waited for data counts as kernel time; a trace would show the "
             "kernel time\"\n"
             "\n[sizes]\nwork = 1   # factor: 1 is the work of the profiled run\n"
             "\n[work]\n"
             "iterations = {}\n"
             "units = \"work * 1e9\"\n"
             "reference_units = 1e9\n"
             "reference_seconds = {:.9g}\n"
             "launches = 0\n",
             file, seconds, launches, std::max(0.0, seconds - waited) / launches) +
         transfer("to_device", to_device) + transfer("to_host", to_host) + without_exchange;
}

}  // namespace hpe::predict
