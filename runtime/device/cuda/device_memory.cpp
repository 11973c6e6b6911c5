// Invariant: after the first call of reserve(), map() or import_memory() for addresses in a segment of the UVAS, this
// segment stays reserved with the driver (cuMemAddressReserve). The driver reserves only addresses at which the host
// has mapped nothing, so the runtime first unmaps its own placeholder there. The driver then maps a placeholder of its
// own, and the runtime maps host views over the driver's placeholder.
#include "runtime/device/cuda/device_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <numeric>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::cuda {

namespace {

// The size of the largest unmapped range whose memory is kept. A larger range is usually a whole allocation of the
// program: its memory returns to the driver, because other programs may need it.
constexpr std::size_t largest_kept = std::size_t{64} << 20;
// For all devices together: the memory of two groups of pieces that move (work::eviction), and 256 MiB.
constexpr std::size_t most_kept = 12 * largest_kept;

CUmemLocation location_of(CUdevice device) {
  CUmemLocation result{};
  result.type = CU_MEM_LOCATION_TYPE_DEVICE;
  result.id = device;
  return result;
}

/// Unmaps neighbouring ranges. range_of(r): the address and the size of a range. Returns false if the driver has not
/// unmapped all of them, which happens only if the device is lost.
template <class Iterator, class RangeOf>
bool unmap_neighbours(const driver& cu, Iterator first, Iterator last, const RangeOf& range_of) noexcept {
  std::size_t all = 0;
  for (Iterator each = first; each != last; ++each) all += range_of(*each).second;
  if (all == 0 || cu.cuMemUnmap(range_of(*first).first, all) == CUDA_SUCCESS) return true;
  if (std::next(first) == last) return false;
  bool is_unmapped = true;  // a driver may want one call for each mapping
  for (Iterator each = first; each != last; ++each) {
    const auto [address, bytes] = range_of(*each);
    is_unmapped = cu.cuMemUnmap(address, bytes) == CUDA_SUCCESS && is_unmapped;
  }
  return is_unmapped;
}

void* pointer(std::uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): addresses come from the layout
}

}  // namespace

device_memory::device_memory(const driver& cu, const uvas_layout& layout)
    : cu_(cu), layout_(layout), reserved_(layout.segments), admitted_(layout.segments) {
  kept_.reserve(most_kept / granule_size);
}

device_memory::~device_memory() {
  for (const auto& [begin, mapped] : mappings_) {
    cu_.cuMemUnmap(begin, mapped.end - begin);
    release(mapped.value, mapped.end - begin);
  }
  for (const kept_allocation& a : kept_) release({a.device, a.memory, backing_kind::device, a.other_address}, a.bytes);
  drop_standby(0, ~std::uintptr_t{0});
  for (const auto& [device, memory] : common_) cu_.cuMemRelease(memory);
  for (unsigned s = 0; s < layout_.segments; ++s)
    if (reserved_[s]) cu_.cuMemAddressFree(layout_.base + s * layout_.segment_size, layout_.segment_size);
}

void device_memory::require_free(std::uintptr_t address, std::size_t bytes) const {
  HPE_REQUIRE(!mappings_.overlaps(address, address + bytes), HPE_ERROR_INVALID_ARGUMENT,
              "a part of the {} bytes at {:#x} has memory behind it already", bytes, address);
}

void device_memory::reserve_around(std::uintptr_t address, std::size_t bytes) {
  const std::size_t size = layout_.segment_size;
  for (std::size_t s = (address - layout_.base) / size; s <= (address + bytes - 1 - layout_.base) / size; ++s) {
    if (reserved_[s]) continue;
    const std::uintptr_t begin = layout_.base + s * size;
    ::munmap(pointer(begin), size);
    CUdeviceptr got = 0;
    const CUresult result = cu_.cuMemAddressReserve(&got, size, 0, begin, 0);
    if (result == CUDA_SUCCESS && got == begin) {
      reserved_[s] = true;
      continue;
    }
    if (result == CUDA_SUCCESS) cu_.cuMemAddressFree(got, size);
    // Map the runtime's placeholder again, unless another thread has mapped something there.
    (void)::mmap(pointer(begin), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
                 0);
    // Not HPE_ERROR_OUT_OF_MEMORY: an allocation without device memory also needs the reservation, because a later
    // reservation would unmap the allocation's view.
    HPE_THROW(HPE_ERROR_SYSTEM,
              "the CUDA driver does not give the {} bytes of address space at {:#x} to a device ({}); set "
              "HPE_ADDRESS_BASE to another address",
              size, begin, result == CUDA_SUCCESS ? "the addresses are in use" : cu_.words_for(result));
  }
}

