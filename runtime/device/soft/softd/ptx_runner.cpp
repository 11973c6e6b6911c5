// The first thread whose block faults stores the fault in the launch, and throws an exception, after which the other
// threads of the pool begin no further blocks.
#include "runtime/device/soft/softd/ptx_runner.h"

#include <csignal>
#include <exception>
#include <future>
#include <thread>

#include "runtime/base/demangled.h"
#include "runtime/base/error.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/soft/shared/ptx_layout.h"
#include "runtime/os/thread.h"
#include "runtime/ptx/execution/block_range.h"
#include "runtime/ptx/execution/calls/device_runtime.h"
#include "runtime/ptx/execution/interpreter.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::device::soft {

loaded_ptx_module::loaded_ptx_module(os::file_descriptor texts, std::size_t bytes, const ptx_addresses& parts,
                                     ptx_recording reads, const fabric_configuration& configuration)
    : texts_(std::move(texts)),
      bytes_(bytes),
      parts_(parts),
      execution_(configuration.ptx),
      reads_(reads),
      record_places_(record_places_of(configuration.layout)) {}

void loaded_ptx_module::prepare() {
  // Another thread opens the compiler while this thread parses the texts, because both take about the same time for ten
  // kernels.
  const std::future<void> opened = execution_.interprets ? std::future<void>() : std::async(ptx::open_compiler);
  const std::shared_ptr<ptx::program> program =
      ptx::parse(unpack_texts(texts_.get(), bytes_),
                 execution_.in_lockstep ? ptx::warp_order::lockstep : ptx::warp_order::independent);
  if (execution_.records_accesses) {
    pairs_.emplace(ptx::find_access_sites(*program));
    ptx::record_accesses(*program, record_places_,
                         reads_ == ptx_recording::first_reads ? ptx::recorded_reads::first : ptx::recorded_reads::all);
  }
  auto image = std::make_unique<ptx::image>(program, lay_out(*program).addresses(parts_));
  if (!execution_.interprets) compiled_ = ptx::compile(*image, ptx::kernel_store_of(options::from_environment()));
  image_ = std::move(image);
  texts_.reset();
}

const ptx::function& loaded_ptx_module::find(const std::string& kernel) {
  std::call_once(prepared_, [this] { prepare(); });
  const ptx::function* const found = image_->program().find_kernel(kernel);
  HPE_REQUIRE(found != nullptr, HPE_ERROR_NOT_FOUND, "there is no kernel \"{}\" in the module of PTX", kernel);
  return *found;
}

std::shared_ptr<ptx::execution_engine> loaded_ptx_module::engine_for(const ptx::function& kernel,
                                                                     const ptx::dimensions& block) {
  if (compiled_) return compiled_->engine_for(kernel, block);
  return std::make_shared<ptx::interpreter>(image_->program());
}

ptx::kernel_trial* loaded_ptx_module::find_trial(const ptx::function& kernel, const ptx::dimensions& block) {
  if (!execution_.begins_interpreted || compiled_ == nullptr) return nullptr;
  ptx::kernel_trial* found = nullptr;
  {
    const lock_guard lock(mutex_);
    auto& trial = trials_[&kernel];
    if (trial == nullptr)
      trial = std::make_unique<ptx::kernel_trial>(*image_, kernel, *compiled_, ptx::work_of_compilation(kernel));
    found = trial.get();
  }
  return found->is_open(block) ? found : nullptr;
}

ptx::kernel_trial* loaded_ptx_module::find_race_trial(const ptx::function& kernel, const ptx::dimensions& block) {
  constexpr std::uint64_t most_instructions = 500'000;  // of a kernel; they take about a tenth of a second
  if (!execution_.records_accesses || compiled_ == nullptr) return nullptr;
  ptx::kernel_trial* found = nullptr;
  {
    const lock_guard lock(mutex_);
    auto& trial = race_trials_[&kernel];
    if (trial == nullptr)
      trial = std::make_unique<ptx::kernel_trial>(*image_, kernel, *compiled_, most_instructions, true);
    found = trial.get();
  }
  return found->is_open(block) ? found : nullptr;
}

