// Device memory. Like the driver, the stand-in allocates blocks, in which small objects share pages; CPU code cannot
// read the addresses of a block. The bytes of a block are in a file, which the stand-in maps at other addresses, and
// which other processes open by the IPC handle. Blocks of an ended context are reused. If a block's only object is
// large and is freed, the addresses of the block are reused with other memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include "runtime/base/box.h"
#include "tests/interpose/gpu/stand_in/machine.h"

namespace stand_in {

namespace {

std::mutex state;

struct memory_block {
  std::size_t bytes;
  std::byte* alias;
  int device;
  int file;
  bool spare = false;     // the block no longer has objects
  bool imported = false;  // memory of another process
};
struct owned {
  std::size_t bytes;
  context* of;
  bool registered = false;
  std::uint64_t number = 0;
  bool of_pool = false;
  bool mapped = false;
  std::byte* alias = nullptr;  // of pinned memory: where devices have its first byte
};

// The content of a CUipcMemHandle.
struct shared_object {
  int process;
  int file;
  std::uint64_t file_bytes;
  std::uint64_t offset;
  std::uint64_t bytes;
};

template <class T>
T& immortal() {
  static auto* const it = new T;
  return *it;
}
std::map<CUdeviceptr, memory_block>& blocks() { return immortal<std::map<CUdeviceptr, memory_block>>(); }
std::map<CUdeviceptr, owned>& objects() { return immortal<std::map<CUdeviceptr, owned>>(); }
std::map<CUdeviceptr, owned>& pinned() {
  static auto* const it = new std::map<CUdeviceptr, owned>;  // immortal() has only one object of a type
  return *it;
}

constexpr std::size_t block_bytes = std::size_t{2} << 20;
constexpr std::size_t alignment = 512;
constexpr int no_device = -1;  // the device of a range of addresses

struct place {
  CUdeviceptr next = 0;
  CUdeviceptr end = 0;
};
place places[device_count];
bool reach[device_count][device_count];

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

template <class Map>
auto containing(Map& map, CUdeviceptr address) {
  auto found = map.upper_bound(address);
  if (found == map.begin()) return map.end();
  --found;
  return address - found->first < found->second.bytes ? found : map.end();
}

std::uint64_t objects_made = 0;
std::atomic<bool> peers_refused{false};

std::byte* map_bytes(int file, std::size_t bytes) {
  return static_cast<std::byte*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
}

// Makes a block at the address `at`, or at any address if `at` is null.
CUdeviceptr make_block(void* at, int device, std::size_t size) {
  const int file = ::memfd_create("stand-in", MFD_CLOEXEC);
  if (::ftruncate(file, static_cast<off_t>(size)) != 0) std::abort();
  if (at == nullptr) at = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  blocks()[number_of(at)] = {size, map_bytes(file, size), device, file};
  return number_of(at);
}

CUdeviceptr block_for(int device, std::size_t room) {
  auto best = blocks().end();
  for (auto it = blocks().begin(); it != blocks().end(); ++it)
    if (const memory_block& b = it->second; b.spare && b.device == device && b.bytes >= room)
      if (best == blocks().end() || b.bytes < best->second.bytes) best = it;
  if (best != blocks().end()) return best->second.spare = false, best->first;
  return make_block(nullptr, device, (room + block_bytes - 1) / block_bytes * block_bytes);
}

}  // namespace

CUdeviceptr allocate(context& c, std::size_t bytes, bool of_pool) {
  const std::lock_guard lock(state);
  const std::size_t room = (bytes + alignment - 1) / alignment * alignment;
  place& at = places[c.device];
  if (at.next + room > at.end) {
    at.next = block_for(c.device, room);
    at.end = at.next + blocks()[at.next].bytes;
  }
  const CUdeviceptr result = at.next;
  at.next += room;
  objects()[result] = {bytes, &c, false, ++objects_made, of_pool};
  return result;
}

bool free_memory(CUdeviceptr address) {
  const std::lock_guard lock(state);
  const auto found = objects().find(address);
  if (found == objects().end()) return false;
  const bool large = found->second.bytes > block_bytes / 2;
  objects().erase(found);
  const auto block = containing(blocks(), address);
  if (!large || block == blocks().end()) return true;
  const auto next = objects().lower_bound(block->first);
  if (next != objects().end() && next->first < block->first + block->second.bytes) return true;
  const auto [begin, old] = *block;
  ::munmap(old.alias, old.bytes);
  ::close(old.file);
  make_block(pointer(begin), old.device, old.bytes);
  blocks()[begin].spare = true;
  if (places[old.device].end == begin + old.bytes) places[old.device] = {};
  return true;
}

bool share_object(CUdeviceptr address, CUipcMemHandle& handle) {
  const std::lock_guard lock(state);
  const auto at = containing(objects(), address);
  const auto block = containing(blocks(), address);
  if (at == objects().end() || block == blocks().end() || at->second.of_pool || at->second.mapped) return false;
  const shared_object shared{::getpid(), block->second.file, block->second.bytes, at->first - block->first,
                             at->second.bytes};
  handle = {};
  static_assert(sizeof shared <= sizeof handle);
  std::memcpy(&handle, &shared, sizeof shared);
  return true;
}

CUdeviceptr open_object(context& c, const CUipcMemHandle& handle) {
  if (peers_refused) return 0;
  shared_object shared;
  std::memcpy(&shared, &handle, sizeof shared);
  if (shared.process == ::getpid()) return 0;
  const std::string name = "/proc/" + std::to_string(shared.process) + "/fd/" + std::to_string(shared.file);
  const int file = ::open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return 0;
  void* const at = ::mmap(nullptr, shared.file_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const std::lock_guard lock(state);
  blocks()[number_of(at)] = {shared.file_bytes, map_bytes(file, shared.file_bytes), c.device, file, false, true};
  const CUdeviceptr result = number_of(at) + shared.offset;
  objects()[result] = {shared.bytes, &c, false, ++objects_made};
  return result;
}

bool close_object(CUdeviceptr address) {
  const std::lock_guard lock(state);
  const auto block = containing(blocks(), address);
  if (block == blocks().end() || objects().erase(address) != 1) return false;
  ::munmap(block->second.alias, block->second.bytes);
  ::munmap(pointer(block->first), block->second.bytes);
  ::close(block->second.file);
  blocks().erase(block);
  return true;
}

// Devices do not use the program's mapping of pinned memory, so the program may protect it.
void* allocate_pinned(context& c, std::size_t bytes) {
  const int file = ::memfd_create("pinned", MFD_CLOEXEC);
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) std::abort();
  void* const result = map_bytes(file, bytes);
  std::byte* const alias = map_bytes(file, bytes);
  ::close(file);
  const std::lock_guard lock(state);
  pinned()[number_of(result)] = {bytes, &c, false, 0, false, false, alias};
  return result;
}

bool free_pinned(void* address) {
  const std::lock_guard lock(state);
  const auto found = pinned().find(number_of(address));
  if (found == pinned().end() || found->second.registered) return false;
  ::munmap(address, found->second.bytes);
  ::munmap(found->second.alias, found->second.bytes);
  pinned().erase(found);
  return true;
}

namespace {

// With STAND_IN_OWN_PAGES, replaces the pages of registered memory by pages that are also at the address that this
// function returns. Returns null if the pages contain other data too: the memory neither consists of whole pages nor is
// a large block of malloc.
std::byte* share_pages(void* address, std::size_t bytes) {
  static const bool is_wanted = std::getenv("STAND_IN_OWN_PAGES") != nullptr;
  constexpr std::size_t page = 4096, header = 2 * sizeof(std::size_t), is_mapped = 2;
  const std::size_t before = number_of(address) % page;
  const bool is_whole = before == 0 && bytes % page == 0;
  const bool is_block = before == header && (static_cast<const std::size_t*>(address)[-1] & is_mapped) != 0;
  if (!is_wanted || !(is_whole || is_block)) return nullptr;
  const std::size_t all = (before + bytes + page - 1) / page * page;
  void* const first = static_cast<std::byte*>(address) - before;
  const int file = ::memfd_create("registered", MFD_CLOEXEC);
  if (::ftruncate(file, static_cast<off_t>(all)) != 0) std::abort();
  std::byte* const alias = map_bytes(file, all);
  std::memcpy(alias, first, all);
  ::mmap(first, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  ::close(file);
  return alias + before;
}

}  // namespace

bool register_pinned(context& c, void* address, std::size_t bytes) {
  const std::lock_guard lock(state);
  if (pinned().contains(number_of(address))) return false;
  pinned()[number_of(address)] = {bytes, &c, true, 0, false, false, share_pages(address, bytes)};
  return true;
}

bool unregister_pinned(void* address) {
  const std::lock_guard lock(state);
  const auto found = pinned().find(number_of(address));
  if (found == pinned().end() || !found->second.registered) return false;
  pinned().erase(found);
  return true;
}

bool find_object(CUdeviceptr address, object& found) {
  const std::lock_guard lock(state);
  const auto at = containing(objects(), address);
  if (at == objects().end()) return false;
  found = {
      at->first,        at->second.bytes, at->second.of, at->second.number, at->second.of_pool || at->second.mapped,
      at->second.mapped};
  return true;
}

// Whether a range is in device memory. The range may extend over several neighbouring mappings, because a copy may use
// them.
bool is_device(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(state);
  auto at = containing(objects(), address);
  while (at != objects().end()) {
    const CUdeviceptr end = at->first + at->second.bytes;
    if (bytes <= end - address) return true;
    at = at->second.mapped ? objects().find(end) : objects().end();
  }
  return false;
}

void add_range(CUdeviceptr base, std::size_t bytes, std::byte* alias) {
  const std::lock_guard lock(state);
  blocks()[base] = {bytes, alias, no_device, -1};
}

bool remove_range(CUdeviceptr base) {
  const std::lock_guard lock(state);
  const auto found = blocks().find(base);
  if (found == blocks().end() || found->second.device != no_device) return false;
  blocks().erase(found);
  return true;
}

void add_mapping(CUdeviceptr address, std::size_t bytes, int device) {
  const std::lock_guard lock(state);
  objects()[address] = {bytes, primary(device), false, ++objects_made, false, true};
}

bool remove_mapping(CUdeviceptr address) {
  const std::lock_guard lock(state);
  const auto found = objects().find(address);
  if (found == objects().end() || !found->second.mapped) return false;
  objects().erase(found);
  return true;
}

bool is_pinned(CUdeviceptr address) {
  const std::lock_guard lock(state);
  return containing(pinned(), address) != pinned().end();
}

std::byte* memory_at(CUdeviceptr address) {
  const std::lock_guard lock(state);
  if (const auto found = containing(blocks(), address); found != blocks().end())
    return found->second.alias + (address - found->first);
  const auto found = containing(pinned(), address);
  return found != pinned().end() && found->second.alias != nullptr ? found->second.alias + (address - found->first)
                                                                   : static_cast<std::byte*>(pointer(address));
}

bool reaches(int from, int to) {
  const std::lock_guard lock(state);
  return from == to || reach[from][to];
}

void set_reach(int from, int to, bool on) {
  const std::lock_guard lock(state);
  reach[from][to] = on;
}

void end(context& c) {
  wait_for(c);
  const std::lock_guard lock(state);
  ++c.generation;
  c.users = 0;
  std::erase_if(objects(), [&](const auto& o) { return o.second.of == &c && !o.second.mapped; });
  std::erase_if(pinned(), [&](const auto& p) {
    if (p.second.of != &c) return false;
    if (!p.second.registered) {
      ::munmap(pointer(p.first), p.second.bytes);
      ::munmap(p.second.alias, p.second.bytes);
    }
    return true;
  });
  if (&c != primary(c.device)) return;  // the blocks also have objects of other contexts
  for (auto& [address, b] : blocks()) {
    if (b.device != c.device || b.imported) continue;
    b.spare = true;
    // Overwrites the old bytes, so that a use of the ended context's memory is noticed.
    std::memset(b.alias, 0xdb, b.bytes);
  }
  places[c.device] = {};
  for (int d = 0; d < device_count; ++d) reach[c.device][d] = false;
}

void count_memory(held& all) {
  const std::lock_guard lock(state);
  for (const auto& [address, o] : objects()) all.allocations += o.mapped ? 0 : 1;
  all.pinned = pinned().size();
}

// ---- copies ------------------------------------------------------------------------------------------------------

namespace {

void move_rows(std::byte* to, const rows& t, const std::byte* from, const rows& f, std::size_t width,
               std::size_t height, std::size_t depth) {
  for (std::size_t z = 0; z < depth; ++z)
    for (std::size_t y = 0; y < height; ++y)
      std::memmove(to + z * t.slice + y * t.pitch, from + z * f.slice + y * f.pitch, width);
}

}  // namespace

CUresult copy(rows to, rows from, std::size_t width, std::size_t height, std::size_t depth, CUstream in, bool wait) {
  stream* s = nullptr;
  if (const CUresult wrong = find(in, s); wrong != CUDA_SUCCESS) return wrong;
  if (width == 0 || height == 0 || depth == 0) return CUDA_SUCCESS;
  const auto extent = [&](const rows& r) { return hpe::box{{width, height, depth}, {r.pitch, r.slice}}.span(); };
  const bool up = is_device(to.base, 1);
  const bool down = is_device(from.base, 1);
  if ((up && !is_device(to.base, extent(to))) || (down && !is_device(from.base, extent(from))) ||
      (!up && !down && !(is_pinned(to.base) || is_pinned(from.base))))
    return CUDA_ERROR_INVALID_VALUE;
  std::function<void()> move;
  if (up && !down && !is_pinned(from.base)) {
    const auto bounce = std::make_shared<std::vector<std::byte>>(width * height * depth);
    const rows packed{0, width, width * height};
    move_rows(bounce->data(), packed, memory_at(from.base), from, width, height, depth);
    move = [=] { move_rows(memory_at(to.base), to, bounce->data(), packed, width, height, depth); };
  } else if (!up && !down) {
    // Between host memory, the driver's own code copies.
    move = [=] {
      move_rows(static_cast<std::byte*>(pointer(to.base)), to, static_cast<const std::byte*>(pointer(from.base)), from,
                width, height, depth);
    };
  } else {
    move = [=] { move_rows(memory_at(to.base), to, memory_at(from.base), from, width, height, depth); };
  }
  const std::uint64_t number = add(*s, std::move(move));
  if (wait || (down && !up && !is_pinned(to.base))) s->work.wait(number);
  return CUDA_SUCCESS;
}

CUresult fill(CUdeviceptr to, unsigned value, std::size_t width, std::size_t count, CUstream in, bool wait) {
  stream* s = nullptr;
  if (const CUresult wrong = find(in, s); wrong != CUDA_SUCCESS) return wrong;
  if (!is_device(to, hpe::saturated_product(width, count)) && !is_pinned(to)) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t number = add(*s, [=] {
    std::byte* const bytes = memory_at(to);
    if (width == 1) {
      std::memset(bytes, static_cast<int>(value), count);
    } else {
      for (std::size_t i = 0; i < count; ++i) std::memcpy(bytes + i * width, &value, width);
    }
  });
  if (wait) s->work.wait(number);
  return CUDA_SUCCESS;
}

}  // namespace stand_in

STAND_IN void stand_in_held(stand_in::held& all) {
  stand_in::count_memory(all);
  stand_in::count_streams(all);
  for (int d = 0; d < stand_in::device_count; ++d) all.mapped_bytes += stand_in::mapped_bytes(d);
}
STAND_IN void stand_in_refuse_peers(int refused) { stand_in::peers_refused = refused != 0; }
STAND_IN void* stand_in_memory(CUdeviceptr address) { return stand_in::memory_at(address); }
