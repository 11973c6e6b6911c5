#include "runtime/device/soft/fabric.h"

#include <boost/interprocess/indexes/iset_index.hpp>
#include <boost/interprocess/managed_external_buffer.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

namespace {

namespace ipc = boost::interprocess;

// No locks inside: only the owner allocates, under a lock of its own, and a device that is killed can hold none.
using heap =
    ipc::basic_managed_external_buffer<char, ipc::rbtree_best_fit<ipc::null_mutex_family, ipc::offset_ptr<void>, 64>,
                                       ipc::iset_index>;

using state_pointer = ipc::offset_ptr<fabric_state>;
constexpr const char* state_name = "state";

// What Boost.Interprocess asks of something that it maps.
class memory_file_handle {
 public:
  explicit memory_file_handle(int fd) : fd_(fd) {}
  [[nodiscard]] ipc::mapping_handle_t get_mapping_handle() const {
    return ipc::ipcdetail::mapping_handle_from_file_handle(fd_);
  }

 private:
  int fd_;
};

std::uint64_t size_for(const topology& shape) {
  constexpr std::uint64_t one_stream = sizeof(stream_block) + ring_slots * sizeof(parameter_slot) + 4096;
  constexpr std::uint64_t room_for_the_heap_itself = 1U << 16;
  return round_up(sizeof(fabric_state) + room_for_the_heap_itself + shape.devices() * max_streams * one_stream,
                  granule_size);
}

}  // namespace

struct fabric::mapping {
  ipc::mapped_region region;
  heap memory;

  template <class How>
  mapping(int file, How how)
      : region(memory_file_handle(file), ipc::read_write), memory(how, region.get_address(), region.get_size()) {}

  // construct() of Boost does not keep to alignments as large as a cache line.
  template <class T>
  [[nodiscard]] T* make() {
    return ::new (memory.allocate_aligned(sizeof(T), alignof(T))) T();
  }
  [[nodiscard]] std::byte* base() const { return static_cast<std::byte*>(region.get_address()); }
  [[nodiscard]] std::uint64_t offset_of(const void* p) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - base());
  }
};

fabric::fabric(const topology& shape)
    : file_(os::create_memory_file("hpe-fabric", size_for(shape))),
      mapping_(std::make_unique<mapping>(file_.get(), ipc::create_only)) {
  state_ = mapping_->make<fabric_state>();
  mapping_->memory.construct<state_pointer>(state_name)(state_);
  state_->shape = shape;
}

fabric::fabric(os::file_descriptor file)
    : file_(std::move(file)), mapping_(std::make_unique<mapping>(file_.get(), ipc::open_only)) {
  const state_pointer* head = mapping_->memory.find<state_pointer>(state_name).first;
  HPE_INVARIANT(head != nullptr);
  state_ = head->get();
}

fabric::~fabric() = default;

unsigned fabric::create_stream(unsigned device, priority level) {
  auto& streams = state_->devices[device].streams;
  unsigned index = 0;
  while (index < max_streams && streams[index].load() != 0) ++index;
  HPE_REQUIRE(index < max_streams, HPE_ERROR_NOT_SUPPORTED, "device {} has {} streams; a soft device has no more",
              device, max_streams);
  auto* block = mapping_->make<stream_block>();
  block->level = level;
  block->parameters = mapping_->offset_of(
      mapping_->memory.allocate_aligned(ring_slots * sizeof(parameter_slot), alignof(parameter_slot)));
  streams[index].store(mapping_->offset_of(block));
  return index;
}

stream_block* fabric::find_stream(unsigned device, unsigned stream) const noexcept {
  if (device >= max_devices || stream >= max_streams) return nullptr;
  const std::uint64_t offset = state_->devices[device].streams[stream].load(std::memory_order_acquire);
  return offset == 0 ? nullptr : reinterpret_cast<stream_block*>(mapping_->base() + offset);
}

parameter_slot& fabric::parameters(const stream_block& stream, std::uint64_t command) const noexcept {
  auto* slots = reinterpret_cast<parameter_slot*>(mapping_->base() + stream.parameters);
  return slots[command % ring_slots];
}

timeline* fabric::find_timeline(std::uint32_t number) const noexcept {
  stream_block* stream = number == 0 ? nullptr : find_stream(device_of(number), (number - 1) % max_streams);
  return stream == nullptr ? nullptr : &stream->line;
}

}  // namespace hpe::device::soft
