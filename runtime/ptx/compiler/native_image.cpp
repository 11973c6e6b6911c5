// The kernels of an image as native code. Each kernel has a module of its own in LLVM's JIT, made at its first use.

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <mutex>

#include "runtime/base/error.h"
#include "runtime/ptx/compiler/compiler.h"
#include "runtime/ptx/compiler/device_function.h"
#include "runtime/ptx/compiler/regions.h"
#include "runtime/ptx/execution/interpreter.h"

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

/// The code of a kernel. Lives as long as the image.
struct native_kernel {
  flat_kernel flat;  // messages refer to its instructions
  region_table table;
  std::vector<region_function> regions;
};

class native_engine final : public engine {
 public:
  explicit native_engine(const native_kernel& k) : kernel_(k) {}
  [[nodiscard]] std::uint32_t frame_slots() const override { return kernel_.table.slots; }
  [[nodiscard]] const instruction& at(std::uint32_t point) const override { return kernel_.table.points[point]; }
  void begin(block_context&) override {}
  std::uint32_t run(block_context& block, std::uint32_t point, std::uint32_t first, std::uint32_t last) override {
    // Compiled frames own no objects, so a trap may leave them by longjmp.
    block.in_compiled_code = true;
    if (setjmp(block.landing) != 0) {
      block.in_compiled_code = false;
      if (block.trap.why == trap::reason::address && block.may_group != 0) find_thread(block, point, last);
      throw trap_exception{block.trap};
    }
    const std::uint32_t next = kernel_.regions[point](&block, first, last);
    block.in_compiled_code = false;
    return next;
  }
  [[nodiscard]] std::shared_ptr<engine> another() const override { return std::make_shared<native_engine>(kernel_); }

 private:
  // A group of threads has touched a wrong address. Its threads run once more, one by one, so that the trap names the
  // right one. The memory that they write meanwhile has no meaning any more, because the kernel has failed.
  void find_thread(block_context& block, std::uint32_t point, std::uint32_t last) {
    const trap first = block.trap;
    block.may_group = 0;
    try {
      run(block, point, block.current, last);
      block.trap = first;
    } catch (const trap_exception&) {
      // block.trap names the thread now
    }
    block.may_group = 1;
  }

  const native_kernel& kernel_;
};

class native_image final : public compiled_image {
 public:
  explicit native_image(const image& what) : image_(what), graph_(what.program()) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto host = checked(llvm::orc::JITTargetMachineBuilder::detectHost());
    host.setCodeGenOptLevel(llvm::CodeGenOptLevel::Default);
    target_ = checked(host.createTargetMachine());
    jit_ = checked(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(host)).create());
    jit_->getMainJITDylib().addGenerator(checked(
        llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(jit_->getDataLayout().getGlobalPrefix())));
  }

  std::shared_ptr<engine> engine_for(const function& kernel) override {
    if (const native_kernel* const k = find(kernel)) return std::make_shared<native_engine>(*k);
    return std::make_shared<interpreter>(image_.program());
  }

  bool is_compiled(const function& kernel) override { return find(kernel) != nullptr; }

 private:
  const native_kernel* find(const function& kernel) {
    const std::scoped_lock lock(mutex_);
    const auto [place, is_new] = kernels_.try_emplace(&kernel);
    if (is_new) place->second = build(kernel);
    return place->second.get();
  }

  // The functions that a kernel reaches by calls that are not inlined.
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

  std::unique_ptr<native_kernel> build(const function& kernel) {
    auto flat = flatten(image_.program(), graph_, kernel);
    if (!flat || (flat->scratch_is_local && flat->local_size + flat->scratch_size > kernel.local_size + (8U << 10)))
      return nullptr;
    auto result = std::make_unique<native_kernel>();
    result->flat = std::move(*flat);
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>(kernel.name, *context);
    module->setDataLayout(jit_->getDataLayout());
    module->setTargetTriple(target_->getTargetTriple().str());
    {
      module_context shared(image_, *module);
      shared.targets_of_pointers = graph_.targets_of_pointers();
      const std::vector<std::uint32_t> functions = reached(result->flat);
      for (const std::uint32_t f : functions) declare_device_function(shared, f);
      for (const std::uint32_t f : functions) emit_device_function(shared, f);
      result->table = region_emitter(shared, result->flat).emit();
    }
    std::string message;
    llvm::raw_string_ostream stream(message);
    HPE_REQUIRE(!llvm::verifyModule(*module, &stream), HPE_ERROR_INTERNAL,
                "defect in hpe: the code of kernel {} is not valid: {}", kernel.name, message);
    optimise(*module);
    llvm::orc::JITDylib& library = checked(jit_->createJITDylib(kernel.name + "#" + std::to_string(kernels_.size())));
    library.addToLinkOrder(jit_->getMainJITDylib());
    check(jit_->addIRModule(library, llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
    for (std::size_t point = 0; point < result->table.points.size(); ++point)
      result->regions.push_back(
          checked(jit_->lookup(library, "region_" + std::to_string(point))).toPtr<region_function>());
    return result;
  }

  void optimise(llvm::Module& module) {
    for (llvm::Function& f : module) {
      f.addFnAttr("target-cpu", target_->getTargetCPU());
      f.addFnAttr("target-features", target_->getTargetFeatureString());
    }
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager sccs;
    llvm::ModuleAnalysisManager modules;
    llvm::PassBuilder passes(target_.get());
    passes.registerModuleAnalyses(modules);
    passes.registerCGSCCAnalyses(sccs);
    passes.registerFunctionAnalyses(functions);
    passes.registerLoopAnalyses(loops);
    passes.crossRegisterProxies(loops, functions, sccs, modules);
    passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
  }

  const image& image_;
  call_graph graph_;
  std::unique_ptr<llvm::TargetMachine> target_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  std::mutex mutex_;
  std::unordered_map<const function*, std::unique_ptr<native_kernel>> kernels_;
};

}  // namespace

}  // namespace hpe::ptx

/// The only exported symbol of the shared object, which compiler.cpp looks up. Throws HPE_ERROR_INTERNAL if LLVM does
/// not support this machine.
extern "C" __attribute__((visibility("default"))) hpe::ptx::compiled_image* hpe_ptx_compile(
    const hpe::ptx::image* what) {
  return new hpe::ptx::native_image(*what);
}