void kernel_maker::make(std::shared_ptr<loaded_ptx_module> module, const std::string& kernel,
                        const ptx::dimensions& block) {
  const lock_guard lock(mutex_);
  tasks_.push_back({std::move(module), kernel, block});
  if (workers_ >= std::thread::hardware_concurrency()) return;
  try {
    os::start_thread("softd-compile", [this] { work(); }).detach();
    ++workers_;
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): if no thread can be started, the launch itself
                                     // compiles the kernel
  }
}

void kernel_maker::work() {
  for (;;) {
    task next;
    {
      const lock_guard lock(mutex_);
      if (tasks_.empty()) {
        --workers_;
        return;
      }
      next = std::move(tasks_.front());
      tasks_.pop_front();
    }
    try {
      const ptx::function& kernel = next.module->find(next.kernel);
      if (next.module->find_trial(kernel, next.block) == nullptr)
        static_cast<void>(next.module->engine_for(kernel, next.block));
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the launch reports the error
    }
  }
}

ptx::race_report* loaded_ptx_module::races_of(const ptx::function& kernel, bool in_trial) {
  if (!execution_.finds_races && !in_trial && (!execution_.records_accesses || compiled_ != nullptr)) return nullptr;
  const lock_guard lock(mutex_);
  auto& races = races_[&kernel];
  if (races == nullptr) races = std::make_unique<ptx::race_report>(image_->program(), kernel);
  return races.get();
}

namespace {

// The largest number of blocks that a thread runs at once, as on a multiprocessor of a GPU.
constexpr std::uint32_t blocks_per_thread = 32;

struct stopped final : std::exception {};

struct running_launch {
  loaded_ptx_module& module;
  ptx::launch_configuration configuration;
  bool cooperative = false;
  ptx::kernel_trial* trial = nullptr;        // null: the launch begins in the usual engine
  std::unique_ptr<traffic_count> traffic{};  // null: the traffic of the launch is not counted
  ptx::block_room room{};
  hpe::mutex mutex{};
  std::optional<ptx::trap> trap HPE_GUARDED_BY(mutex){};
  std::string printed HPE_GUARDED_BY(mutex){};

  [[nodiscard]] std::shared_ptr<ptx::execution_engine> make_engine() const {
    auto usual = module.engine_for(*configuration.kernel, configuration.block);
    return traffic == nullptr ? usual : traffic->engine_over(std::move(usual));
  }

  void run(ptx::block_range blocks) {
    auto found = run_with_engine(blocks);
    if (!found) return;
    const lock_guard lock(mutex);
    if (!trap) trap = std::move(found);
    throw stopped{};
  }

  std::optional<ptx::trap> run_with_engine(ptx::block_range blocks) {
    if (cooperative) return ptx::run_together([this] { return make_engine(); }, configuration);
    const auto next = [this] { return more(); };
    if (trial != nullptr) return trial->run(configuration, blocks, next, room);
    return ptx::run_blocks(*make_engine(), configuration, blocks, next, room);
  }

