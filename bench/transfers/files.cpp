// Transfers between a file and a device: read() and write() on hpe's device memory, compared with hand-written code, as
// in Figure 5.10 of J. Cabezas, "On the Programmability of Multi-GPU Computing Systems" (2015). Reads and writes use
// the page cache, or bypass it (O_DIRECT).

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/copies/file_schemes.h"
#include "hpe/hpe.hpp"

namespace {

using hpe::bench::disk_file;
using hpe::bench::hand_made;
using hpe::bench::result;

constexpr std::size_t mebi = std::size_t{1} << 20;

struct scheme {
  const char* name;
  std::function<void(std::size_t bytes)> run;
};

struct figure {
  std::string name;
  bool to_device;
  bool direct;
};

// The rates of each scheme in GB/s, with a point for each size.
using rates = std::vector<hpe::bench::line>;

double rate_of(const rates& all, const std::string& name) {
  for (const auto& l : all)
    if (l.name == name) return l.points.back().second;
  return 0;
}

rates measure(const std::vector<scheme>& schemes, std::size_t largest, unsigned repeats,
              const std::function<void()>& prepare) {
  rates all;
  for (const scheme& s : schemes) all.push_back({s.name, {}});
  for (std::size_t bytes = mebi; bytes <= largest; bytes *= 4) {
    // Each round runs all schemes, so that a drift of the machine's speed affects all equally.
    std::vector<std::vector<double>> seconds(schemes.size());
    for (unsigned round = 0; round <= repeats; ++round)
      for (std::size_t i = 0; i < schemes.size(); ++i) {
        prepare();
        const double begin = hpe::bench::now();
        schemes[i].run(bytes);
        if (round > 0) seconds[i].push_back(hpe::bench::now() - begin);
      }
    for (std::size_t i = 0; i < schemes.size(); ++i) {
      std::sort(seconds[i].begin(), seconds[i].end());
      all[i].points.emplace_back(static_cast<double>(bytes),
                                 static_cast<double>(bytes) / seconds[i][seconds[i].size() / 2] / 1e9);
    }
  }
  return all;
}

double memcpy_rate(std::size_t bytes, unsigned repeats) {
  std::vector<std::byte> a(bytes, std::byte{1});
  std::vector<std::byte> b(bytes, std::byte{2});
  return static_cast<double>(bytes) /
         hpe::bench::median_seconds(
             repeats, [] {}, [&] { std::memcpy(a.data(), b.data(), bytes); }) /
         1e9;
}

void report(const figure& f, const rates& all, double link, double memory, std::vector<result>& results) {
  const double mine = rate_of(all, "hpe");
  const auto ratio = [&](const std::string& what, double other, const char* bar, double least) {
    results.push_back({"  hpe's rate / the rate of " + what, mine / other, "x", bar, mine / other >= least});
  };
  results.push_back({f.name + ", hpe", mine, "GB/s", "", true});
  for (const auto& l : all)
    if (l.name != "hpe") results.push_back({"  " + l.name, l.points.back().second, "GB/s", "", true});
  // There is no target in the page cache, because the operating system's copy includes page management and is slower
  // than memcpy.
  ratio("the same call on ordinary memory", rate_of(all, "file alone"), f.direct ? ">= 0.95" : "", f.direct ? 0.95 : 0);
  if (!f.direct) ratio("the link or memcpy, whichever is slower", std::min(link, memory), ">= 0.85", 0.85);
  ratio("naive", rate_of(all, "naive"), "2.4 to 2.9", 2.4);
  ratio("double-buffered by hand", rate_of(all, "double-buffered"), "", 0);
}

// Returns libc's function `name`, to measure what hpe's interposed function adds for ordinary memory.
template <class Function>
Function* of_libc(const char* name) {
  static void* const libc = ::dlopen("libc.so.6", RTLD_NOW);
  return reinterpret_cast<Function*>(::dlsym(libc, name));
}

void overheads(unsigned repeats, std::vector<result>& results) {
  constexpr int calls = 200'000;
  using copy = void*(void*, const void*, std::size_t);
  using read_call = ssize_t(int, void*, std::size_t);
  alignas(64) static char a[4096];
  alignas(64) static char b[4096];
  const auto add = [&](const std::string& what, const auto& ours, const auto& theirs) {
    const auto times = hpe::bench::paired_medians(
        repeats, [] {}, ours, [] {}, theirs);
    results.push_back({what + ", over libc's own", (times.first - times.second) / calls * 1e9, "ns", "", true});
    results.push_back({"  libc's own", times.second / calls * 1e9, "ns", "", true});
  };
  copy* volatile const ours = std::memcpy;
  copy* volatile const theirs = of_libc<copy>("memcpy");
  for (const std::size_t n : {std::size_t{16}, std::size_t{4096}}) {
    const auto run = [n](copy* f) {
      for (int i = 0; i < calls; ++i) f(a, b, n);
    };
    add(
        fmt::format("memcpy of {} bytes of ordinary memory", n), [&] { run(ours); }, [&] { run(theirs); });
  }
  const int zero = ::open("/dev/zero", O_RDONLY);
  const auto run = [zero](read_call* f) {
    for (int i = 0; i < calls; ++i)
      if (f(zero, a, 1) != 1) std::abort();
  };
  add(
      "read of one byte into ordinary memory", [&] { run(::read); }, [&] { run(of_libc<read_call>("read")); });
  ::close(zero);
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t largest_mib = 256;
  std::string folder = ".";
  std::string charts_file;
  const auto arguments = hpe::bench::parse(
      argc, argv, "transfers between a file and a device, in the page cache and past it, compared with code by hand",
      {{"--largest", "MIB", "the size of the largest transfer in MiB (256)",
        hpe::bench::to_whole(largest_mib, 1, 16384)},
       {"--folder", "PATH", "the folder of the file (.)", hpe::bench::to_text(folder)},
       {"--charts", "FILE",
        "write charts of the speed-ups over the naive scheme to FILE ('scripts/measurements draw FILE' draws them)",
        hpe::bench::to_text(charts_file)}});
  const std::size_t largest = largest_mib * mebi;

  const bool gpus = hpe::bench::on_gpus();
  hand_made by_hand(gpus ? "cuda:1" : "soft:1", largest);
  const hpe::array<std::byte> data(largest);
  hpe::fill(data.data(), 1, largest);
  const double memory = memcpy_rate(largest, arguments.repeats);
  const double link_up = by_hand.link(true, largest, arguments.repeats);
  const double link_down = by_hand.link(false, largest, arguments.repeats);
  std::vector<result> results = {{"memcpy, one thread", memory, "GB/s", "", true},
                                 {"link to the device", link_up, "GB/s", "", true},
                                 {"link to the host", link_down, "GB/s", "", true}};

  overheads(arguments.repeats, results);

  std::vector<hpe::bench::chart> charts;
  for (const figure& f :
       {figure{"page cache to device", true, false}, figure{"device to page cache", false, false},
        figure{"disk to device (O_DIRECT)", true, true}, figure{"device to disk (O_DIRECT)", false, true}}) {
    const disk_file file(folder, largest, f.direct);
    if (!file.good()) {
      fmt::print("{}: left out, because the file cannot be opened: {}\n", f.name, file.why());
      continue;
    }
    // Before each transfer, the device writes the memory, so that only the device has a valid copy.
    const auto prepare = [&] {
      hpe::fill(data.data(), 3, largest);
      hpe::synchronize();
    };
    std::vector<scheme> schemes;
    if (f.to_device)
      schemes = {{"naive", [&](std::size_t n) { by_hand.naive_in(file, n); }},
                 {"pinned", [&](std::size_t n) { by_hand.pinned_in(file, n); }},
                 {"double-buffered", [&](std::size_t n) { by_hand.doubled_in(file, n); }},
                 {"hpe",
                  [&](std::size_t n) {
                    file.read(data.data(), n, 0);
                    hpe::synchronize();
                  }},
                 {"file alone", [&](std::size_t n) { by_hand.file_in(file, n); }}};
    else
      schemes = {{"naive", [&](std::size_t n) { by_hand.naive_out(file, n); }},
                 {"pinned", [&](std::size_t n) { by_hand.pinned_out(file, n); }},
                 {"double-buffered", [&](std::size_t n) { by_hand.doubled_out(file, n); }},
                 {"hpe", [&](std::size_t n) { file.write(data.data(), n, 0); }},
                 {"file alone", [&](std::size_t n) { by_hand.file_out(file, n); }}};
    const rates all = measure(schemes, largest, arguments.repeats, prepare);
    report(f, all, f.to_device ? link_up : link_down, memory, results);

    hpe::bench::chart c{
        f.name, {"bytes", hpe::bench::scale::sizes}, {"times the naive way", hpe::bench::scale::linear}, {}};
    for (const auto& l : all) {
      if (l.name == "naive" || l.name == "file alone") continue;
      c.lines.push_back({l.name, {}});
      for (std::size_t i = 0; i < l.points.size(); ++i)
        c.lines.back().points.emplace_back(l.points[i].first, l.points[i].second / all.front().points[i].second);
    }
    charts.push_back(std::move(c));
  }
  const int status = hpe::bench::report("files", results, arguments);
  if (!charts_file.empty()) {
    const std::string title = "A file and a device: " + std::string(hpe::device_info(0).name);
    hpe::command_line::write_text(hpe::bench::as_json(title, {{"files", charts}}), charts_file);
  }
  return status;
}
