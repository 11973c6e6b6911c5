#include "apps/hpe/running_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/foreign_text.h"
#include "runtime/base/own_process.h"
#include "runtime/trace/status_page.h"

namespace hpe::cli {

namespace {

namespace fs = std::filesystem;
using trace::status_page;

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Returns the command line of a process, with blanks between the words.
std::string command_of(pid_t process) {
  std::string words = contents(fmt::format("/proc/{}/cmdline", process));
  while (!words.empty() && words.back() == '\0') words.pop_back();
  return one_line_of(words);
}

std::string rank_of(pid_t process) {
  const std::string environment = '\0' + contents(fmt::format("/proc/{}/environ", process));
  for (const char* const variable : rank_variables) {
    const std::string before = '\0' + std::string(variable) + '=';
    if (const std::size_t at = environment.find(before); at != std::string::npos)
      return one_line_of(environment.c_str() + at + before.size());
  }
  return "";
}

/// Returns the path of a process's status page below /proc; empty if the process has no status page or belongs to
/// another user.
fs::path status_file_of(const fs::path& process) {
  const std::string target = fmt::format("/memfd:{} (deleted)", trace::status_file);
  std::error_code ignored;
  for (fs::directory_iterator files(process / "fd", ignored); files != fs::directory_iterator();
       files.increment(ignored))
    if (fs::read_symlink(files->path(), ignored) == target) return files->path();
  return {};
}

/// A status page of a process of the calling user, mapped for reading.
class mapped_page {
 public:
  explicit mapped_page(const fs::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat about {};
    if (::fstat(file, &about) == 0 && about.st_uid == ::getuid() && about.st_size == sizeof(status_page)) {
      void* const memory = ::mmap(nullptr, sizeof(status_page), PROT_READ, MAP_SHARED, file, 0);
      if (memory != MAP_FAILED) page_ = static_cast<const status_page*>(memory);
    }
    ::close(file);
  }
  ~mapped_page() {
    if (page_ != nullptr) ::munmap(const_cast<status_page*>(page_), sizeof(status_page));
  }
  mapped_page(mapped_page&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  mapped_page& operator=(mapped_page&&) = delete;

  /// Returns the page; nullptr if the file is not a complete page of this version of hpe.
  [[nodiscard]] const status_page* get() const noexcept {
    const bool complete =
        page_ != nullptr && page_->version.load(std::memory_order_acquire) == status_page::current_version;
    return complete ? page_ : nullptr;
  }

 private:
  const status_page* page_ = nullptr;
};

running_process read(const status_page& page) {
  const auto sum = [](const counters::counter& c) { return c.load(std::memory_order_relaxed); };
  running_process p;
  p.number = static_cast<pid_t>(page.process);
  p.started = page.started;
  p.command = command_of(p.number);
  p.rank = rank_of(p.number);
  p.to_device = sum(page.count.bytes_to_device);
  p.to_host = sum(page.count.bytes_to_host);
  p.between_devices = sum(page.count.bytes_peer);
  p.faults = sum(page.count.faults_read) + sum(page.count.faults_write);
  p.launches = sum(page.count.launches);
  p.given_back = sum(page.count.bytes_given_back);
  const unsigned devices = std::min(page.devices.load(std::memory_order_acquire), counters::most_devices);
  for (unsigned d = 0; d < devices; ++d) {
    const status_page::device& device = page.device_table[d];
    p.devices.push_back(
        {one_line_of(device.name.data()), device.memory, std::min(sum(page.count.device_memory[d]), device.memory)});
  }
  return p;
}

/// Returns the number of the process that a folder of /proc describes; 0 for other folders.
pid_t number_of(const fs::path& folder) {
  const std::string name = folder.filename();
  pid_t number = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
  return failure == std::errc() && end == name.data() + name.size() ? number : 0;
}

/// Whether `process` is `ancestor` or a descendant of `ancestor`.
bool descends_from(pid_t process, pid_t ancestor) {
  while (process > 1 && process != ancestor) {
    const std::string about = contents(fmt::format("/proc/{}/stat", process));
    // ") S PARENT" follows the program's name, which may contain blanks and parentheses.
    const std::size_t name_end = about.rfind(')');
    if (name_end == std::string::npos || name_end + 4 >= about.size()) return false;
    const char* const parent = about.data() + name_end + 4;
    process = 0;
    std::from_chars(parent, about.data() + about.size(), process);
  }
  return process == ancestor;
}

std::string in_units(double number) {
  constexpr const char* units[] = {"", "k", "M", "G", "T"};
  unsigned unit = 0;
  for (; number >= 999.5 && unit < 4; ++unit) number /= 1000;
  return unit == 0 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}{}", number, units[unit]);
}

std::string memory_of(const running_process& p) {
  std::string text;
  for (const auto& d : p.devices) text += fmt::format("{}{}", text.empty() ? "" : " ", in_units(double(d.used)));
  return text.empty() ? "-" : text;
}

}  // namespace

std::vector<running_process> running_processes() {
  std::vector<running_process> found;
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    const mapped_page page(status_file_of(process.path()));
    if (page.get() != nullptr && std::to_string(page.get()->process) == process.path().filename())
      found.push_back(read(*page.get()));  // skips a page that a child inherited by fork
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return found;
}

struct device_memory_watch::watched {
  mapped_page page;
  running_process process;
  std::array<std::uint64_t, counters::most_devices> most{};
};

device_memory_watch::device_memory_watch(pid_t ancestor) : ancestor_(ancestor) {}
device_memory_watch::~device_memory_watch() = default;

void device_memory_watch::look_for_processes() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const pid_t process = number_of(entry.path());
    const bool known =
        std::any_of(processes_.begin(), processes_.end(), [&](const auto& w) { return w->process.number == process; });
    if (process == 0 || known || !descends_from(process, ancestor_)) continue;
    auto found = std::make_unique<watched>(mapped_page(status_file_of(entry.path())), running_process{});
    if (found->page.get() == nullptr || found->page.get()->process != process) continue;
    found->process = read(*found->page.get());
    processes_.push_back(std::move(found));
  }
}

