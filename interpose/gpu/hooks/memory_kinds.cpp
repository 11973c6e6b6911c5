// The two kinds of memory that hpe registers. spread_launches divides launches among several GPUs (--spread, class
// spreading); it becomes active when the program has a context. memory_of_hpe allocates hpe memory for the program
// (--spread and --oversubscribe, class oversubscribed); it becomes active when spread_launches does, or, with
// --oversubscribe, at the program's first large allocation.
#include "interpose/gpu/hooks/memory_kind.h"
#include "interpose/gpu/interposer.h"
#include "interpose/gpu/oversubscribed/oversubscribed.h"
#include "interpose/gpu/spread/part_launches.h"
#include "interpose/gpu/spread/program_code.h"
#include "interpose/gpu/spread/spreading.h"
#include "interpose/gpu/work/enqueue_guard.h"
#include "interpose/gpu/work/launch_parameters.h"

namespace hpe::cuda_hooks {

namespace {

/// Returns act(feature) if the feature is active; otherwise a default value (nullopt, false or CUDA_SUCCESS).
template <class Feature, class Act>
auto with(const Act& act) {
  using result = std::invoke_result_t<const Act&, Feature&>;
  Feature* const it = Feature::active();
  if constexpr (std::is_void_v<result>) {
    if (it != nullptr) act(*it);
  } else {
    return it != nullptr ? act(*it) : result{};
  }
}

class spread_launches final : public memory_kind {
 public:
  std::optional<CUresult> run(const device_call& call, queue_part /*queue*/) override {
    if (call.what == device_call::family::other) with<spreading>([&](spreading& all) { all.uses(call.uses.words); });
    if (call.what != device_call::family::launch) return std::nullopt;
    if (spreading::active() == nullptr)
      if (interposer* const hpe = interposer::instance()) spreading::stays_on_one_gpu(hpe->driver());
    return with<spreading>([&](spreading& all) -> std::optional<CUresult> {
      const program_launch& what = *call.launch;
      const enqueue_guard work(what);
      return work.failed() ? work.result() : all.launch(what, *call.alone);
    });
  }
  CUresult failure() override {
    return with<spreading>([](spreading& all) { return all.or_failure(CUDA_SUCCESS); });
  }
  void frees_other(CUdeviceptr address) override {
    with<spreading>([&](spreading& all) { all.frees_other(address); });
  }
  void ends(CUcontext /*context*/) override {
    with<spreading>([](spreading& all) { all.ends_context(); });
  }
  // The next kind of memory frees the program's memory.
  std::optional<CUresult> reset(CUdevice /*device*/) override {
    with<spreading>([](spreading& all) { all.ends_context(); });
    return std::nullopt;
  }
  std::vector<CUdevice> joined_to(CUdevice device) override {
    std::vector<CUdevice> result;
    interposer* const hpe = device == 0 ? interposer::instance() : nullptr;
    if (hpe == nullptr || !spreading::joins_gpus(hpe->driver())) return result;
    const joined_gpus gpus(hpe->driver());
    for (unsigned n = 1; n < gpus.count(); ++n) result.push_back(gpus.device(n));
    return result;
  }
  void has_context(CUdevice device) override {
    if (interposer* const hpe = device == 0 ? interposer::instance() : nullptr) spreading::begin(hpe->driver());
  }
};

class memory_of_hpe final : public memory_kind {
 public:
  // With --oversubscribe, the first large allocation starts hpe's runtime. Without --oversubscribe, hpe leaves
  // allocations from pools to the driver.
  std::optional<CUresult> allocate(CUdeviceptr& made, std::size_t bytes, bool of_pool) override {
    const auto allocated = [&] { return oversubscribed::allocate(interposer::instance()->driver(), &made, bytes); };
    if (oversubscribed::wanted()) return allocated();
    return of_pool ? std::nullopt : with<oversubscribed>([&](oversubscribed&) { return allocated(); });
  }
  bool make_room() override {
    return with<oversubscribed>([](oversubscribed& all) { return all.give_back_freed(); });
  }
  std::optional<CUresult> allocate_by_driver(const driver_allocation& what, driver_call call) override {
    interposer* const hpe = interposer::instance();
    if (hpe == nullptr || !oversubscribed::wanted()) return std::nullopt;
    if (oversubscribed::active() == nullptr && what.bytes < oversubscribed::smallest) return std::nullopt;
    oversubscribed* const all = oversubscribed::start(hpe->driver());
    return all != nullptr ? all->allocate_by_driver(what, call) : std::nullopt;
  }
  void changed(const driver_allocation_event& event) override {
    with<oversubscribed>([&](oversubscribed& all) { all.by_driver().note(event); });
  }
  std::optional<CUresult> free(CUdeviceptr address) override {
    return with<oversubscribed>([&](oversubscribed& all) { return all.free(address); });
  }
  // hpe does not reset a context with hpe memory, because hpe's own work runs in this context; it only frees the
  // program's memory.
  std::optional<CUresult> reset(CUdevice device) override {
    const auto frees_other = [](CUdeviceptr address) {
      with<spreading>([&](spreading& all) { all.frees_other(address); });
      interposer::started()->gives_back(address);
    };
    return with<oversubscribed>([&](oversubscribed& all) { return std::optional(all.free_all(device, frees_other)); });
  }

