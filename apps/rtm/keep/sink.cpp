#include "apps/rtm/keep/sink.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "apps/command_line/bad_input.h"
#include "apps/files/descriptor.h"

namespace hpe::rtm {

namespace {

using command_line::bad_input;

constexpr const char* advice = "choose another [migration] folder, compress the fields, or keep them elsewhere";

/// Returns the system's message for errno. Any thread may call this function.
std::string reason() { return std::generic_category().message(errno); }

double gib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

class file_sink final : public sink {
 public:
  file_sink(const std::string& folder, std::size_t bytes) : folder_(folder), file_(opened(folder)) {
    if (!file_.good()) throw bad_input(fmt::format("cannot keep wave fields in {}: {}", folder, reason()));
    std::error_code unknown;
    if (const auto space = std::filesystem::space(folder, unknown); !unknown && space.available < bytes)
      throw bad_input(fmt::format("kept wave fields take {:.1f} GiB, and {} has {:.1f} GiB free; {}", gib(bytes),
                                  folder, gib(space.available), advice));
    const bool reserves = ::fallocate(file_.get(), 0, 0, static_cast<off_t>(bytes)) == 0;
    if (!reserves && errno != EOPNOTSUPP && errno != ENOSYS)
      throw bad_input(
          fmt::format("cannot reserve {:.1f} GiB for wave fields in {}: {}; {}", gib(bytes), folder, reason(), advice));
  }

  void write(const void* from, std::size_t bytes, std::size_t at) override {
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t n =
          ::pwrite(file_.get(), static_cast<const char*>(from) + done, bytes - done, static_cast<off_t>(at + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        throw std::runtime_error(
            fmt::format("cannot write wave fields to {}: {}", folder_, n == 0 ? "nothing was written" : reason()));
      done += static_cast<std::size_t>(n);
    }
  }

  void read(void* to, std::size_t bytes, std::size_t at) override {
    if (file_.read_at(to, bytes, at) != bytes)
      throw std::runtime_error(fmt::format("cannot read wave fields from {}: {}", folder_, reason()));
  }

 private:
  /// Opens a file. The file system may lack files without a name, or O_DIRECT, so the function tries all combinations.
  static files::descriptor opened(const std::string& folder) {
    for (const int direct : {O_DIRECT, 0}) {
      files::descriptor unnamed(folder, O_TMPFILE | O_RDWR | direct);
      if (unnamed.good()) return unnamed;
      std::string name = (std::filesystem::path(folder) / "hpe-rtm-fields-XXXXXX").string();
      const int number = ::mkostemp(name.data(), direct);
      if (number < 0) continue;
      files::descriptor named("/proc/self/fd/" + std::to_string(number), O_RDWR | direct);
      ::unlink(name.c_str());
      ::close(number);
      if (named.good()) return named;
    }
    return {folder, O_TMPFILE | O_RDWR};
  }

  const std::string folder_;
  const files::descriptor file_;
};

class memory_sink final : public sink {
 public:
  explicit memory_sink(std::size_t bytes) : bytes_(bytes) {}
  void write(const void* from, std::size_t bytes, std::size_t at) override { std::memcpy(&bytes_[at], from, bytes); }
  void read(void* to, std::size_t bytes, std::size_t at) override { std::memcpy(to, &bytes_[at], bytes); }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace

std::unique_ptr<sink> file_in(const std::string& folder, std::size_t bytes) {
  return std::make_unique<file_sink>(folder.empty() ? "." : folder, bytes);
}

std::unique_ptr<sink> host_memory(std::size_t bytes) { return std::make_unique<memory_sink>(bytes); }

}  // namespace hpe::rtm
