#include "apps/command_line/program.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>

#include "hpe/hpe.hpp"
#include "runtime/os/free_memory.h"

namespace hpe::command_line {

namespace {

namespace fs = std::filesystem;

double free_on(int devices) {
  double bytes = 0;
  for (int d = 0; d < devices; ++d) bytes += static_cast<double>(device_info(d).memory_free);
  return bytes;
}

std::string in_words(double bytes) {
  static constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

int complain(const std::string& name, const char* sentence, int status) {
  fmt::print(stderr, "{}: {}\n", name, sentence);
  return status;
}

}  // namespace

double free_on_host(const fs::path& root) { return os::free_memory(root); }

int guarded(const std::string& name, const std::function<int()>& body) {
  try {
    return body();
  } catch (const bad_input& e) {
    return complain(name, e.what(), usage_error);
  } catch (const hpe::error& e) {
    return complain(name, e.what(), e.status() == HPE_ERROR_INVALID_ARGUMENT ? usage_error : failed);
  } catch (const std::bad_alloc&) {
    return complain(name, "the host has too little memory left for this", failed);
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
    const char* const size = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (size != nullptr && std::strtol(size, nullptr, 10) > 1) return true;
  }
  return false;
}

void become(const std::string& program, char** argv) {
  const auto path = fs::read_symlink("/proc/self/exe").parent_path() / program;
  ::execv(path.c_str(), argv);
  throw bad_input(fmt::format("under mpirun it needs {}, which cannot be run: {}. Was hpe built without MPI?",
                              path.string(), std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe)
}

option help_option(bool& place) { return {"--help", "", "this text", to_flag(place)}; }

option quiet_option(bool& place) { return {"--quiet", "", "print errors only", to_flag(place)}; }

option json_option(std::string& place) {
  return {"--json", "FILE", "write the figures as JSON too; -: to standard output, and nothing else there",
          to_text(place)};
}

option devices_option(std::int64_t& place) {
  return {"--devices", "N", "use the first N devices (all; HPE_DEVICES=soft:N makes N)", to_whole(place, 1)};
}

option repeats_option(std::int64_t& place) {
  constexpr std::int64_t most = 1000000;
  return {"--repeats", "N", fmt::format("timed runs; the median is reported ({})", place), to_whole(place, 1, most)};
}

int devices_of(std::int64_t devices) {
  const int all = device_count();
  if (devices > all) throw bad_input(fmt::format("--devices {}: there are {}", devices, all));
  return devices == 0 ? all : static_cast<int>(devices);
}

void check_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  const bool is_new = !std::filesystem::exists(path);
  if (!std::ofstream(path, std::ios::app))
    throw bad_input("cannot write " + path + ": " + std::strerror(errno));  // NOLINT(concurrency-mt-unsafe): one thread
  if (is_new) std::filesystem::remove(path);
}

void check_room(const std::string& what, const demand& need, int devices, const fs::path& root) {
  const double on_devices = free_on(devices);
  if (need.on_devices > on_devices)
    throw bad_input(fmt::format("{}: they take {} on {} device{}, where {} are free", what, in_words(need.on_devices),
                                devices, devices == 1 ? "" : "s", in_words(on_devices)));
  const double on_host = free_on_host(root);
  if (need.on_host > on_host)
    throw bad_input(fmt::format("{}: they take {} on the host, where {} are free", what, in_words(need.on_host),
                                in_words(on_host)));
}

}  // namespace hpe::command_line