void device_memory_watch::sample() {
  for (const auto& w : processes_) {
    const status_page& page = *w->page.get();
    const unsigned devices = std::min(page.devices.load(std::memory_order_acquire), counters::most_devices);
    for (unsigned d = 0; d < devices; ++d)
      w->most[d] = std::max(w->most[d], page.count.device_memory[d].load(std::memory_order_relaxed));
  }
}

std::vector<device_memory_watch::peak> device_memory_watch::peaks() const {
  std::vector<peak> all;
  for (const auto& w : processes_) {
    const running_process now = read(*w->page.get());
    for (std::size_t d = 0; d < now.devices.size(); ++d) {
      all.push_back({w->process, now.devices[d]});
      all.back().device.used = w->most[d];
    }
  }
  return all;
}

process_rates rates_between(const running_process& before, const running_process& now, double seconds) {
  const auto rate = [seconds](std::uint64_t from, std::uint64_t to) {
    return to > from && seconds > 0 ? double(to - from) / seconds : 0;  // to < from after hpeResetStatistics
  };
  return {rate(before.to_device, now.to_device),
          rate(before.to_host, now.to_host),
          rate(before.between_devices, now.between_devices),
          rate(before.faults, now.faults),
          rate(before.launches, now.launches),
          rate(before.given_back, now.given_back)};
}

std::vector<process_and_rates> with_rates(const std::vector<running_process>& before,
                                          const std::vector<running_process>& now, double seconds) {
  std::vector<process_and_rates> result;
  for (const running_process& p : now) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const running_process& b) {
      return b.number == p.number && b.started == p.started;
    });
    result.push_back({p, same != before.end() ? rates_between(*same, p, seconds) : process_rates{}});
  }
  return result;
}

std::string table_of(const std::vector<process_and_rates>& processes, unsigned columns) {
  using row = std::vector<std::string>;
  process_rates all;
  std::vector<row> rows{{"process", "rank", "up B/s", "down B/s", "peer B/s", "faults/s", "launch/s", "given B/s",
                         "device bytes", "command"}};
  const auto add = [&](const std::string& name, const std::string& rank, const process_rates& r,
                       const std::string& memory, const std::string& command) {
    rows.push_back({name, rank, in_units(r.to_device), in_units(r.to_host), in_units(r.between_devices),
                    in_units(r.faults), in_units(r.launches), in_units(r.given_back), memory, command});
  };
  for (const auto& [p, r] : processes) {
    all.to_device += r.to_device;
    all.to_host += r.to_host;
    all.between_devices += r.between_devices;
    all.faults += r.faults;
    all.launches += r.launches;
    all.given_back += r.given_back;
    add(std::to_string(p.number), p.rank.empty() ? "-" : p.rank, r, memory_of(p), p.command);
  }
  if (processes.size() > 1) add("all", "", all, "", "");
  // Each column is as wide as its widest entry, so columns of many devices and ranks stay apart.
  std::vector<std::size_t> widths(rows[0].size());
  for (const row& r : rows)
    for (std::size_t c = 0; c < r.size(); ++c) widths[c] = std::max(widths[c], r[c].size());
  std::string text = fmt::format("hpe top: {} process{}\n\n", processes.size(), processes.size() == 1 ? "" : "es");
  for (const row& r : rows) {
    std::string line;
    for (std::size_t c = 0; c + 1 < r.size(); ++c)
      line += fmt::format("{:>{}}{}", r[c], widths[c], c + 2 < r.size() ? "  " : "   ");
    text.append(first_characters(line + r.back(), columns)).append(1, '\n');
  }
  return text;
}

std::string json_of(const std::vector<process_and_rates>& processes) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [p, r] : processes) {
    nlohmann::json devices = nlohmann::json::array();
    for (const auto& d : p.devices)
      devices.push_back({{"name", d.name}, {"memory_bytes", d.memory}, {"used_bytes", d.used}});
    all.push_back({{"process", p.number},
                   {"rank", p.rank.empty() ? nlohmann::json() : nlohmann::json(p.rank)},
                   {"command", p.command},
                   {"devices", devices},
                   {"totals",
                    {{"bytes_to_device", p.to_device},
                     {"bytes_to_host", p.to_host},
                     {"bytes_between_devices", p.between_devices},
                     {"faults", p.faults},
                     {"launches", p.launches},
                     {"bytes_given_back", p.given_back}}},
                   {"per_second",
                    {{"bytes_to_device", r.to_device},
                     {"bytes_to_host", r.to_host},
                     {"bytes_between_devices", r.between_devices},
                     {"faults", r.faults},
                     {"launches", r.launches},
                     {"bytes_given_back", r.given_back}}}});
  }
  constexpr int indent = 1;
  return nlohmann::json{{"processes", all}}.dump(indent) + '\n';
}

}  // namespace hpe::cli
