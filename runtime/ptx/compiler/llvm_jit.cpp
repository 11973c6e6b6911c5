// The kernels of an image as native code. Each kernel has its own object file. The first use of a kernel compiles the
// object file or reads it from the kernel cache, and LLVM's JIT links it.

#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/ptx/compiler/compiler.h"
#include "runtime/ptx/compiler/device_function.h"
#include "runtime/ptx/compiler/helpers.h"
#include "runtime/ptx/compiler/objects/kernel_cache.h"
#include "runtime/ptx/compiler/regions.h"
#include "runtime/ptx/execution/block_range.h"
#include "runtime/ptx/execution/interpreter.h"
#include "runtime/ptx/execution/scheduler.h"
#include "runtime/ptx/flow/handover.h"

namespace hpe::ptx {

namespace {

using region_function = std::uint32_t (*)(block_context*, std::uint32_t first, std::uint32_t last);

std::string take_message(llvm::Error error) { return llvm::toString(std::move(error)); }

template <class T>
T checked(llvm::Expected<T> value) {
  if (!value) HPE_THROW(HPE_ERROR_INTERNAL, "LLVM: {}", take_message(value.takeError()));
  if constexpr (std::is_reference_v<T>) {
    return *value;
  } else {
    return std::move(*value);
  }
}

void check(llvm::Error error) {
  if (error) HPE_THROW(HPE_ERROR_INTERNAL, "LLVM: {}", take_message(std::move(error)));
}

// Returns `question` about the kernel's code in lanes of whole warps.
template <class Question>
bool with_lanes_of_warps(const flat_kernel& flat, const Question& question) {
  const control_flow flow(flat.code, flat.registers.size());
  std::vector<std::uint32_t> starts{0};
  for (std::uint32_t n = 0; n < flat.code.size(); ++n)
    if (is_meeting(flat.code[n])) starts.push_back(flow.block_at(n + 1));
  return question(lane_analysis(warp_size, flat.code, flat.registers, flow, starts));
}

class native_image;

/// The code of a kernel for one number of lanes. The object exists as long as the image.
struct native_kernel {
  native_image* image = nullptr;
  const function* origin = nullptr;
  std::atomic<const native_kernel*> alone{nullptr};  // the code for one lane; null until the first use
  flat_kernel flat;                                  // the instructions, to which the code refers in error messages
  meeting_table table;
  std::vector<region_function> regions;
  std::vector<bool> is_block_barrier;  // by point
  bool passes = false;                 // whether lanes are whole warps, which pass meetings in this code (lanes.h)
};

/// Defines the symbols of link_names for the linker.
class name_generator final : public llvm::orc::DefinitionGenerator {
 public:
  name_generator(const link_names& names, native_kernel& own) : names_(names), own_(own) {}

  llvm::Error tryToGenerate(llvm::orc::LookupState&, llvm::orc::LookupKind, llvm::orc::JITDylib& library,
                            llvm::orc::JITDylibLookupFlags, const llvm::orc::SymbolLookupSet& wanted) override {
    llvm::orc::SymbolMap found;
    for (const auto& [name, flags] : wanted) {
      auto address = names_.address_of(*name);
      if (std::string_view(*name) == link_names::own_kernel) address = reinterpret_cast<std::uint64_t>(&own_);
      if (address) found[name] = {llvm::orc::ExecutorAddr(*address), llvm::JITSymbolFlags::Exported};
    }
    return found.empty() ? llvm::Error::success() : library.define(llvm::orc::absoluteSymbols(std::move(found)));
  }

