#include "runtime/core/operations/launch_planner.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/base/own_process.h"

namespace hpe::core {

namespace {

// Returns the rates and the times of moves with which the planner predicts times for these devices. Arrays and replicas
// are copied between the devices; without peer access, arrays move through host memory.
spread::machine rates_of(const device::properties& device, std::size_t devices, bool connected,
                         spread::device_number alone) {
  spread::machine m;
  m.alone = alone;
  m.devices = static_cast<std::uint32_t>(devices);
  m.replica_bytes = device.memory_bytes;
  if (device.kind == HPE_DEVICE_CUDA) {
    if (!connected) m.moves = {1e-4, 1e-10};
    // The arrays of an unmodified program are first allocated on its own device, so moving even an empty array takes
    // time, for the allocation of new memory.
    m.moves_empty_arrays_free = alone < 0;
    return m;
  }
  // The memory of soft devices is the machine's memory. Links limit the rate only if the user has set a limit.
  const auto over = [](double link, double rate) { return link > 0 ? std::min(link, rate) : rate; };
  m.local_rate = 1e10;
  m.memory_rate = m.local_rate * m.devices;
  m.read_rate = m.write_rate = over(device.peer_rate, m.local_rate);
  m.shares_ports = false;  // HPE_SOFT_PEER_LINK limits each pair of devices separately
  m.host_rate = over(device.host_rate, m.local_rate);
  m.host_memory_rate = m.host_rate * m.devices;  // HPE_SOFT_HOST_LINK limits each device separately
  m.moves = {1e-4, 1 / over(connected && direct_mover::pays(device) ? device.peer_rate : device.host_rate, 2e9)};
  m.copy_rate = over(device.peer_rate, 2e9);
  m.instruction_rate = 1e9 * std::max(device.compute_units, 1U);
  m.launch_seconds = 5e-5;
  return m;
}

// On GPUs, the planner first uses the price of moves that earlier processes measured. Soft devices share the machine's
// cores, so their moves are not measured.
std::optional<cache_file> prices_for(const device::properties& device, std::size_t devices, bool connected) {
  if (device.kind != HPE_DEVICE_CUDA || options::from_environment().calibration == calibration_use::off)
    return std::nullopt;
  return cache_file(own_cache_folder(), "moves",
                    fmt::format("1; {}; {} x {}{}", cache_file::machine(), devices, device.name,
                                connected ? "" : ", through the host"));
}

spread::machine with_price(spread::machine m, const std::optional<cache_file>& prices) {
  const std::optional<std::string> text = prices ? prices->load() : std::nullopt;
  m.moves = (text ? spread::move_price::from_text(*text) : std::nullopt).value_or(m.moves);
  return m;
}

// Launches of an unmodified program run on its own device until another thread has computed their plans. Soft devices
// share the machine's cores with such a thread, and without calibration, a run must not depend on the speed of threads;
// there, launches wait for plans as long as planner::allowance and planner::share allow. A launch that the program
// itself spreads (hpeLaunchOver) always waits for its plan.
spread::when_planned when_for(const device::properties& device, spread::device_number alone) {
  using enum spread::when_planned;
  if (alone < 0) return at_once;
  const bool is_free = options::from_environment().calibration == calibration_use::on;
  return device.kind == HPE_DEVICE_CUDA && is_free ? elsewhere : in_time;
}

bool all_reach_each_other(device::device_set& devices, const std::vector<unsigned>& list) {
  return std::all_of(list.begin(), list.end(), [&](unsigned one) {
    return std::all_of(list.begin(), list.end(), [&](unsigned other) { return devices.at(one).can_access(other); });
  });
}

const void* pointer_in(const spread::launch& launch, std::uint32_t offset) {
  const void* pointer = nullptr;
  if (offset + sizeof pointer <= launch.parameter_bytes)
    std::memcpy(&pointer, static_cast<const std::byte*>(launch.parameters) + offset, sizeof pointer);
  return pointer;
}

}  // namespace

launch_planner::launch_planner(device::device_set& devices, allocator& memory, replicas& copies,
                               std::vector<unsigned> list, spread::device_number alone)
    : devices_(devices),
      memory_(memory),
      replicas_(copies),
      list_(std::move(list)),
      prices_(prices_for(devices.at(list_.front()).info(), list_.size(), all_reach_each_other(devices, list_))),
      planner_(with_price(rates_of(devices.at(list_.front()).info(), list_.size(), all_reach_each_other(devices, list_),
                                   alone),
                          prices_),
               {}, when_for(devices.at(list_.front()).info(), alone)) {}

// No lock is needed, because first_placement only uses the rates of the machine, which never change.
spread::array_placement launch_planner::first_placement(std::size_t bytes) const HPE_NO_THREAD_SAFETY_ANALYSIS {
  return planner_.first_placement(bytes, granule_size);
}

std::vector<std::uint16_t> launch_planner::granules_of(const std::vector<spread::home_run>& homes,
                                                       std::uint64_t bytes) const {
  std::vector<std::uint16_t> result((bytes + granule_size - 1) / granule_size);
  for (const spread::home_run& run : homes)
    for (std::uint64_t g = run.first / granule_size; g * granule_size < run.last; ++g)
      result[g] = static_cast<std::uint16_t>(list_[static_cast<std::size_t>(run.home)]);
  return result;
}

std::byte* launch_planner::allocate(std::size_t bytes, first_home where) {
  memory_.require_size(bytes);  // before the list of the homes of all granules is made
  const auto if_there_is_room = [](const auto& make) -> std::byte* {
    try {
      return make();
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
      return nullptr;
    }
  };
  if (where == first_home::one)
    if (auto* const made = if_there_is_room([&] { return memory_.allocate(bytes, list_.front()); })) return made;
  std::byte* made = nullptr;
  try {
    made = allocate_over_devices(bytes, where, if_there_is_room);
  } catch (const error& e) {
    // To the program, a device that cannot be used is memory that it does not have.
    if (e.status() != HPE_ERROR_INITIALIZATION) throw;
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "{} bytes do not fit on device {} alone, and {}", bytes, list_.front(),
              e.what());
  }
  // An array that is larger than the first device's memory cannot come home, so launches need not be counted for it.
  if (bytes > devices_.at(list_.front()).memory().total) return made;
  const lock_guard lock(mutex_);
  note_place(reinterpret_cast<std::uint64_t>(made), false);
  return made;
}