void device_memory::reserve(std::uintptr_t address, std::size_t bytes) {
  const lock_guard lock(mutex_);
  reserve_around(address, bytes);
}

device_memory::mapped_allocation device_memory::create(std::size_t bytes, const place& at) {
  if (at.where == backing_kind::common) return {at.device, common(at), at.where};
  if (at.where == backing_kind::zero_copy) return {at.device, create_zero_copy(bytes, at), at.where};
  const auto found =
      std::ranges::find_if(kept_, [&](const kept_allocation& p) { return p.device == at.device && p.bytes == bytes; });
  if (found == kept_.end()) {
    release_kept(at.device, at.most_kept);
    return {at.device, create_on_device(bytes, at), at.where};
  }
  const kept_allocation kept = *found;
  kept_.erase(found);
  return {at.device, kept.memory, at.where, kept.other_address};
}

CUmemGenericAllocationHandle device_memory::create_on_device(std::size_t bytes, const place& at) {
  const unsigned device = at.device;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = location_of(at.ordinal);
  if (shareable(at.ordinal)) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemGenericAllocationHandle memory = 0;
  CUresult created = cu_.cuMemCreate(&memory, bytes, &properties, 0);
  if (created == CUDA_ERROR_OUT_OF_MEMORY && !kept_.empty()) {
    release_kept(device);
    created = cu_.cuMemCreate(&memory, bytes, &properties, 0);
  }
  if (created == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t free = 0;
    std::size_t total = 0;
    cu_.cuMemGetInfo(&free, &total);
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "device {} has {} of {} bytes of memory left; {} bytes were requested", device,
              free, total, bytes);
  }
  cu_.check(created, "creating device memory");
  return memory;
}

// The driver shares no memory of this location between processes, so the memory has no type of handle.
CUmemGenericAllocationHandle device_memory::create_zero_copy(std::size_t bytes, const place& at) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
  properties.location.id = at.numa_node;
  CUmemGenericAllocationHandle memory = 0;
  CUresult created = cu_.cuMemCreate(&memory, bytes, &properties, 0);
  if (created == CUDA_ERROR_OUT_OF_MEMORY && !standby_.empty()) {
    drop_standby(0, ~std::uintptr_t{0});
    created = cu_.cuMemCreate(&memory, bytes, &properties, 0);
  }
  HPE_REQUIRE(created != CUDA_ERROR_OUT_OF_MEMORY, HPE_ERROR_OUT_OF_MEMORY,
              "the CUDA driver has no {} bytes of host memory that device {} can access{}", bytes, at.device,
              limit_of_locked(bytes));
  HPE_REQUIRE(created != CUDA_ERROR_NOT_SUPPORTED && created != CUDA_ERROR_INVALID_VALUE &&
                  created != CUDA_ERROR_INVALID_DEVICE,
              HPE_ERROR_NOT_SUPPORTED, "the CUDA driver maps no host memory at addresses of device memory: {}",
              cu_.words_for(created));
  cu_.check(created, "creating host memory for a GPU");
  return memory;
}

std::string device_memory::limit_of_locked(std::size_t more) const {
  std::size_t locked = 0;
  for (const auto& [begin, mapped] : mappings_)
    if (mapped.value.where == backing_kind::zero_copy) locked += mapped.end - begin;
  for (const auto& [begin, kept] : standby_) locked += kept.bytes;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || locked + more <= limit.rlim_cur)
    return {};
  return fmt::format("; it has given this process {} bytes, which may lock {} (RLIMIT_MEMLOCK, ulimit -l)", locked,
                     limit.rlim_cur);
}