 private:
  const link_names names_;
  native_kernel& own_;
};

class native_engine final : public execution_engine {
 public:
  explicit native_engine(const native_kernel& k) : kernel_(k) {}
  [[nodiscard]] std::uint32_t frame_slots() const override { return kernel_.table.slots; }
  [[nodiscard]] const instruction& at(std::uint32_t point) const override { return kernel_.table.points[point]; }
  void begin(block_context&) override {}
  std::uint32_t run(block_context& block, std::uint32_t point, std::uint32_t first, std::uint32_t last) override {
    return run_regions(block, point, first, last, [](std::uint32_t) { return false; });
  }
  std::uint32_t run_block(block_context& block, std::uint32_t point, std::uint32_t most) override {
    return run_regions(block, point, 0, block.thread_count, [this, most](std::uint32_t next) mutable {
      return next < kernel_.is_block_barrier.size() && kernel_.is_block_barrier[next] && --most != 0;
    });
  }
  [[nodiscard]] bool runs_strips() const override { return kernel_.table.runs_strips; }
  void run_strip(block_context& block, std::uint32_t count) override {
    const std::uint32_t first = block.ctaid.x, width = block.ntid.x;
    block.strip = count;
    for (std::uint32_t row = 0; row < block.thread_count; row += width) {
      block.ctaid.x = first;
      run(block, 0, row, row + width);
    }
    block.strip = 1;
  }
  void take_over(block_context& block, std::span<const waiting_thread> threads) override {
    const std::vector<std::uint32_t>& positions = kernel_.table.positions;
    for (std::uint32_t t = 0; t < threads.size(); ++t) {
      const waiting_thread& from = threads[t];
      if (from.registers == nullptr) {
        block.next[t] = from.position == waiting_thread::ended ? block_context::ended : 0;
        continue;
      }
      const auto point = std::lower_bound(positions.begin() + 1, positions.end(), from.position);
      HPE_INVARIANT(point != positions.end() && *point == from.position);
      block.next[t] = static_cast<std::uint32_t>(point - positions.begin());
      for (std::size_t r = 0; r < kernel_.table.slot_of.size(); ++r)
        if (const std::uint32_t slot = kernel_.table.slot_of[r]; slot != meeting_table::no_slot)
          block.frame[std::size_t{slot} * block.thread_count + t] = from.registers[r];
    }
  }
  [[nodiscard]] std::shared_ptr<execution_engine> another() const override {
    return std::make_shared<native_engine>(kernel_);
  }

 private:
  // Runs the region after `point`. As long as all threads reach the same next point, and goes_on(that point) is true,
  // runs the region after that point. Frames of compiled code own no objects, so a trap may leave them by longjmp.
  template <class GoesOn>
  std::uint32_t run_regions(block_context& block, std::uint32_t point, std::uint32_t first, std::uint32_t last,
                            GoesOn goes_on) {
    running_ = point;
    block.in_compiled_code = true;
    if (setjmp(block.landing) != 0) {
      block.in_compiled_code = false;
      block.strip = 1;
      if (block.trap.why == trap::reason::address && block.may_group != 0) find_thread(block, running_, last);
      block.may_group = 1;
      throw trap_exception{block.trap};
    }
    std::uint32_t next = kernel_.regions[running_](&block, first, last);
    while (goes_on(next)) {
      running_ = next;
      next = kernel_.regions[next](&block, first, last);
    }
    block.in_compiled_code = false;
    return next;
  }

  // Call this after a group of threads has used a wrong address. Runs the threads of the group again, one by one, so
  // that the trap names the right thread. Their writes do not matter, because the kernel has failed.
  void find_thread(block_context& block, std::uint32_t point, std::uint32_t last) {
    const trap first = block.trap;
    block.may_group = 0;
    if (kernel_.passes) {
      repeat_warp(block, point, block.current / warp_size * warp_size, first);
    } else {
      for (std::uint32_t thread = block.current; thread < last; ++thread)
        if (!repeat(block, point, thread, first)) return;
    }
  }

  // Runs the lanes of a warp again, one by one. If the warp's code passes meetings, the lanes also pass meetings. Lanes
  // that end or reach another meeting stay there, because the code after that meeting may never have run. The number of
  // meetings is limited, because the lanes may read other values than before and repeat a loop forever.
  void repeat_warp(block_context& block, std::uint32_t point, std::uint32_t first, const trap& fault) {
    constexpr std::uint32_t most_meetings = 1 << 16;
    std::fill(block.next + first, block.next + first + warp_size, point);
    const std::uint32_t meetings = passes_behind(point) ? most_meetings : 0;
    std::uint32_t ready = ~0U;
    for (std::uint32_t met = 0; ready != 0; ready = met++ < meetings ? pass_meeting(block, first) : 0)
      for (; ready != 0; ready &= ready - 1) {
        const std::uint32_t thread = first + static_cast<std::uint32_t>(std::countr_zero(ready));
        const auto next = repeat(block, block.next[thread], thread, fault);
        if (!next) return;
        block.next[thread] = *next;
      }
  }

  // Whether lanes pass meetings in the code after a point.
  [[nodiscard]] bool passes_behind(std::uint32_t point) const {
    return with_lanes_of_warps(kernel_.flat, [&](const lane_analysis& lanes) { return lanes.region(point).passes; });
  }