template <class IfThereIsRoom>
std::byte* launch_planner::allocate_over_devices(std::size_t bytes, first_home where,
                                                 const IfThereIsRoom& if_there_is_room) {
  if (where == first_home::one) {
    // Later small arrays, and the driver, need memory of the first devices, too.
    constexpr std::size_t kept_part = 16;
    std::vector<std::uint16_t> homes = first_devices_first(bytes, kept_part);
    if (auto* const made = if_there_is_room([&] { return memory_.allocate_striped(bytes, std::move(homes)); }))
      return made;
  }
  const spread::array_placement first = first_placement(bytes);
  if (first.how == spread::array_placement::kind::parts) {
    spread::kernel_array whole;
    whole.bytes = bytes;
    std::vector<std::uint16_t> homes =
        granules_of(spread::homes_under(first, whole, static_cast<std::uint32_t>(list_.size())), bytes);
    if (auto* const made = if_there_is_room([&] { return memory_.allocate_striped(bytes, std::move(homes)); }))
      return made;
  }
  // With first_home::one, allocate() has already tried the first device.
  for (const unsigned device : std::span(list_).subspan(where == first_home::one ? 1 : 0))
    if (auto* const made = if_there_is_room([&] { return memory_.allocate(bytes, device); })) return made;
  return memory_.allocate_striped(bytes, first_devices_first(bytes, 0));
}

std::vector<std::uint16_t> launch_planner::first_devices_first(std::size_t bytes, std::size_t kept_part) const {
  std::vector<std::uint16_t> homes((bytes + granule_size - 1) / granule_size);
  auto next = homes.begin();
  unsigned last = list_.front();
  for (auto device = list_.begin(); device != list_.end() && next != homes.end(); ++device) try {
      const device::memory_usage amount = devices_.at(*device).memory();
      const std::size_t kept = kept_part == 0 ? 0 : amount.total / kept_part;
      const std::size_t room = amount.free > kept ? (amount.free - kept) / granule_size : 0;
      next = std::fill_n(next, std::min<std::size_t>(room, homes.end() - next), static_cast<std::uint16_t>(*device));
      last = *device;
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_INITIALIZATION) throw;  // a device that cannot be used has no memory
    }
  std::fill(next, homes.end(), static_cast<std::uint16_t>(last));
  return homes;
}

void launch_planner::describe_homes(const coherence::region& r, spread::kernel_array& to) const {
  to.homes.clear();
  r.for_each_home(r.whole(), [&](unsigned home, coherence::byte_range part) {
    // Memory of a device that is not in the list counts as host memory.
    const auto place = std::find(list_.begin(), list_.end(), home);
    const auto number = r.single_copy() || place == list_.end()
                            ? spread::host
                            : static_cast<spread::device_number>(place - list_.begin());
    if (!to.homes.empty() && to.homes.back().home == number) {
      to.homes.back().last = part.end;
    } else {
      to.homes.push_back({part.begin, part.end, number});
    }
  });
}