CUmemGenericAllocationHandle device_memory::common(const place& at) {
  const auto found = common_.find(at.device);
  if (found != common_.end()) return found->second;
  const auto made = common_.emplace(at.device, 0).first;
  try {
    made->second = create_on_device(granule_size, at);
  } catch (...) {
    common_.erase(made);
    throw;
  }
  return made->second;
}

void device_memory::release(const mapped_allocation& memory, std::size_t bytes) const noexcept {
  if (memory.other_address != 0) {
    cu_.cuMemUnmap(memory.other_address, bytes);
    cu_.cuMemAddressFree(memory.other_address, bytes);
  }
  if (memory.where != backing_kind::common) cu_.cuMemRelease(memory.memory);
}

void device_memory::release_kept(unsigned device, std::size_t most) noexcept {
  std::size_t all = 0;
  for (const kept_allocation& p : kept_)
    if (p.device == device) all += p.bytes;
  std::erase_if(kept_, [&](const kept_allocation& p) {  // the oldest first
    if (p.device != device || all <= most) return false;
    all -= p.bytes;
    release({p.device, p.memory, backing_kind::device, p.other_address}, p.bytes);
    return true;
  });
}

void device_memory::keep(const mapped_allocation& memory, std::size_t bytes) noexcept {
  if (memory.file || bytes > largest_kept) return release(memory, bytes);
  std::size_t all = bytes;
  for (const kept_allocation& p : kept_) all += p.bytes;
  auto rest = kept_.begin();  // memory of sizes that no range needs is the oldest
  for (; all > most_kept; ++rest) {
    release({rest->device, rest->memory, backing_kind::device, rest->other_address}, rest->bytes);
    all -= rest->bytes;
  }
  kept_.erase(kept_.begin(), rest);
  kept_.push_back({memory.device, bytes, memory.memory, memory.other_address});
}

void device_memory::stand_by(std::uintptr_t address, std::size_t bytes, const mapped_allocation& memory) noexcept {
  try {
    standby_.insert_or_assign(address, kept_allocation{memory.device, bytes, memory.memory, memory.other_address});
  } catch (const std::bad_alloc&) {
    release(memory, bytes);
  }
}

void device_memory::drop_standby(std::uintptr_t begin, std::uintptr_t end) noexcept {
  for (auto each = standby_.lower_bound(begin); each != standby_.end() && each->first < end;) {
    const kept_allocation& its = each->second;
    release({its.device, its.memory, backing_kind::zero_copy, its.other_address}, its.bytes);
    each = standby_.erase(each);
  }
}

void device_memory::drop_standby() noexcept {
  const lock_guard lock(mutex_);
  drop_standby(0, ~std::uintptr_t{0});
}

bool device_memory::has_standby(std::uintptr_t address) const {
  const shared_lock_guard lock(mutex_);
  return standby_.contains(address);
}

std::size_t device_memory::kept(unsigned device) const {
  const shared_lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const kept_allocation& p : kept_)
    if (p.device == device) sum += p.bytes;
  return sum;
}

// Records the mapping before the driver maps the memory, so that no host memory is needed after the driver's call.
void device_memory::map_memory(std::uintptr_t address, std::size_t bytes, mapped_allocation of,
                               std::span<const CUmemAccessDesc> access) {
  const mapped_allocation memory{of.device, of.memory, of.where, of.other_address};
  try {
    mappings_.insert(address, address + bytes, std::move(of));
  } catch (...) {
    release(memory, bytes);
    throw;
  }
  CUresult result = cu_.cuMemMap(address, bytes, 0, memory.memory, 0);
  if (result == CUDA_SUCCESS && !access.empty()) {
    result = cu_.cuMemSetAccess(address, bytes, access.data(), access.size());
    if (result != CUDA_SUCCESS) cu_.cuMemUnmap(address, bytes);
  }
  if (result == CUDA_SUCCESS) return;
  mappings_.erase(mappings_.from(address));
  release(memory, bytes);
  cu_.fail(result, "mapping device memory");
}