  // Runs one thread again. Returns the point at which the thread continues; nothing if the thread has caused `fault`
  // again, at an address less than 4096 bytes away. The thread may use another wrong address, because its registers may
  // have changed since the fault; the thread then ends.
  std::optional<std::uint32_t> repeat(block_context& block, std::uint32_t point, std::uint32_t thread,
                                      const trap& fault) {
    constexpr std::uint64_t most =
        4096;  // the largest distance, in bytes, between the address that the CPU reports and the lane's own address
    constexpr unsigned canonical_bits = 47;
    try {
      return run(block, point, thread, thread + 1);
    } catch (const trap_exception&) {
      block.may_group = 0;
      const std::uint64_t distance = block.trap.address - fault.address;
      const bool is_near = fault.address == unknown_address ? block.trap.address >> canonical_bits != 0
                                                            : distance < most || -distance < most;
      if (block.trap.why == fault.why && is_near) return std::nullopt;
      block.trap = fault;
      return block_context::ended;
    }
  }

  // Completes one meeting at which all lanes that its mask names have arrived. Returns these lanes; 0 if there is no
  // such meeting.
  std::uint32_t pass_meeting(block_context& block, std::uint32_t first) const {
    std::uint32_t alive = 0, waiting = 0, maskless = 0;
    const auto what = [&](std::uint32_t lane) -> const instruction& { return at(block.next[first + lane]); };
    for (std::uint32_t lane = 0; lane < warp_size; ++lane) {
      if (block.next[first + lane] == block_context::ended) continue;
      alive |= 1U << lane;
      if (kernel_.table.is_passable[block.next[first + lane]])
        (what(lane).sources.empty() ? maskless : waiting) |= 1U << lane;
    }
    const auto named = [&](std::uint32_t lane) {
      return static_cast<std::uint32_t>(value_of(block, first + lane, what(lane).sources.back()));
    };
    std::uint32_t group = 0;
    for (std::uint32_t open = waiting; open != 0; open &= ~group) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(open));
      group = 1U << lane;
      for (std::uint32_t other = lane + 1; other < warp_size; ++other)
        if ((open >> other & 1) != 0 && block.next[first + other] == block.next[first + lane] &&
            named(other) == named(lane))
          group |= 1U << other;
      if (group != (named(lane) & alive)) continue;
      meet(block, *this, first, group);
      return group;
    }
    if (maskless == 0) return 0;
    group = earliest(block, first, maskless);
    meet(block, *this, first, group);
    return group;
  }

  const native_kernel& kernel_;
  std::uint32_t running_ = 0;  // the point after which threads run
};

