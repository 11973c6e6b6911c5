#include "apps/command_line/program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "hpe/hpe.hpp"
#include "runtime/os/free_memory.h"
#include "runtime/os/output_file.h"

namespace hpe::command_line {

namespace {

namespace fs = std::filesystem;

double free_on(int devices) {
  double bytes = 0;
  for (int d = 0; d < devices; ++d) bytes += static_cast<double>(device_info(d).memory_free);
  return bytes;
}

int complain(const std::string& name, const char* sentence, int status) {
  fmt::print(stderr, "{}: {}\n", name, sentence);
  return status;
}

}  // namespace

std::string in_words(double bytes) {
  static constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

bool output_files::has(const std::string& ending) const {
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

std::vector<std::string> output_files::names() const {
  std::vector<std::string> all;
  for (const std::string& ending : endings) all.push_back(stem + ending);
  return all;
}

output_files outputs_named(const std::string& name, const std::vector<std::string>& possible,
                           const std::vector<std::string>& usual) {
  if (name.empty()) return {};
  const std::string ending = fs::path(name).extension();
  if (ending.empty()) return {name, usual};
  if (std::find(possible.begin(), possible.end(), ending) != possible.end())
    return {name.substr(0, name.size() - ending.size()), {ending}};
  throw bad_input(fmt::format("--output {}: the name must end in {}; a name without an ending means {}", name,
                              fmt::join(possible, " or "), fmt::join(output_files{"NAME", usual}.names(), " and ")));
}

double free_on_host(const fs::path& root) { return os::free_memory(root).bytes; }

namespace {

// Opens each closed descriptor of standard input, output and error on /dev/null. Otherwise, a file that the program
// opens later could get descriptor 1, and the program's output would go into that file. Standard output is opened only
// for reading, so that writes to it fail.
void open_standard_files() {
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(file, F_GETFD) < 0) static_cast<void>(::open("/dev/null", file == STDERR_FILENO ? O_WRONLY : O_RDONLY));
}

bool is_file(const std::string& path) { return !path.empty() && path != "-"; }

/// Whether two paths name the same file. The file need not exist. False for a device file or a FIFO, because several
/// outputs may go to it.
bool are_one_file(const std::string& a, const std::string& b) {
  std::error_code failed;
  if (fs::equivalent(a, b, failed)) return fs::is_regular_file(a);
  if (fs::exists(a, failed) || fs::exists(b, failed)) return false;
  const auto full = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(os::output_file::behind_links(path)), failed);
  };
  return full(a) == full(b);
}

}  // namespace

int guarded(const std::string& name, const std::function<int()>& body) {
  open_standard_files();
  try {
    return body();
  } catch (const bad_input& e) {
    return complain(name, e.what(), usage_error);
  } catch (const hpe::error& e) {
    return complain(name, e.what(), e.status() == HPE_ERROR_INVALID_ARGUMENT ? usage_error : failed);
  } catch (const std::bad_alloc&) {
    return complain(name, "the host has too little memory left for this run", failed);
  } catch (const std::exception& e) {
    return complain(name, e.what(), failed);
  }
}

int with_output_written(const std::string& name, int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  fmt::print(stderr, "{}: standard output cannot be written: {}\n", name,
             std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): one thread
  return status != 0 ? status : failed;
}

bool one_of_several_ranks() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const size = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread sets variables
    if (size != nullptr && std::strtol(size, nullptr, 10) > 1) return true;
  }
  return false;
}

void become(const std::string& program, char** argv) {
  const auto path = fs::read_symlink("/proc/self/exe").parent_path() / program;
  ::execv(path.c_str(), argv);
  throw bad_input(
      fmt::format("under mpirun, this command runs the program {}, which cannot be started: {} (hpe without MPI lacks "
                  "this program)",
                  path.string(), std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
}

option help_option(bool& place) { return {"--help", "", "this text", to_flag(place)}; }

option quiet_option(bool& place) { return {"--quiet", "", "print errors only", to_flag(place)}; }

option json_option(std::string& place) {
  return {"--json", "FILE", "also write the figures as JSON; with -, standard output contains only the JSON",
          to_text(place)};
}

option devices_option(std::int64_t& place) {
  return {"--devices", "N", "use the first N devices (all); HPE_DEVICES=soft:N provides N soft devices",
          to_whole(place, 1)};
}

option repeats_option(std::int64_t& place) {
  constexpr std::int64_t most = 1000000;
  return {"--repeats", "N", fmt::format("number of timed runs; the report states their median ({})", place),
          to_whole(place, 1, most)};
}

int devices_of(std::int64_t devices) {
  const int all = device_count();
  if (devices > all)
    throw bad_input(fmt::format("--devices {0}: there are {1}, so at most {1} can be used", devices, all));
  return devices == 0 ? all : static_cast<int>(devices);
}

void check_outputs(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (!is_file(*output)) continue;
    try {
      const os::output_file discarded(*output);
    } catch (const hpe::error& e) {
      throw bad_input(e.what());
    }
    for (const std::string& input : inputs)
      if (is_file(input) && are_one_file(*output, input))
        throw bad_input(
            *output == input
                ? fmt::format("{} is an input, so it cannot be an output too: choose another output", input)
                : fmt::format("{} names the file {}, which is an input: choose another output", *output, input));
    for (auto other = outputs.begin(); other != output; ++other)
      if (is_file(*other) && are_one_file(*output, *other))
        throw bad_input(fmt::format("the outputs {} and {} are the same file: choose another name for one of them",
                                    *other, *output));
  }
}

namespace {

std::string on_devices_in_words(const demand& need, int devices) {
  return fmt::format("{} on {} device{}, where {} are free", in_words(need.on_devices), devices,
                     devices == 1 ? "" : "s", in_words(free_on(devices)));
}

std::string on_host_in_words(const demand& need, const fs::path& root) {
  return fmt::format("{} on the host, where {} are free", in_words(need.on_host), in_words(free_on_host(root)));
}

}  // namespace

std::string in_words(const demand& need, int devices) {
  return on_devices_in_words(need, devices) + ", and " + on_host_in_words(need, "/");
}

void check_room(const std::string& what, const demand& need, int devices, const fs::path& root) {
  if (need.on_devices > free_on(devices))
    throw bad_input(fmt::format("{}: this needs {}", what, on_devices_in_words(need, devices)));
  if (need.on_host > free_on_host(root))
    throw bad_input(fmt::format("{}: this needs {}", what, on_host_in_words(need, root)));
}

}  // namespace hpe::command_line