std::vector<CUmemAccessDesc> device_memory::access_of(std::span<const user> users) const {
  std::vector<CUmemAccessDesc> access;
  for (const user& each : users)
    if (admitted_[each.device]) access.push_back({location_of(each.ordinal), CU_MEM_ACCESS_FLAGS_PROT_READWRITE});
  return access;
}

void device_memory::map(std::uintptr_t address, std::size_t bytes, const place& at, std::span<const user> users) {
  const lock_guard lock(mutex_);
  const std::vector<CUmemAccessDesc> access = access_of(users);
  require_free(address, bytes);
  reserve_around(address, bytes);
  HPE_INVARIANT(at.where != backing_kind::common || bytes == granule_size);
  map_memory(address, bytes, create(bytes, at), access);
}

void device_memory::map_elsewhere(mapped_allocation& memory, std::size_t bytes, const place& at) {
  const CUmemAccessDesc access{location_of(at.ordinal), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr address = 0;
  CUresult result = cu_.cuMemAddressReserve(&address, bytes, 0, 0, 0);
  if (result == CUDA_SUCCESS) {
    result = cu_.cuMemMap(address, bytes, 0, memory.memory, 0);
    if (result == CUDA_SUCCESS) {
      memory.other_address = address;
      result = cu_.cuMemSetAccess(address, bytes, &access, 1);
      if (result == CUDA_SUCCESS) return;
    } else {
      cu_.cuMemAddressFree(address, bytes);
    }
  }
  release(memory, bytes);
  cu_.fail(result, "mapping memory at a second address");
}

device_memory::replacement device_memory::prepare(std::uintptr_t address, std::size_t bytes, const place& at) {
  const lock_guard lock(mutex_);
  const auto kept = at.where == backing_kind::zero_copy ? standby_.extract(address) : decltype(standby_)::node_type();
  const bool is_kept = !kept.empty();
  HPE_INVARIANT(!is_kept || kept.mapped().bytes == bytes);  // unmap() frees the memory of ranges that end
  mapped_allocation made =
      is_kept ? mapped_allocation{at.device, kept.mapped().memory, at.where, kept.mapped().other_address}
              : create(bytes, at);
  if (made.other_address == 0) map_elsewhere(made, bytes, at);
  return {address, bytes, at, made.memory, made.other_address, is_kept};
}

std::pair<std::uintptr_t, std::size_t> device_memory::range_of_change(const changed_range& r) noexcept {
  return {r.by->address, r.by->bytes};
}

CUresult device_memory::map_run(std::span<const changed_range> run, std::span<const CUmemAccessDesc> access,
                                bool is_new) const noexcept {
  CUresult result = CUDA_SUCCESS;
  std::size_t mapped = 0;
  for (; mapped < run.size(); ++mapped) {
    const changed_range& r = run[mapped];
    result = cu_.cuMemMap(r.by->address, r.by->bytes, 0, is_new ? r.by->memory : r.mapped->memory, 0);
    if (result != CUDA_SUCCESS) break;
  }
  const std::uintptr_t begin = run.front().by->address, end = run.back().by->address + run.back().by->bytes;
  if (result == CUDA_SUCCESS && !access.empty())
    result = cu_.cuMemSetAccess(begin, end - begin, access.data(), access.size());
  if (result != CUDA_SUCCESS) unmap_neighbours(cu_, run.data(), run.data() + mapped, range_of_change);
  return result;
}

// Needs no memory of the C++ library after the first call of the driver.
CUresult device_memory::replace_run(std::span<const changed_range> run, std::span<const CUmemAccessDesc> access,
                                    after what) noexcept {
  unmap_neighbours(cu_, run.data(), run.data() + run.size(), range_of_change);
  const CUresult result = map_run(run, access, true);
  const bool is_lost = result != CUDA_SUCCESS && map_run(run, access, false) != CUDA_SUCCESS;
  for (const auto& [by, mapped, number] : run) {
    mapped_allocation made{by->at.device, by->memory, by->at.where, by->other_address};
    if (result != CUDA_SUCCESS) {
      release(made, by->bytes);
      if (!is_lost) continue;
      release(*mapped, by->bytes);
      mappings_.erase(mappings_.from(by->address));
      continue;
    }
    const mapped_allocation old = std::exchange(*mapped, std::move(made));
    if (old.where == backing_kind::zero_copy)
      stand_by(by->address, by->bytes, old);
    else
      what == after::kept ? keep(old, by->bytes) : release(old, by->bytes);
  }
  return result;
}

std::vector<std::optional<error>> device_memory::replace(std::span<const replacement> all, std::span<const user> users,
                                                         after what) {
  std::vector<std::optional<error>> failures(all.size());
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t n) { return all[n].address; });
  const error short_of_memory(HPE_ERROR_OUT_OF_MEMORY, "the C++ library has no memory for a change of mappings");
  std::vector<changed_range> run;
  run.reserve(all.size());
  for (std::size_t first = 0; first < order.size();) {
    const lock_guard lock(mutex_);  // other threads may use memory between two changes
    run.clear();
    for (std::uintptr_t end = 0; first < order.size(); ++first) {
      const replacement& by = all[order[first]];
      if (!run.empty() && (by.address != end || by.at.where != run.front().by->at.where)) break;
      const auto found = mappings_.find(by.address);
      end = by.address + by.bytes;
      HPE_INVARIANT(found != mappings_.end() && found->first == by.address && found->second.end == end);
      run.push_back({&by, &found->second.value, order[first]});
    }
    try {
      const std::vector<CUmemAccessDesc> access = access_of(users);
      const CUresult result = replace_run(run, access, what);
      if (result == CUDA_SUCCESS) continue;
      for (const changed_range& r : run) failures[r.number] = cu_.failure(result, "mapping device memory");
    } catch (const std::bad_alloc&) {
      for (const changed_range& r : run) failures[r.number] = short_of_memory;
    }
  }
  return failures;
}