  // Returns further blocks of the launch. Throws if a trap has stopped another thread, so that blocks of this thread do
  // not wait for the blocks of that thread.
  std::optional<ptx::block_range> more() {
    {
      const lock_guard lock(mutex);
      if (trap) throw stopped{};
    }
    const auto tiles = tile_pool::take_more();
    return tiles ? std::optional(ptx::block_range{tiles->begin, tiles->end}) : std::nullopt;
  }
};

void run_share(const void* launch, const hpeTiles* blocks) {
  (*static_cast<running_launch* const*>(launch))->run({blocks->begin, blocks->end});
}

void run_rows(const void* work, const hpeTiles* /*one*/) {
  (*static_cast<const ptx::queued_work* const*>(work))->copy_or_fill();
}

ptx::dimensions dimensions_of(const std::uint32_t (&sizes)[3]) { return {sizes[0], sizes[1], sizes[2]}; }

hpeFault fault_of(ptx::trap::reason why) noexcept {
  using reason = ptx::trap::reason;
  switch (why) {
    case reason::none: return HPE_FAULT_NONE;
    case reason::address: return HPE_FAULT_ADDRESS;
    case reason::misaligned: return HPE_FAULT_MISALIGNED;
    case reason::surface:
    case reason::trap: return HPE_FAULT_TRAP;
    case reason::assertion: return HPE_FAULT_ASSERT;
    case reason::stack: return HPE_FAULT_STACK;
    case reason::deadlock: return HPE_FAULT_DEADLOCK;
    case reason::bad_function:
    case reason::illegal: return HPE_FAULT_INSTRUCTION;
  }
  return HPE_FAULT_OTHER;
}

// Returns the first 200 characters of a kernel's name, because the rest of the message must fit into the failure log.
std::string shortened(const std::string& name) {
  constexpr std::size_t most = 200;
  return name.size() <= most ? name : name.substr(0, most) + "...";
}

// Describes a crash or exception in a function that the kernel called, for example printf with a null pointer.
ptx_runner::trouble describe(const tile_pool::trouble& what, const std::string& kernel) {
  if (!what.signal)
    return {HPE_FAULT_OTHER, fmt::format("kernel {}: {}", shortened(demangled(kernel)), what.exception)};
  const bool is_access = what.signal->signal == SIGSEGV || what.signal->signal == SIGBUS;
  return {is_access ? HPE_FAULT_ADDRESS : HPE_FAULT_OTHER,
          fmt::format("kernel {}: a function that it called failed at address {:#x} (signal {})",
                      shortened(demangled(kernel)), what.signal->address, what.signal->signal)};
}

ptx_runner::trouble describe(ptx::trap what) {
  what.kernel = shortened(demangled(what.kernel));
  return {fault_of(what.why), what.message()};
}

}  // namespace

void ptx_runner::record_accesses(os::file_descriptor file) {
  recorded_ = std::make_unique<recorded_memory>(shared_.configuration().layout, std::move(file));
}

std::optional<ptx_runner::trouble> ptx_runner::run(loaded_ptx_module& module, const std::string& kernel,
                                                   const command& what, const void* parameters) {
  ptx::launch_configuration c;
  c.kernel = &module.find(kernel);
  c.grid = dimensions_of(what.grid);
  c.block = dimensions_of(what.block);
  if (what.cluster[0] != 0) c.cluster = dimensions_of(what.cluster);
  c.dynamic_shared = what.shared_bytes;
  c.parameters = parameters;
  c.number = what.number;

  ptx::descendants order;
  std::unique_lock<std::mutex> alone;
  if (recorded_ != nullptr) alone = std::unique_lock(recording_);
  auto failed = run_grid(module, c, what.cooperative, order);
  while (const auto next = order.next()) {
    if (!failed) failed = run_queued(module, *next, what.number, order);
    heap_.release(next->parameters);
  }
  return failed;
}

void ptx_runner::expect(const std::shared_ptr<loaded_ptx_module>& module, const std::string& kernel,
                        const command& what) {
  maker_.make(module, kernel, dimensions_of(what.block));
}

std::optional<ptx_runner::trouble> ptx_runner::run_queued(loaded_ptx_module& module, const ptx::queued_work& what,
                                                          std::uint64_t number, ptx::descendants& order) {
  static constexpr std::uint32_t one[3] = {1, 1, 1};
  if (what.kernel == nullptr) {
    const ptx::queued_work* const argument = &what;
    const auto failed = pool_.run(run_rows, &argument, one);
    if (!failed) return std::nullopt;
    return trouble{
        HPE_FAULT_ADDRESS,
        fmt::format("a copy or fill that a kernel queued touched an address that is not the device's ({:#x})",
                    failed->signal ? failed->signal->address : 0)};
  }
  ptx::launch_configuration c;
  c.kernel = what.kernel;
  c.grid = what.grid;
  c.block = what.block;
  c.dynamic_shared = what.dynamic_shared;
  c.parameters = what.parameters;
  c.number = number;
  return run_grid(module, c, false, order);
}

namespace {

using part_of_record = std::function<void(std::size_t)>;

void collect_part(const void* work, const hpeTiles* parts) {
  for (std::uint64_t n = parts->begin; n < parts->end; ++n) (**static_cast<const part_of_record* const*>(work))(n);
}

}  // namespace