const spread::kernel_array* launch_planner::describe(const void* pointer) {
  const allocation found = memory_.find(pointer);
  if (found.region == nullptr) return nullptr;
  const coherence::region& r = *found.region;
  const lock_guard lock(r.mutex);
  if (!r.alive) return nullptr;
  // If all valid bytes of a region are on the host, the region moves without a copy: the bytes are later uploaded to
  // the new homes.
  const bool on_host = r.blocks().off_device() == r.blocks().count();
  described& known = described_[&r];
  if (std::exchange(known.homes, r.homes_version()) != r.homes_version()) known.has_no_replica = false;
  // The writes of other processes change no contents_version, so hpe cannot tell whether a replica contains them.
  const bool may_replicate = !known.has_no_replica && !memory_.others_may_write(r);
  const bool is_replicated = may_replicate && replicas_.are_valid(r, list_);
  const std::uint64_t version = known.homes << 3U | (std::uint64_t{on_host} << 2U) |
                                (std::uint64_t{is_replicated} << 1U) | std::uint64_t{may_replicate};
  if (known.version == version) return &known.what;
  known.version = version;
  spread::kernel_array& a = known.what;
  a.address = reinterpret_cast<std::uint64_t>(r.layout.base);
  a.bytes = r.layout.extent;
  a.granule = memory_.may_move(r) ? granule_size : 0;
  a.is_empty = on_host;
  a.is_replicated = is_replicated;
  a.may_replicate = may_replicate;
  a.version = version;
  describe_homes(r, a);
  return &a;
}

/// The moves of arrays that one call has decided. A move waits for the work that uses its array, so run() moves the
/// arrays without the planner's mutex. From add() to the end of the object, calls of other threads that concern one of
/// these arrays wait.
class launch_planner::moves {
 public:
  explicit moves(launch_planner& of) : of_(of) {}
  moves(const moves&) = delete;
  moves& operator=(const moves&) = delete;
  ~moves() {
    if (all_.empty()) return;
    const lock_guard lock(of_.mutex_);
    for (const array_move& each : all_) of_.moving_.remove(each.address);
  }

  /// The caller holds the planner's mutex.
  void add(const spread::kernel_array& what, const spread::array_placement& to) {
    of_.mutex_.assert_held();  // the same mutex, by the name that Clang compares
    const spread::machine& rates = of_.planner_.rates();
    const bool is_home = to.how == spread::array_placement::kind::one && to.home == std::max(rates.alone, 0);
    const std::vector<spread::home_run> runs = spread::homes_under(to, what, rates.devices);
    if (std::ranges::any_of(runs, [](const spread::home_run& run) { return run.home < 0; })) return;
    all_.push_back(
        {what.address, of_.granules_of(runs, what.bytes), spread::work_of_move(what, runs), is_home, what.is_empty});
    of_.moving_.add(what.address, what.bytes);
  }
  /// The caller does not hold the planner's mutex.
  void run() {
    for (array_move& each : all_) run(each);
    if (all_.empty()) return;
    const lock_guard lock(of_.mutex_);
    of_.keep_price();
    of_.note_accounts();
  }

 private:
  struct array_move {
    std::uint64_t address;
    std::vector<std::uint16_t> homes;
    spread::move_work work;
    bool is_home, is_empty;
  };
  // If a move fails, the array stays at its home: the launch is then slower, but still correct.
  void run(array_move& what) try {
    const auto* const base = reinterpret_cast<const void*>(what.address);  // NOLINT(performance-no-int-to-ptr)
    const double seconds = of_.memory_.place(base, std::move(what.homes));
    const lock_guard lock(of_.mutex_);
    of_.note_place(what.address, what.is_home);
    if (of_.prices_ && !what.is_empty) of_.planner_.moved(what.work, seconds);
    of_.saved_ -= seconds;
    of_.has_moved_ = true;
  } catch (const error& e) {
    log(log_level::info, "an array of a launch over several devices stays where it is: {}", e.what());
  }

  launch_planner& of_;
  std::vector<array_move> all_;
};

// If a device has no replica, the launch uses the array at its home: it is then slower, but still correct.
void launch_planner::replicate(const spread::kernel_model::pointer& of, const spread::launch& launch, plan& to) {
  changes_.fetch_add(1);
  const void* const pointer = pointer_in(launch, of.offset);
  coherence::region* const r = memory_.find(pointer).region;
  if (r == nullptr) return;
  std::vector<std::byte*> found;
  for (const unsigned device : list_) {
    found.push_back(replicas_.bring(*r, device, to.holds));
    if (found.back() != nullptr) continue;
    described_[r].has_no_replica = true;
    return;
  }
  for (std::size_t n = 0; n < found.size(); ++n)
    to.replacing[n].push_back({of.offset, found[n] + r->offset_of(pointer)});
}

