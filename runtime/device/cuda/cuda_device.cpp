#include "runtime/device/cuda/cuda_device.h"

#include <algorithm>
#include <new>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/device/checks.h"
#include "runtime/device/cuda/cuda_set.h"

namespace hpe::device::cuda {

cuda_device::cuda_device(cuda_set& set, unsigned index, CUdevice ordinal, const options& wanted, bool starts_later)
    : set_(set), cu_(set.driver_table()), index_(index), ordinal_(ordinal), recorder_(*this, cu_) {
  char name[256] = "";
  cu_.cuDeviceGetName(name, sizeof name, ordinal_);
  properties_.kind = HPE_DEVICE_CUDA;
  properties_.name = name;
  loss_ = {HPE_ERROR_DEVICE_LOST, fmt::format("device {} ({}) is lost", index_, properties_.name)};
  report_of_loss_.emplace_back(index_, loss_);
  // When hpe fetches 8 MiB ahead, the fetched bytes are in the host's last-level cache when CPU code reads them. Eight
  // threads then read at 0.92 of the link's rate, but only at 0.72 when hpe fetches 32 MiB ahead (H200). One thread
  // reads equally fast with both sizes.
  properties_.most_ahead = std::size_t{8} << 20;
  properties_.has_host_atomics = attribute(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED) != 0;
  properties_.compute_units = static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  require_abilities();
  if (!starts_later) start();
  std::size_t total = 0;
  cu_.check(cu_.cuDeviceTotalMem(&total, ordinal_), "querying the memory size of a GPU");
  const std::size_t most = capacity::limited(total, wanted.device_memory);
  memory_.emplace(most, node::device_share::join(wanted.share, wanted.share.empty() ? "" : identity(), most,
                                                 std::chrono::seconds(wanted.share_timeout)));
  properties_.memory_bytes = memory_->total();
  // The device memory that hpe does not use for the program's data. The driver needs this memory for modules and for
  // local memory of kernels, and libraries need it for work areas.
  if (wanted.device_memory == 0) properties_.spare_bytes = std::size_t{256} << 20;
}

// Memory of other GPUs that was mapped before this GPU had a context becomes accessible here, before any code can use
// the GPU.
CUcontext cuda_device::make_context() const {
  const std::lock_guard lock(starting_);
  if (CUcontext const made = context_if_started(); made != nullptr) return made;
  CUcontext made = nullptr;
  const CUresult retained = cu_.cuDevicePrimaryCtxRetain(&made, ordinal_);
  HPE_REQUIRE(retained == CUDA_SUCCESS, HPE_ERROR_INITIALIZATION, "GPU {} ({}) cannot be used: {}", index_,
              properties_.name, cu_.words_for(retained));
  try {
    const entered here(cu_, made);
    cu_.check(cu_.cuStreamCreateWithPriority(&clearing_, CU_STREAM_NON_BLOCKING, 0), "creating a stream");
    try {
      cu_.check(cu_.cuStreamCreateWithPriority(&leaving_, CU_STREAM_NON_BLOCKING, 0), "creating a stream");
      set_.memory().admit(index_, ordinal_, peers_);
    } catch (...) {
      for (CUstream* const each : {&clearing_, &leaving_})  // the context may end with the release
        if (*each != nullptr) cu_.cuStreamDestroy(std::exchange(*each, nullptr));
      throw;
    }
  } catch (...) {
    cu_.cuDevicePrimaryCtxRelease(ordinal_);
    throw;
  }
  context_.store(made, std::memory_order_release);
  return made;
}

cuda_device::~cuda_device() {
  CUcontext const made = context_if_started();
  if (made == nullptr) return;
  {
    const entered here(cu_, made);
    cu_.cuStreamDestroy(clearing_);
    cu_.cuStreamDestroy(leaving_);
  }
  cu_.cuDevicePrimaryCtxRelease(ordinal_);
}

std::string cuda_device::identity() const {
  HPE_REQUIRE(cu_.cuDeviceGetUuid != nullptr, HPE_ERROR_NOT_SUPPORTED,
              "HPE_SHARE needs a newer CUDA driver: this driver lacks cuDeviceGetUuid, which identifies GPUs");
  CUuuid id{};
  cu_.check(cu_.cuDeviceGetUuid(&id, ordinal_), "querying the identity of a GPU");
  std::string text = "gpu-";
  for (const char byte : id.bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

int cuda_device::attribute(CUdevice_attribute which) const {
  int value = 0;
  cu_.cuDeviceGetAttribute(&value, which, ordinal_);
  return value;
}

void cuda_device::require_abilities() const {
  const auto require = [&](CUdevice_attribute which, const char* what) {
    HPE_REQUIRE(attribute(which) != 0, HPE_ERROR_INITIALIZATION,
                "GPU {} ({}) has no {}, which hpe needs; CUDA_VISIBLE_DEVICES can leave this GPU out", index_,
                properties_.name, what);
  };
  require(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, "unified addressing");
  require(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual memory management");
  require(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, "pinning of host memory");
  require(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, "access to host memory at its own address");
}

void cuda_device::find_peers() {
  for (unsigned d = 0; d < set_.size(); ++d) {
    int possible = d == index_ ? 1 : 0;
    if (d != index_ && set_.peers_allowed()) cu_.cuDeviceCanAccessPeer(&possible, ordinal_, set_.gpu(d).ordinal());
    peers_.push_back(possible != 0);
    int atomics = d == index_ ? 1 : 0;
    if (d != index_ && possible != 0 && cu_.cuDeviceGetP2PAttribute != nullptr)
      cu_.cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, ordinal_,
                                  set_.gpu(d).ordinal());
    atomics_.push_back(atomics != 0);
  }
}

void cuda_device::find_node(const os::numa& machine) {
  const auto part = [&](CUdevice_attribute which) { return static_cast<unsigned>(attribute(which)); };
  const os::pci_address address{part(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID), part(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
                                part(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)};
  properties_.numa_node = machine.node_near(address).value_or(unknown_node);
}

bool cuda_device::can_access(unsigned peer) const noexcept { return peer < peers_.size() && peers_[peer]; }

bool cuda_device::has_atomics(unsigned peer) const noexcept { return peer < atomics_.size() && atomics_[peer]; }

memory_usage cuda_device::memory() const {
  memory_usage result{memory_->total(), 0};
  if (lost()) return result;
  const entered here(cu_, context());
  std::size_t total = 0;
  cu_.cuMemGetInfo(&result.free, &total);
  result.free = std::min(result.free + set_.memory().kept(index_), memory_->free());
  return result;
}

void cuda_device::check(CUresult result, const char* what) {
  if (kills_context(result)) {
    lose(result);
    throw loss();
  }
  cu_.check(result, what);
}

std::vector<device_memory::user> cuda_device::users() const {
  std::vector<device_memory::user> result;
  for (unsigned d = 0; d < set_.size(); ++d)
    if (set_.gpu(d).can_access(index_) && !set_.gpu(d).lost()) result.push_back({d, set_.gpu(d).ordinal()});
  return result;
}

void cuda_device::map(void* address, std::size_t bytes, contents first, backing_kind where) {
  require_granules(set_.layout(), address, bytes);
  require_alive();
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const entered here(cu_, context());
  set_.memory().reserve(begin, bytes);
  const std::size_t taken = where == backing_kind::device ? bytes : 0;
  memory_->take(index_, taken);
  try {
    set_.memory().map(begin, bytes, place_for(where), users());
  } catch (...) {
    memory_->give(taken);
    throw;
  }
  if (first == contents::any) return;
  if (const CUresult queued = cu_.cuMemsetD8Async(begin, 0, bytes, clearing_); queued != CUDA_SUCCESS) {
    memory_->give(set_.memory().unmap(begin, bytes, index_, device_memory::after::released));
    check(queued, "clearing device memory");
  }
  // If the wait fails, the memory stays mapped, because the device may be writing zeros to it.
  if (const CUresult waited = cu_.cuStreamSynchronize(clearing_); waited != CUDA_SUCCESS) {
    lose(waited);
    throw loss();
  }
}

void cuda_device::unmap(void* address, std::size_t bytes) noexcept {
  log_failure_of("unmapping device memory", [&] {
    require_granules(set_.layout(), address, bytes);
    const entered here(cu_, context());
    memory_->give(set_.memory().unmap(reinterpret_cast<std::uintptr_t>(address), bytes, index_, after_unmap()));
  });
}

device_memory::place cuda_device::place_for(backing_kind where) const {
  return {index_, ordinal_, where, std::max(properties_.numa_node, 0), memory_->free()};
}

// If other processes share the device, the memory returns to the driver, so that those processes can allocate it.
// Otherwise hpe may keep the memory for its next mapping.
device_memory::after cuda_device::after_unmap() const noexcept {
  return memory_->share() == nullptr ? device_memory::after::kept : device_memory::after::released;
}

class cuda_device::cuda_moves final : public group_of_moves {
 public:
  explicit cuda_moves(cuda_device& of) noexcept : of_(of) {}
  cuda_moves(const cuda_moves&) = delete;
  cuda_moves& operator=(const cuda_moves&) = delete;
  ~cuda_moves() override {
    if (ranges_.empty()) return;
    const entered here(of_.cu_, of_.context());
    for (CUstream const each : {of_.clearing_, of_.leaving_}) of_.cu_.cuStreamSynchronize(each);
    for (const device_memory::replacement& by : ranges_) {
      of_.set_.memory().cancel(by);
      if (by.at.where == backing_kind::device) of_.memory_->give(by.bytes);
    }
  }
  void add(void* address, std::size_t bytes, backing_kind to, bool on_standby) override {
    require_granules(of_.set_.layout(), address, bytes);
    of_.require_alive();
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const entered here(of_.cu_, of_.context());
    ranges_.reserve(ranges_.size() + 1);
    const std::size_t taken = to == backing_kind::device ? bytes : 0;
    of_.memory_->take(of_.index_, taken);
    try {
      const device_memory::replacement by = of_.set_.memory().prepare(begin, bytes, of_.place_for(to));
      CUstream const stream = taken != 0 ? of_.clearing_ : of_.leaving_;
      const CUresult queued = on_standby && by.was_on_standby
                                  ? CUDA_SUCCESS
                                  : of_.cu_.cuMemcpyAsync(by.other_address, begin, bytes, stream);
      if (queued != CUDA_SUCCESS) of_.set_.memory().cancel(by);
      of_.check(queued, "moving bytes of a device");
      ranges_.push_back(by);
      is_copying_[taken != 0] = is_copying_[taken != 0] || !(on_standby && by.was_on_standby);
    } catch (...) {
      of_.memory_->give(taken);
      throw;
    }
  }
  void wait() override {
    const entered here(of_.cu_, of_.context());
    for (const bool to_device : {false, true})
      if (std::exchange(is_copying_[to_device], false))
        of_.check(of_.cu_.cuStreamSynchronize(to_device ? of_.clearing_ : of_.leaving_), "moving bytes of a device");
  }
  std::vector<std::optional<error>> finish() override {
    wait();
    const entered here(of_.cu_, of_.context());
    auto failures = of_.set_.memory().replace(ranges_, of_.users(), of_.after_unmap());
    for (std::size_t n = 0; n < ranges_.size(); ++n) {
      const bool was_taken = ranges_[n].at.where == backing_kind::device;
      if (was_taken == failures[n].has_value()) of_.memory_->give(ranges_[n].bytes);
      if (failures[n] && failures[n]->status() == HPE_ERROR_DEVICE_LOST) of_.look();
    }
    ranges_.clear();
    return failures;
  }

 private:
  cuda_device& of_;
  std::vector<device_memory::replacement> ranges_;
  bool is_copying_[2] = {};  // to zero-copy memory, to device memory
};

std::unique_ptr<group_of_moves> cuda_device::begin_moves() { return std::make_unique<cuda_moves>(*this); }

bool cuda_device::has_standby(const void* address) const {
  return set_.memory().has_standby(reinterpret_cast<std::uintptr_t>(address));
}

void cuda_device::drop_standby() noexcept {
  log_failure_of("returning host memory", [&] {
    const entered here(cu_, context());
    set_.memory().drop_standby();
  });
}

// The driver can allocate large memory only if hpe does not keep unmapped memory.
bool cuda_device::withhold(std::size_t bytes) noexcept {
  if (!memory_->try_take(bytes)) return false;
  set_.memory().drop_kept(index_, bytes >= granule_size ? 0 : memory_->free());
  return true;
}

stream& cuda_device::create_stream(priority level) {
  require_alive();
  cuda_stream& made = set_.add_stream(*this, level);
  const std::lock_guard lock(mutex_);
  streams_.push_back(&made);
  return made;
}

void cuda_device::await_room(const stream* next) {
  std::vector<const cuda_stream*> crowded;
  {
    const std::lock_guard lock(mutex_);
    std::ranges::copy_if(streams_, std::back_inserter(crowded), [&](const cuda_stream* s) {
      return s->is_crowded() && (next == nullptr || s == next || !s->ends_elsewhere());
    });
  }
  for (const cuda_stream* s : crowded)
    if (const timepoint point = s->end_of_crowd(); !point.none())
      set_.wait(point, std::chrono::steady_clock::time_point::max());
}

void cuda_device::require_alive() const {
  if (lost()) throw loss();
}

error cuda_device::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

std::string cuda_device::words_for_loss(CUresult why) const {
  std::string words = fmt::format("device {} ({}) is lost: {}", index_, properties_.name, cu_.words_for(why));
  const char* before = "; kernels that were running or queued next: ";
  for (const cuda_stream* s : streams_)
    if (const std::string name = s->lost_kernel(); !name.empty()) words += std::exchange(before, ", ") + name;
  return words;
}

void cuda_device::lose(CUresult why) noexcept {
  std::list<device_failure> report;
  {
    const std::lock_guard lock(mutex_);
    if (lost_) return;
    lost_ = true;
    for (cuda_stream* s : streams_) s->lose();
    report.swap(report_of_loss_);
    try {
      loss_ = {HPE_ERROR_DEVICE_LOST, words_for_loss(why)};
      report.front().second = loss_;
    } catch (const std::bad_alloc&) {  // the errors that the constructor has made remain
    }
  }
  // When the process ends, the driver shuts down and reports CUDA_ERROR_DEINITIALIZED. This is not a failure of the
  // device.
  if (why == CUDA_ERROR_DEINITIALIZED) return;
  set_.failed(report);
  log(log_level::warn, "{}", loss().what());
  // After a kernel has made one context unusable, the contexts of this process on other GPUs are unusable, too (seen
  // with driver 580, with and without peer access).
  for (unsigned d = 0; d < set_.size(); ++d) set_.gpu(d).look();
}

void cuda_device::look() noexcept {
  CUcontext const made = context_if_started();
  if (lost() || made == nullptr) return;
  const entered here(cu_, made);
  if (const CUresult result = cu_.cuStreamQuery(clearing_); kills_context(result)) lose(result);
}

}  // namespace hpe::device::cuda