void device_memory::cancel(const replacement& by) noexcept {
  const lock_guard lock(mutex_);
  const mapped_allocation memory{by.at.device, by.memory, by.at.where, by.other_address};
  by.at.where == backing_kind::zero_copy ? stand_by(by.address, by.bytes, memory) : keep(memory, by.bytes);
}

void device_memory::admit(unsigned device, CUdevice ordinal, const std::vector<bool>& reached) {
  const CUmemAccessDesc access{location_of(ordinal), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const lock_guard lock(mutex_);
  for (const auto& [begin, mapped] : mappings_) {
    const unsigned home = mapped.value.device;
    if (home < reached.size() && reached[home])
      cu_.check(cu_.cuMemSetAccess(begin, mapped.end - begin, &access, 1), "letting a GPU access memory");
  }
  admitted_[device] = true;
}

std::size_t device_memory::unmap(std::uintptr_t address, std::size_t bytes, unsigned device, after what) {
  const lock_guard lock(mutex_);
  const auto first = mappings_.from(address);
  auto last = first;
  std::uintptr_t at = address;
  for (; last != mappings_.end() && last->first == at && at < address + bytes && last->second.value.device == device;
       ++last)
    at = last->second.end;
  HPE_REQUIRE(at == address + bytes, HPE_ERROR_INVALID_ARGUMENT,
              "the {} bytes at {:#x} are not one or several whole ranges that were mapped for device {}", bytes,
              address, device);
  const bool is_unmapped = unmap_neighbours(
      cu_, first, last, [](const auto& each) { return std::pair(each.first, each.second.end - each.first); });
  std::size_t of_device = 0;
  for (auto it = first; it != last; it = mappings_.erase(it)) {
    const std::size_t size = it->second.end - it->first;
    const mapped_allocation& old = it->second.value;
    const bool is_of_device = old.where == backing_kind::device;
    if (is_of_device) of_device += size;
    if (is_unmapped && what == after::kept && is_of_device)
      keep(old, size);
    else
      release(old, size);
  }
  drop_standby(address, address + bytes);
  return of_device;
}

bool device_memory::shareable(CUdevice home) const {
  int possible = 0;
  return cu_.cuMemExportToShareableHandle != nullptr &&
         cu_.cuDeviceGetAttribute(&possible, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, home) ==
             CUDA_SUCCESS &&
         possible != 0;
}

std::vector<shared_part> device_memory::share(std::uintptr_t address, std::size_t bytes) {
  const lock_guard lock(mutex_);
  std::vector<shared_part> parts;
  auto it = mappings_.from(address);
  for (std::uintptr_t at = address; at < address + bytes; ++it) {
    HPE_REQUIRE(it != mappings_.end() && it->first == at && it->second.value.device != foreign &&
                    it->second.value.where == backing_kind::device,
                HPE_ERROR_INVALID_ARGUMENT, "the {} bytes at {:#x} to be shared are not whole ranges of device memory",
                bytes, address);
    mapped_allocation& whole = it->second.value;
    if (!whole.file) {
      HPE_REQUIRE(cu_.cuMemExportToShareableHandle != nullptr, HPE_ERROR_NOT_SUPPORTED,
                  "the CUDA driver of this machine cannot share memory between processes");
      int file = -1;
      const CUresult result =
          cu_.cuMemExportToShareableHandle(&file, whole.memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
      HPE_REQUIRE(result == CUDA_SUCCESS, HPE_ERROR_NOT_SUPPORTED,
                  "the CUDA driver does not share this memory with other processes: {}", cu_.words_for(result));
      whole.file = os::file_descriptor(file);
    }
    parts.push_back({whole.file.get(), 0, it->second.end - at});
    at = it->second.end;
  }
  return parts;
}

void device_memory::import_part(std::uintptr_t address, const shared_part& part) {
  CUmemGenericAllocationHandle memory = 0;
  // The driver expects the file descriptor in an argument of pointer type.
  const CUresult result = cu_.cuMemImportFromShareableHandle(&memory, pointer(static_cast<unsigned>(part.file)),
                                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  HPE_REQUIRE(result == CUDA_SUCCESS, HPE_ERROR_NOT_SUPPORTED,
              "the CUDA driver does not take memory of another process: {}", cu_.words_for(result));
  map_memory(address, part.bytes, {foreign, memory}, {});
}

std::uint32_t device_memory::import_memory(std::uintptr_t address, std::span<const shared_part> parts,
                                           std::span<const std::optional<CUdevice>> users) {
  HPE_REQUIRE(cu_.cuMemImportFromShareableHandle != nullptr, HPE_ERROR_NOT_SUPPORTED,
              "the CUDA driver of this machine cannot share memory between processes");
  std::uintptr_t end = address;
  std::uint32_t reached = 0;
  try {
    const lock_guard lock(mutex_);
    for (const shared_part& part : parts) {
      require_free(end, part.bytes);
      reserve_around(end, part.bytes);
      import_part(end, part);
      end += part.bytes;
    }
    // Try each GPU: only the driver knows which GPU's memory this is, and hence which GPUs can access it.
    for (std::size_t d = 0; d < users.size(); ++d) {
      if (!users[d]) continue;
      const CUmemAccessDesc access{location_of(*users[d]), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
      if (cu_.cuMemSetAccess(address, end - address, &access, 1) == CUDA_SUCCESS) reached |= std::uint32_t{1} << d;
    }
    HPE_REQUIRE(reached != 0, HPE_ERROR_NOT_SUPPORTED, "no GPU of this process reaches the memory that was exported");
  } catch (...) {
    if (end != address) unmap(address, end - address, foreign, after::released);
    throw;
  }
  return reached;
}

std::optional<device_memory::device_mapping> device_memory::find(std::uintptr_t address) const {
  const shared_lock_guard lock(mutex_);
  const auto found = mappings_.find(address);
  if (found == mappings_.end()) return std::nullopt;
  return device_mapping{found->second.value.device, found->second.end};
}

}  // namespace hpe::device::cuda