void ptx_runner::collect(const loaded_ptx_module& module, const ptx::launch_configuration& grid) {
  const auto run = [this](std::size_t count, const part_of_record& work) {
    const std::uint32_t parts[3] = {static_cast<std::uint32_t>(count), 1, 1};
    const part_of_record* const argument = &work;
    if (count == 1) return work(0);
    if (count != 0) HPE_INVARIANT(!pool_.run(collect_part, &argument, parts));
  };
  const auto use_of = [](ptx::memory_use how) {
    using enum ptx::memory_use;
    return how == read ? ptx::recorded_use::read : how == atomic ? ptx::recorded_use::atomic : ptx::recorded_use::write;
  };
  std::vector<recorded_race> races;
  if (grid.races != nullptr)
    for (const auto& [what, earlier, later, variable] : grid.races->take_placed())
      races.push_back({true,
                       what.offset,
                       what.offset + 1,
                       {use_of(what.earlier.how), 0, earlier},
                       {use_of(what.later.how), 0, later},
                       variable});
  recorded_->collect(grid.grid.count() > 1 ? module.pairs() : nullptr, std::move(races), run);
}

std::optional<ptx_runner::trouble> ptx_runner::run_grid(loaded_ptx_module& module,
                                                        const ptx::launch_configuration& grid, bool cooperative,
                                                        ptx::descendants& order) {
  ptx::kernel_trial* trial = nullptr;
  const bool has_shared = grid.kernel->shared_size + grid.dynamic_shared != 0, is_alone = !cooperative && !grid.cluster;
  if (is_alone && has_shared) trial = module.find_race_trial(*grid.kernel, grid.block);
  const bool in_race_trial = trial != nullptr;
  if (is_alone && !in_race_trial) trial = module.find_trial(*grid.kernel, grid.block);
  // Compile the kernel before the launch, so that an error of the compiler is not reported as a fault of a block.
  if (trial == nullptr) static_cast<void>(module.engine_for(*grid.kernel, grid.block));

  ptx::device_queue queue([this](void* memory) { heap_.release(memory); });
  ptx::surroundings around;
  running_launch launch{module, grid, cooperative, trial};
  around.print = [&launch](std::string_view text) {
    const lock_guard lock(launch.mutex);
    launch.printed += text;
  };
  around.may_touch = [this](std::uint64_t address, std::size_t bytes) {
    return memory_.holds(address, bytes) || heap_.contains(address, bytes) ||
           ptx::is_text_of_device_runtime(address, bytes) || (recorded_ != nullptr && recorded_->contains(address));
  };
  around.allocate = [this](std::size_t bytes) { return heap_.allocate(bytes); };
  around.release = [this](void* memory) { heap_.release(memory); };
  around.queue = &queue;
  around.device = device_;
  around.device_count = shared_.configuration().shape.devices();
  launch.configuration.image = &module.image();
  launch.configuration.surroundings = &around;
  launch.configuration.races = module.races_of(*grid.kernel, in_race_trial);
  std::atomic<std::uint64_t>& crowd = shared_.status(device_).crowd;
  launch.room = {blocks_per_thread * shared_.configuration().threads,
                 [&crowd](std::uint64_t resident) { crowd = resident; }};

  launch.traffic = links_.begin(launch.configuration);
  const std::uint64_t start = link_time();

  static constexpr std::uint32_t all_at_once[3] = {1, 1, 1};
  const std::uint32_t tiles[3] = {grid.grid.x, grid.grid.y, grid.grid.z};
  const running_launch* const argument = &launch;
  const auto trouble = pool_.run(run_share, &argument, cooperative ? all_at_once : tiles);
  crowd = 0;
  if (trial != nullptr) trial->keep_work();
  order.enter(queue.take());
  links_.end(launch.configuration, launch.traffic.get(), start);
  if (recorded_ != nullptr) collect(module, launch.configuration);

  const lock_guard lock(launch.mutex);
  output_.append(grid.number, launch.printed, false);
  if (launch.configuration.races != nullptr && module.tells_races())
    for (const std::string& race : launch.configuration.races->take())
      output_.append(grid.number, fmt::format("hpe: on device {}, {}\n", device_, race), true);
  if (launch.trap && launch.trap->why == ptx::trap::reason::assertion)
    output_.append(grid.number, launch.trap->detail + "\n", true);
  if (launch.trap) return describe(*launch.trap);
  if (trouble) return describe(*trouble, shortened(grid.kernel->name));
  return std::nullopt;
}

}  // namespace hpe::device::soft