  std::optional<device_range> range_at(CUdeviceptr address) override {
    const auto object = object_at(address);
    return object ? std::optional(device_range{object->base, object->bytes}) : std::nullopt;
  }
  std::optional<CUresult> attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) override {
    const auto object = object_at(address);
    if (!object) return std::nullopt;
    return describe(*object, address, attribute, value);
  }
  std::optional<device::memory_usage> memory() override {
    interposer* const hpe = interposer::instance();
    if (hpe != nullptr && oversubscribed::wanted()) oversubscribed::start(hpe->driver());
    return with<oversubscribed>([](oversubscribed& all) { return all.memory(); });
  }
  std::optional<const char*> obstacle_to_sharing(CUdeviceptr address) override {
    return object_at(address) ? std::optional("may leave the device (--oversubscribe, --spread)") : std::nullopt;
  }

  void ends(CUstream stream) override {
    with<oversubscribed>([&](oversubscribed& all) { all.ends(stream); });
  }
  void ends(CUcontext context) override {
    if (context != nullptr) with<oversubscribed>([&](oversubscribed& all) { all.ends(context); });
  }

  void code(const program_code_event& event) override {
    program_code::of_process().record(event);
    if (event.what != program_code_event::step::unloaded) return;
    with<spreading>([](spreading& s) { s.forget_handles(); });
    launches_.forget_handles();
  }
  void change_captures(int by) override { oversubscribed::change_captures(by); }
  // A wait for the earlier work must not include the later work.
  void divided(std::optional<CUstream> stream, device::cuda::division where) override {
    with<oversubscribed>([&](oversubscribed& all) { all.divided(stream, where); });
  }

