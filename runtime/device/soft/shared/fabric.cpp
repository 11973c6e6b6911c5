#include "runtime/device/soft/shared/fabric.h"

#include <algorithm>
#include <bit>
#include <boost/interprocess/mapped_region.hpp>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/device/soft/shared/spin_until.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

namespace {

namespace ipc = boost::interprocess;

// A file descriptor with the member function that Boost.Interprocess requires of an object that it maps.
class memory_file_handle {
 public:
  explicit memory_file_handle(int fd) : handle_{fd, false} {}
  [[nodiscard]] ipc::mapping_handle_t get_mapping_handle() const { return handle_; }

 private:
  ipc::mapping_handle_t handle_;
};

struct section {
  std::uint64_t offset;
  std::size_t bytes;
};

// The size of a section that contains a T, rounded up to whole pages, because sections begin at page boundaries.
template <class T>
constexpr std::size_t size_of = (sizeof(T) + 4095) / 4096 * 4096;

constexpr section configuration_section{0, size_of<fabric_configuration>};
constexpr section common_section{configuration_section.bytes, size_of<fabric_common>};

constexpr std::size_t device_bytes = size_of<device_status> + size_of<std::array<command_ring, max_streams>>;

section status_section(unsigned device) {
  return {common_section.offset + common_section.bytes + device * device_bytes, size_of<device_status>};
}

section ring_section(unsigned device) {
  return {status_section(device).offset + size_of<device_status>, size_of<std::array<command_ring, max_streams>>};
}

}  // namespace

struct fabric::mappings {
  std::vector<ipc::mapped_region> regions;

  template <class T>
  T* add(int file, section what, bool writable) {
    regions.emplace_back(memory_file_handle(file), writable ? ipc::read_write : ipc::read_only,
                         static_cast<ipc::offset_t>(what.offset), what.bytes);
    return static_cast<T*>(regions.back().get_address());
  }

  // Rings are excluded from core files. To write them into a core file, the operating system would allocate pages for
  // all slots, 128 MiB for each device, although most slots are never used.
  command_ring* add_rings(int file, unsigned device, bool writable) {
    const section what = ring_section(device);
    auto* const rings = add<command_ring>(file, what, writable);
    os::exclude_from_core(rings, what.bytes);
    return rings;
  }
};

fabric::fabric(const topology& shape)
    : file_(os::create_memory_file("hpe-fabric", round_up(status_section(shape.devices()).offset, granule_size))),
      mappings_(std::make_unique<mappings>()) {
  configuration_ = ::new (mappings_->add<void>(file_.get(), configuration_section, true)) fabric_configuration();
  configuration_->shape = shape;
  common_ = ::new (mappings_->add<void>(file_.get(), common_section, true)) fabric_common();
  for (unsigned d = 0; d < shape.devices(); ++d) {
    // The file contains zeros, which are a valid initial state of the status and of the rings. create_stream()
    // constructs the timelines.
    status_[d] = mappings_->add<device_status>(file_.get(), status_section(d), true);
    rings_[d] = mappings_->add_rings(file_.get(), d, true);
  }
}

fabric::fabric(os::file_descriptor file, unsigned device)
    : file_(std::move(file)), mappings_(std::make_unique<mappings>()) {
  configuration_ = mappings_->add<fabric_configuration>(file_.get(), configuration_section, false);
  common_ = mappings_->add<fabric_common>(file_.get(), common_section, true);
  for (unsigned d = 0; d < configuration_->shape.devices(); ++d)
    status_[d] = mappings_->add<device_status>(file_.get(), status_section(d), d == device);
  rings_[device] = mappings_->add_rings(file_.get(), device, false);
}

fabric::~fabric() = default;

unsigned fabric::create_stream(unsigned device, priority level) {
  const unsigned index = configuration_->streams[device].load();
  HPE_REQUIRE(index < max_streams, HPE_ERROR_NOT_SUPPORTED,
              "device {} has {} streams already; a soft device cannot have more", device, max_streams);
  ring(device, index).level = level;
  ::new (&status(device).timelines[index]) timeline();
  configuration_->streams[device].store(index + 1);
  return index;
}

timeline* fabric::find_timeline(std::uint32_t number) const noexcept {
  if (number == 0 || device_of(number) >= max_devices) return nullptr;
  const unsigned device = device_of(number);
  const bool exists = stream_of(number) < configuration_->streams[device].load(std::memory_order_acquire);
  return exists ? &status(device).timelines[stream_of(number)] : nullptr;
}

bool fabric::wait(std::uint32_t number, std::uint64_t value, wait_queue::deadline until) const noexcept {
  const timeline& line = *find_timeline(number);
  wait_queue& done = common_->done[device_of(number)][stream_of(number)];
  if (spin_until([&] { return line.reached(value); })) return true;
  for (;;) {
    const std::uint32_t seen = done.wakes();
    if (line.reached(value)) return true;
    if (std::chrono::steady_clock::now() >= until) return false;
    done.sleep(seen, wait_queue::trusted(until));
  }
}

void fabric::complete(std::uint32_t number, std::uint64_t value) const noexcept {
  timeline& line = *find_timeline(number);
  line.completed.store(value);
  common_->done[device_of(number)][stream_of(number)].wake_all();
  for (std::uint64_t rest = line.gates.load(); rest != 0; rest &= rest - 1)
    common_->gates[std::countr_zero(rest)].wake_all();
}

}  // namespace hpe::device::soft