launch_planner::plan launch_planner::decide(const spread::kernel_model& kernel, const spread::launch& launch,
                                            const foreign_memory& others, const spread::start_cost* start) {
  constexpr std::size_t most_described = 4096;
  std::vector<const void*> pointers;
  for (const spread::kernel_model::pointer& p : kernel.pointers()) pointers.push_back(pointer_in(launch, p.offset));
  moves begun(*this);
  unique_lock lock(mutex_);
  moving_.await(lock, pointers);
  if (described_.size() > most_described) described_.clear();
  std::vector<const spread::kernel_array*> arrays;
  arrays.reserve(pointers.size());
  for (const void* const pointer : pointers) {
    arrays.push_back(describe(pointer));
    if (arrays.back() == nullptr && others) arrays.back() = others(pointer);
  }
  if (begun_ == decltype(begun_){}) begun_ = std::chrono::steady_clock::now();
  const spread::decision& decided = planner_.decide(kernel, launch, arrays, start);
  for (const auto& missing : planner_.take_requests()) worker_.post([this, missing] { compute(*missing); });
  plan result{{}, {}, {}, {}, planner_.measured(), planner_.wants_start(), planner_.is_early()};
  result.reason = decided.reason;
  constexpr std::uint32_t without_plan = 16;
  if (!decided.gives_homes() && result.measured.record == nullptr && !result.is_early && !result.wants_start)
    result.same_for = decided.is_short ? plan::always : planner_.lacks_plan() ? without_plan : 0;
  // The program's own launch needs no parts.
  if (decided.is_spread() || planner_.rates().alone < 0) {
    result.parts = decided.how.parts;
    result.replacing.resize(list_.size());
  }
  using kind = spread::array_placement::kind;
  std::unordered_set<const spread::kernel_array*> moved;  // several pointers may point into one array
  for (std::size_t n = 0; n < arrays.size(); ++n) {
    if (arrays[n] == nullptr) continue;
    const spread::array_decision& each = decided.arrays[n];
    if (each.use_replica) {
      replicate(kernel.pointers()[n], launch, result);
    } else if (each.move_to.how != kind::stay && moved.insert(arrays[n]).second) {
      begun.add(*arrays[n], each.move_to);
    }
  }
  note_accounts();
  lock.unlock();
  begun.run();
  return result;
}

// Writing the file takes time, so the price is stored only if it has changed much; later processes may get a slightly
// older price. If host memory is short, the price is not stored.
void launch_planner::keep_price() noexcept {
  if (!std::exchange(has_moved_, false) || !prices_ || planner_.rates().moves.is_near(kept_)) return;
  try {
    kept_ = planner_.rates().moves;
    prices_->store(kept_.as_text());
  } catch (const std::exception&) {
  }
}

void launch_planner::note_place(std::uint64_t address, bool is_home) {
  changes_.fetch_add(1);
  if (is_home)
    away_.erase(address);
  else
    away_.insert(address);
  note_accounts();
}

void launch_planner::note_accounts() {
  counts_stays_.store(!away_.empty() || planner_.has_losses(), std::memory_order_release);
}

void launch_planner::stays(std::span<const void* const> pointers) {
  moves begun(*this);
  unique_lock lock(mutex_);
  moving_.await(lock, pointers);
  for (const void* const pointer : pointers) {
    const spread::kernel_array* const array = describe(pointer);
    if (array == nullptr) continue;
    const spread::array_placement* const home = planner_.stays(*array);
    if (home != nullptr) begun.add(*array, *home);
  }
  note_accounts();
  lock.unlock();
  begun.run();
}

void launch_planner::forget(const void* freed) {
  unique_lock lock(mutex_);
  changes_.fetch_add(1);
  moving_.await(lock, std::span(&freed, 1));
  away_.erase(reinterpret_cast<std::uint64_t>(freed));
  note_accounts();
}

void launch_planner::took(const spread::planner::measurement& launch, double seconds) {
  const lock_guard lock(mutex_);
  if (launch.record == nullptr) return;
  changes_.fetch_add(1);
  saved_ += launch.took(seconds);
}

launch_planner::gain launch_planner::gained() {
  const lock_guard lock(mutex_);
  if (begun_ == decltype(begun_){}) return {};
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count(), saved_,
          planner_.planning_seconds()};
}

void launch_planner::forget(const spread::kernel_model& kernel) {
  unique_lock lock(mutex_);
  changes_.fetch_add(1);
  planner_.forget(kernel);
  computed_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return planned_ != &kernel; });
}

void launch_planner::compute(spread::outlook_request& missing) {
  {
    const lock_guard lock(mutex_);
    if (!planner_.wants(missing)) return;
    planned_ = &missing.kernel();
  }
  missing.compute();
  {
    const lock_guard lock(mutex_);
    changes_.fetch_add(1);
    try {
      planner_.add(missing);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a later launch asks again
    }
    planned_ = nullptr;
  }
  computed_.notify_all();
}

}  // namespace hpe::core