class native_image final : public compiled_image {
 public:
  explicit native_image(const compile_request& request)
      : image_(request.what), graph_(request.what.program()), objects_(find_loaded_objects()) {
    const auto& functions = image_.program().functions;
    for (std::uint32_t n = 0; n < functions.size(); ++n)
      if (functions[n]->is_kernel) kernel_numbers_[functions[n].get()] = n;
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto host = checked(llvm::orc::JITTargetMachineBuilder::detectHost());
    host.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
    // LLVM 19 emits wrong code for a comparison of eight f16 under a mask. Without the feature, LLVM computes in f32.
    host.getFeatures().AddFeature("avx512fp16", false);
    // The linker of LLJIT requires position-independent code.
    host.setRelocationModel(llvm::Reloc::PIC_);
    host.setCodeModel(llvm::CodeModel::Small);
    target_ = checked(host.createTargetMachine());
    has_wide_vectors_ = has("+avx512f");
    jit_ = checked(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(host).create());
    host_.emplace(std::move(host));
    jit_->getMainJITDylib().addGenerator(checked(
        llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit_->getDataLayout().getGlobalPrefix())));
    cache_ = make_cache(request);
  }

  std::shared_ptr<execution_engine> engine_for(const function& kernel, const dimensions& block) override {
    if (const native_kernel* const k = find(kernel, lanes_for(kernel, block)))
      return std::make_shared<native_engine>(*k);
    return std::make_shared<interpreter>(image_.program());
  }

  std::shared_ptr<execution_engine> find_engine(const function& kernel, const dimensions& block) override {
    const native_kernel* const k = find(kernel, lanes_for(kernel, block), false);
    return k == nullptr ? nullptr : std::make_shared<native_engine>(*k);
  }

  std::shared_ptr<execution_engine> successor_for(const function& kernel) override {
    const native_kernel* const k = find(kernel, lanes_of_successor);
    HPE_INVARIANT(k != nullptr);
    return std::make_shared<native_engine>(*k);
  }

  std::uint64_t kept_work(const function& kernel) override {
    std::uint64_t result = 0;
    const auto kept = find_kept(name_of_work(kernel));
    if (kept && kept->getBufferSize() == sizeof result) std::memcpy(&result, kept->getBufferStart(), sizeof result);
    return result;
  }

  void keep_work(const function& kernel, std::uint64_t instructions) override {
    const std::scoped_lock lock(mutex_);
    cache_->store(name_of_work(kernel),
                  {llvm::StringRef(reinterpret_cast<const char*>(&instructions), sizeof instructions), ""});
  }

  bool is_compiled(const function& kernel) override { return find(kernel, lanes_for(kernel, {warp_size})) != nullptr; }

  /// Returns the code for one lane of a kernel that was compiled for several lanes.
  const native_kernel& alone(native_kernel& kernel) {
    const native_kernel* found = kernel.alone.load(std::memory_order_acquire);
    if (found == nullptr) kernel.alone.store(found = find(*kernel.origin, 1), std::memory_order_release);
    HPE_INVARIANT(found != nullptr);
    return *found;
  }

 private:
  // Stands for the code for one lane that successor_for returns.
  static constexpr unsigned lanes_of_successor = 0;

  static std::string name_of_work(const function& kernel) { return kernel.name + ", interpreted"; }

  // Returns the number of lanes for blocks of a shape; 1 if their threads run one by one. hpe compiles a kernel only
  // for the numbers of lanes that its launches need, because each number takes a separate compilation.
  unsigned lanes_for(const function& kernel, const dimensions& block) {
    if (has_wide_vectors_ && block.x % warp_size == 0 &&
        (graph_.meets_in_warps(kernel_numbers_.at(&kernel)) || streams(kernel)))
      return warp_size;
    if (has_wide_vectors_ && block.x % 16 == 0) return 16;
    return block.x % 8 == 0 ? 8 : 1;
  }

  // Whether a kernel streams (lane_analysis). The result is kept, because each launch needs it.
  bool streams(const function& kernel) {
    constexpr std::size_t most_instructions = 400;
    if (kernel.code.size() > most_instructions) return false;
    const std::scoped_lock lock(mutex_);
    const auto [place, is_new] = streams_.try_emplace(&kernel, false);
    if (!is_new) return place->second;
    const auto flat = flatten(image_.program(), graph_, kernel);
    if (!flat || flat->code.size() > most_instructions) return false;
    return place->second = with_lanes_of_warps(*flat, [](const lane_analysis& lanes) { return lanes.streams(); });
  }

  struct lazy_kernel {
    std::mutex making;
    std::atomic<bool> is_made = false;
    std::unique_ptr<native_kernel> code;  // null if the kernel must be interpreted, or is not made
  };

  // Several CPU threads may compile different kernels at the same time. Returns null if the kernel must be interpreted,
  // or if it would have to be compiled and `compiles` is false.
  const native_kernel* find(const function& kernel, unsigned lanes, bool compiles = true) {
    lazy_kernel* place = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      place = &kernels_[{&kernel, lanes}];
    }
    if (place->is_made.load(std::memory_order_acquire)) return place->code.get();
    const std::scoped_lock lock(place->making);
    if (!place->is_made.load(std::memory_order_relaxed)) {
      place->code = build(kernel, lanes, compiles);
      place->is_made.store(compiles || place->code != nullptr, std::memory_order_release);
    }
    return place->code.get();
  }

  // Returns the functions that a kernel reaches through calls that are not inlined.
  std::vector<std::uint32_t> reached(const flat_kernel& flat) const {
    std::vector<bool> seen(image_.program().functions.size());
    std::vector<std::uint32_t> open, all;
    const auto look = [&](const std::vector<instruction>& code) {
      for (const instruction& i : code) {
        if (i.kind != kind::call) continue;
        if (i.sources.empty()) {
          open.push_back(i.callee);
        } else {
          open.insert(open.end(), graph_.targets_of_pointers().begin(), graph_.targets_of_pointers().end());
        }
      }
    };
    look(flat.code);
    while (!open.empty()) {
      const std::uint32_t f = open.back();
      open.pop_back();
      if (seen[f] || !image_.program().functions[f]->is_defined) continue;
      seen[f] = true;
      all.push_back(f);
      look(image_.program().functions[f]->code);
    }
    return all;
  }

  // Returns null like find().
  std::unique_ptr<native_kernel> build(const function& kernel, unsigned lanes, bool compiles) {
    auto flat = flatten(image_.program(), graph_, kernel);
    if (!flat || (flat->scratch_is_local && flat->local_size + flat->scratch_size > kernel.local_size + (8U << 10)))
      return nullptr;
    const bool is_successor = lanes == lanes_of_successor;
    if (is_successor) {
      HPE_INVARIANT(flat->code.size() == kernel.code.size() && can_hand_over(image_.program(), kernel));
      flat->code = with_stops(flat->code);
      lanes = 1;
    }
    auto result = std::make_unique<native_kernel>();
    result->image = this;
    result->origin = &kernel;
    result->flat = std::move(*flat);
    const link_names names(image_, result->flat, objects_);
    llvm::LLVMContext context;
    llvm::Module module(kernel.name, context);
    module.setDataLayout(jit_->getDataLayout());
    module.setTargetTriple(target_->getTargetTriple().str());
    module_context shared(image_, names, module);
    shared.lane_count = lanes;
    region_emitter regions(shared, result->flat);
    result->table = regions.table();
    result->passes = lanes == warp_size;
    for (const instruction& i : result->table.points) result->is_block_barrier.push_back(is_block_barrier(i));
    const std::string name =
        is_successor ? kernel.name + ", after the interpreter" : fmt::format("{}, {} lanes", kernel.name, lanes);
    if (auto kept = find_kept(name)) {
      llvm::Error failure = link(*result, names, std::move(kept));
      if (!failure) return result;
      log(log_level::info, "hpe compiles kernel {} again, because its stored code cannot be linked: {}", kernel.name,
          take_message(std::move(failure)));
    }
    if (!compiles) return nullptr;
    shared.targets_of_pointers = graph_.targets_of_pointers();
    shared.has_half_conversions = has("+f16c");
    shared.has_fast_gathers = has("+fast-gather,-prefer-no-gather");
    const std::vector<std::uint32_t> functions = reached(result->flat);
    for (const std::uint32_t f : functions) declare_device_function(shared, f);
    for (const std::uint32_t f : functions) emit_device_function(shared, f);
    regions.emit();
    std::string message;
    llvm::raw_string_ostream stream(message);
    HPE_REQUIRE(!llvm::verifyModule(module, &stream), HPE_ERROR_INTERNAL,
                "defect in hpe: the code of kernel {} is not valid: {}", kernel.name, message);
    // a separate target machine, because CPU threads must not share one
    const std::unique_ptr<llvm::TargetMachine> target = checked(host_->createTargetMachine());
    optimise(module, *target, is_successor ? llvm::OptimizationLevel::O1 : llvm::OptimizationLevel::O2);
    auto object = checked(llvm::orc::SimpleCompiler(*target)(module));
    {
      const std::scoped_lock lock(mutex_);
      cache_->store(name, *object);
    }
    check(link(*result, names, std::move(object)));
    return result;
  }

  std::unique_ptr<llvm::MemoryBuffer> find_kept(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    return cache_->find(name);
  }

  llvm::Error link(native_kernel& kernel, const link_names& names, std::unique_ptr<llvm::MemoryBuffer> object) {
    auto library = jit_->createJITDylib("kernel " + std::to_string(libraries_++));
    if (!library) return library.takeError();
    library->addGenerator(std::make_unique<name_generator>(names, kernel));
    library->addToLinkOrder(jit_->getMainJITDylib());
    if (llvm::Error failure = jit_->addObjectFile(*library, std::move(object))) return failure;
    llvm::orc::SymbolLookupSet wanted;
    for (std::size_t point = 0; point < kernel.table.points.size(); ++point)
      wanted.add(jit_->mangleAndIntern("region_" + std::to_string(point)));
    auto found = jit_->getExecutionSession().lookup(llvm::orc::makeJITDylibSearchOrder(&*library), wanted);
    if (!found) return found.takeError();
    for (const auto& [name, flags] : wanted)
      kernel.regions.push_back(found->at(name).getAddress().toPtr<region_function>());
    return llvm::Error::success();
  }

  // Returns the kernel cache. The key of the cache contains everything on which code depends: the PTX texts, the order
  // of warps, the CPU, the parser (which numbers instructions and variables), this compiler, and LLVM.
  std::unique_ptr<kernel_cache> make_cache(const compile_request& request) const {
    const auto llvm = static_cast<llvm::StringRef (*)()>(&llvm::sys::getHostCPUName);
    std::vector<std::string_view> inputs{target_->getTargetCPU(), target_->getTargetFeatureString()};
    for (const void* const part :
         {request.parser, reinterpret_cast<const void*>(&helpers::fail), reinterpret_cast<const void*>(llvm)}) {
      const loaded_object* const object = object_at(objects_, part);
      if (object == nullptr || object->build_id.empty()) {
        log(log_level::info, "compiled kernels are not kept: a part of hpe or LLVM has no build id");
        return std::make_unique<kernel_cache>(kernel_store(), inputs);
      }
      inputs.push_back(object->build_id);
    }
    inputs.emplace_back(image_.program().in_lockstep ? "lockstep" : "independent");
    inputs.insert(inputs.end(), image_.program().texts.begin(), image_.program().texts.end());
    return std::make_unique<kernel_cache>(request.kept, inputs);
  }

  /// Returns whether the CPU has these features, given by LLVM's names. The call takes longer than a small launch.
  bool has(const char* features) const { return target_->getMCSubtargetInfo()->checkFeatures(features); }

  // Runs LLVM's usual passes, except two that follow constants through calls. They take up to a tenth of the time, and
  // the emitted code, which has few calls, stays the same.
  static void optimise(llvm::Module& module, llvm::TargetMachine& target, llvm::OptimizationLevel level) {
    for (llvm::Function& f : module) {
      f.addFnAttr("target-cpu", target.getTargetCPU());
      f.addFnAttr("target-features", target.getTargetFeatureString());
    }
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager sccs;
    llvm::ModuleAnalysisManager modules;
    llvm::PassInstrumentationCallbacks choice;
    choice.registerShouldRunOptionalPassCallback([](llvm::StringRef pass, const llvm::Any&) {
      return pass != "IPSCCPPass" && pass != "CalledValuePropagationPass";
    });
    llvm::PassBuilder passes(&target, llvm::PipelineTuningOptions(), std::nullopt, &choice);
    passes.registerModuleAnalyses(modules);
    passes.registerCGSCCAnalyses(sccs);
    passes.registerFunctionAnalyses(functions);
    passes.registerLoopAnalyses(loops);
    passes.crossRegisterProxies(loops, functions, sccs, modules);
    passes.buildPerModuleDefaultPipeline(level).run(module, modules);
  }

  const image& image_;
  call_graph graph_;
  std::map<const function*, std::uint32_t> kernel_numbers_;
  const std::vector<loaded_object> objects_;
  std::unique_ptr<llvm::TargetMachine> target_;
  bool has_wide_vectors_ = false;  // whether the CPU has vectors of 512 bits
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::unique_ptr<kernel_cache> cache_;
  std::optional<llvm::orc::JITTargetMachineBuilder> host_;
  std::atomic<unsigned> libraries_ = 0;
  std::mutex mutex_;  // guards cache_, streams_ and the map kernels_, but not the entries of kernels_
  std::map<const function*, bool> streams_;
  std::map<std::pair<const function*, unsigned>, lazy_kernel> kernels_;  // by kernel and number of lanes
};

}  // namespace

std::uint32_t helpers::run_alone(block_context* block, std::uint32_t point, std::uint32_t begin, std::uint32_t first,
                                 std::uint32_t last, std::uint32_t before, void* kernel) {
  region_function region = nullptr;
  try {
    auto& own = *static_cast<native_kernel*>(kernel);
    region = own.image->alone(own).regions[point];
  } catch (const std::exception& e) {
    block->record(trap::reason::illegal, 0, e.what());
  }
  if (region == nullptr) block->stop();
  const std::uint32_t may_group = std::exchange(block->may_group, 0);
  const std::uint32_t outcome = region(block, first, last);
  block->may_group = may_group;
  if (before == no_outcome || before == outcome) return outcome;
  set_next(block, begin, first, before);
  set_next(block, first, last, outcome);
  return block_context::mixed;
}

}  // namespace hpe::ptx

/// The only exported symbol of the shared object. compiler.cpp looks it up. Throws HPE_ERROR_INTERNAL if LLVM does not
/// support this machine.
extern "C" __attribute__((visibility("default"))) hpe::ptx::compiled_image* hpe_ptx_compile(
    const hpe::ptx::compile_request* request) {
  hpe::set_log_level(request->level);
  return new hpe::ptx::native_image(*request);
}