  std::optional<CUresult> run(const device_call& call, queue_part queue) override {
    return with<oversubscribed>([&](oversubscribed& all) -> std::optional<CUresult> {
      const auto bytes = [&](std::size_t at, std::size_t width) { return queue({at, 0, 0, {width}}); };
      const auto whole = [&] { return queue({}); };
      const bool is_range = call.shape.extent.is_one_row();
      switch (call.what) {
        case device_call::family::copy:
          if (is_range)
            return all.copies().copy(call.to, call.from, call.shape.bytes(), call.stream, call.waits, bytes);
          return all.copies().use_box(call.to, call.from, call.shape, call.stream, queue);
        case device_call::family::fill:
          if (is_range) return all.copies().overwrite(call.to, call.shape.bytes(), call.unit, call.stream, bytes);
          return all.copies().use_box(call.to, 0, call.shape, call.stream, queue);
        case device_call::family::launch:
          return launches_.launch(
              interposer::instance()->driver(), all, *call.launch, [&] { return use_of(all, *call.launch); }, whole,
              *call.alone);
        case device_call::family::other: return all.run(call.stream, use_of(all, call.uses), whole);
      }
      return std::nullopt;
    });
  }
  // Ignores uses.words, because the driver inspects only the memory of copies and fills (uses.ranges), not the memory
  // of kernels.
  std::optional<CUresult> look(const memory_uses& uses, function_ref<CUresult()> call) override {
    return with<oversubscribed>(
        [&](oversubscribed& all) { return std::optional(all.look(all.use_of(ranges_of(uses)), call)); });
  }
  void named_by_handle(CUdeviceptr address) override {
    with<oversubscribed>([&](oversubscribed& all) { all.objects().use_in_every_launch(address); });
    with<spreading>([](spreading& s) { s.outdate_launches(); });
  }

 private:
  static std::optional<program_object> object_at(CUdeviceptr address) {
    return with<oversubscribed>([&](oversubscribed& all) { return all.objects().find(address); });
  }
  /// Sets `value` as the driver does for its own allocations. Returns nullopt for attributes of the mapping at an
  /// address, which the driver knows.
  static std::optional<CUresult> describe(const program_object& object, CUdeviceptr address,
                                          CUpointer_attribute attribute, void* value) {
    switch (attribute) {
      case CU_POINTER_ATTRIBUTE_CONTEXT:
        *static_cast<CUcontext*>(value) =
            with<oversubscribed>([&](oversubscribed& all) { return all.context_of(object); });
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *static_cast<unsigned*>(value) = CU_MEMORYTYPE_DEVICE; return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_HOST_POINTER: return CUDA_ERROR_INVALID_VALUE;
      case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *static_cast<CUdeviceptr*>(value) = address; return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *static_cast<unsigned long long*>(value) = object.number;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_IS_MANAGED: *static_cast<unsigned*>(value) = 0; return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *static_cast<int*>(value) = static_cast<int>(object.device);
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *static_cast<CUdeviceptr*>(value) = object.base; return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<std::size_t*>(value) = object.bytes; return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_MAPPED: *static_cast<unsigned*>(value) = 1; return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:  // hpe may move the memory
      case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *static_cast<unsigned*>(value) = 0; return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: *static_cast<std::uint64_t*>(value) = 0; return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *static_cast<unsigned*>(value) = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        return CUDA_SUCCESS;
      case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *static_cast<CUmemoryPool*>(value) = nullptr; return CUDA_SUCCESS;
      default: return std::nullopt;
    }
  }
  static std::vector<oversubscribed::accessed_range> ranges_of(const memory_uses& uses) {
    std::vector<oversubscribed::accessed_range> result;
    for (const used_range& r : uses.ranges) result.push_back({r.address, r.bytes, r.written ? HPE_INOUT : HPE_IN});
    return result;
  }
  static program_use use_of(const oversubscribed& all, const memory_uses& uses) {
    if (uses.anything) return all.use_of(std::nullopt);
    program_use result = all.use_of(uses.words, uses.follows_pointers);
    const program_use more = all.use_of(ranges_of(uses));
    result.accesses.insert(result.accesses.end(), more.accesses.begin(), more.accesses.end());
    return result;
  }
  static program_use use_of(const oversubscribed& all, const program_launch& launch) {
    return all.use_of_unknown([&] { return words_of(interposer::instance()->driver(), launch); });
  }

  launches_of_devices launches_;
};

}  // namespace

// The objects are never destroyed, because threads of the program may call the driver until the process ends.
void register_memory_kinds() {
  if (spreading::wanted()) memory_kinds::add(*new spread_launches);
  if (spreading::wanted() || oversubscribed::wanted()) memory_kinds::add(*new memory_of_hpe);
}

}  // namespace hpe::cuda_hooks
