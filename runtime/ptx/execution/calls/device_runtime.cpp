// See the CUDA C++ Programming Guide, "CUDA Dynamic Parallelism". Kernels cannot wait for their children. Therefore hpe
// runs children after their parent grid, one after the other, in the order of the calls. This order satisfies all
// dependences through streams and events.

#include "runtime/ptx/execution/calls/device_runtime.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "runtime/ptx/execution/calls/call_arguments.h"
#include "runtime/ptx/execution/calls/device_queue.h"
#include "runtime/ptx/execution/thread_memory.h"

namespace hpe::ptx {

namespace {

struct error_code {
  std::uint32_t code;
  const char* name;
  const char* sentence;
};

constexpr error_code success{0, "cudaSuccess", "no error"};
constexpr error_code invalid_value{1, "cudaErrorInvalidValue", "invalid argument"};
constexpr error_code out_of_memory{2, "cudaErrorMemoryAllocation", "out of memory"};
constexpr error_code invalid_configuration{9, "cudaErrorInvalidConfiguration", "invalid configuration argument"};
constexpr error_code invalid_kernel{98, "cudaErrorInvalidDeviceFunction", "invalid device function"};
constexpr error_code not_supported{801, "cudaErrorNotSupported", "operation not supported"};
constexpr error_code unknown{999, "unrecognized error code", "unrecognized error code"};

constexpr std::array known_codes{success,        invalid_value, out_of_memory, invalid_configuration,
                                 invalid_kernel, not_supported, unknown};

const error_code& describe(std::uint32_t code) {
  const auto* const found =
      std::find_if(known_codes.begin(), known_codes.end(), [&](const auto& e) { return e.code == code; });
  return found == known_codes.end() ? unknown : *found;
}

constexpr std::uint64_t tail_stream = 3;  // cudaStreamTailLaunch

using rows = std::array<std::size_t, 2>;  // width and height

/// A call of a device runtime function. Functions that return an error set the calling thread's last error.
class device_call {
 public:
  device_call(block_context& block, const function& callee, std::uint8_t* formals)
      : block_(block), arguments_(callee, formals), around_(*block.configuration->surroundings) {}

  void get_parameter_buffer() {
    const auto grid = arguments_.get<dimensions>(1), block = arguments_.get<dimensions>(2);
    void* memory = nullptr;
    const error_code& result =
        prepare(arguments_.get<std::uint64_t>(0), grid, block, arguments_.get<std::uint32_t>(3), memory);
    note(result);
    arguments_.set_result(reinterpret_cast<std::uint64_t>(memory));
  }

  void launch() {
    const auto work = queue().take_prepared(arguments_.get<void*>(0));
    if (!work) return fail(invalid_value);
    queue().add(*work, arguments_.get<std::uint64_t>(1) == tail_stream);
    succeed();
  }

  // The interface before CUDA 12 has two functions: this function returns memory for parameters, and launch_with_buffer
  // receives all other arguments.
  void get_plain_buffer() {
    const auto bytes = arguments_.get<std::uint64_t>(1);
    arguments_.set_result(reinterpret_cast<std::uint64_t>(around_.allocate(std::max<std::uint64_t>(bytes, 1))));
  }

  void launch_with_buffer() {
    const auto grid = arguments_.get<dimensions>(2), block = arguments_.get<dimensions>(3);
    const auto* const given = arguments_.get<const std::uint8_t*>(1);
    void* memory = nullptr;
    const error_code& result =
        prepare(arguments_.get<std::uint64_t>(0), grid, block, arguments_.get<std::uint32_t>(4), memory);
    if (memory == nullptr) return fail(result);
    auto work = *queue().take_prepared(memory);
    if (given != nullptr) std::memcpy(memory, given, work.kernel->formals_size);
    around_.release(const_cast<std::uint8_t*>(given));
    queue().add(work, arguments_.get<std::uint64_t>(5) == tail_stream);
    succeed();
  }

  void peek_error() { arguments_.set_result(queue().error(thread())); }

  void get_error() {
    peek_error();
    queue().set_error(thread(), success.code);
  }

  void error_name() {
    arguments_.set_result(reinterpret_cast<std::uint64_t>(describe(arguments_.get<std::uint32_t>(0)).name));
  }

  void error_sentence() {
    arguments_.set_result(reinterpret_cast<std::uint64_t>(describe(arguments_.get<std::uint32_t>(0)).sentence));
  }

  void get_device() { tell(static_cast<std::int32_t>(around_.device)); }
  void get_device_count() { tell(static_cast<std::int32_t>(around_.device_count)); }
  void create_handle() { tell(queue().new_handle()); }
  void ignore() { succeed(); }

  void allocate() {
    void* const memory = around_.allocate(arguments_.get<std::uint64_t>(1));
    if (memory == nullptr) return fail(out_of_memory);
    tell(memory);
  }

  void release() {
    if (void* const memory = arguments_.get<void*>(0); memory != nullptr) around_.release(memory);
    succeed();
  }

  void copy() {
    const auto bytes = arguments_.get<std::size_t>(2);
    add_copy(bytes, bytes, {bytes, 1}, arguments_.get<const std::uint8_t*>(1), arguments_.get<std::uint64_t>(4));
  }

  void copy_rows() {
    add_copy(arguments_.get<std::size_t>(1), arguments_.get<std::size_t>(3),
             {arguments_.get<std::size_t>(4), arguments_.get<std::size_t>(5)}, arguments_.get<const std::uint8_t*>(2),
             arguments_.get<std::uint64_t>(7));
  }

  void fill() {
    const auto bytes = arguments_.get<std::size_t>(2);
    add_fill(bytes, {bytes, 1}, arguments_.get<std::uint32_t>(1), arguments_.get<std::uint64_t>(3));
  }

  void fill_rows() {
    add_fill(arguments_.get<std::size_t>(1), {arguments_.get<std::size_t>(3), arguments_.get<std::size_t>(4)},
             arguments_.get<std::uint32_t>(2), arguments_.get<std::uint64_t>(5));
  }

  // The handle of a conditional node of a graph is the address of the node's condition value.
  void set_condition() {
    auto* const place = arguments_.get<std::uint32_t*>(0);
    const auto address = reinterpret_cast<std::uint64_t>(place);
    if (place == nullptr || address % sizeof *place != 0 ||
        (around_.may_touch && !around_.may_touch(address, sizeof *place))) {
      block_.record(trap::reason::address, address, "cudaGraphSetConditional: the handle belongs to no condition");
      block_.stop();
    }
    *place = arguments_.get<std::uint32_t>(1);
  }

 private:
  [[nodiscard]] device_queue& queue() const {
    if (around_.queue == nullptr) {
      block_.record(trap::reason::illegal, 0, "dynamic parallelism: kernels of this launch cannot queue work");
      block_.stop();
    }
    return *around_.queue;
  }

  [[nodiscard]] std::uint64_t thread() const {
    const dimensions &at = block_.ctaid, &all = block_.nctaid;
    const std::uint64_t number = at.x + std::uint64_t{all.x} * (at.y + std::uint64_t{all.y} * at.z);
    return number * block_.thread_count + block_.current;
  }

  void note(const error_code& result) const {
    if (result.code != success.code) queue().set_error(thread(), result.code);
  }
  void fail(const error_code& result) {
    note(result);
    arguments_.set_result(result.code);
  }
  void succeed() { arguments_.set_result(success.code); }

  template <class T>
  void tell(T value) {
    auto* const to = arguments_.get<T*>(0);
    if (to == nullptr) return fail(invalid_value);
    *to = value;
    succeed();
  }

  const error_code& prepare(std::uint64_t kernel, dimensions grid, dimensions block, std::uint32_t shared,
                            void*& memory) {
    queued_work work;
    work.kernel = block_.configuration->image->function_at(kernel);
    if (work.kernel == nullptr || !work.kernel->is_kernel || !work.kernel->is_defined) return invalid_kernel;
    if (!can_launch(*work.kernel, grid, block, shared)) return invalid_configuration;
    work.grid = grid;
    work.block = block;
    work.dynamic_shared = shared;
    work.parameters = memory = around_.allocate(std::max(work.kernel->formals_size, 1U));
    if (memory == nullptr) return out_of_memory;
    queue().prepare(work);
    return success;
  }

  static bool can_launch(const function& kernel, dimensions grid, dimensions block, std::uint32_t shared) {
    constexpr std::uint32_t most_threads = 1024, most_deep = 64, most_rows = 65535, most_columns = 0x7fffffff;
    const std::uint32_t most = kernel.max_threads == 0 ? most_threads : kernel.max_threads;
    return grid.count() != 0 && block.count() != 0 && block.x <= most_threads && block.y <= most_threads &&
           block.z <= most_deep && block.count() <= most && grid.x <= most_columns && grid.y <= most_rows &&
           grid.z <= most_rows && std::uint64_t{shared} + kernel.shared_size <= most_shared_memory;
  }

  void add_copy(std::size_t to_pitch, std::size_t from_pitch, rows size, const std::uint8_t* from,
                std::uint64_t stream) {
    if (from == nullptr && size[0] * size[1] != 0) return fail(invalid_value);
    queued_work work;
    work.from = from;
    work.from_pitch = from_pitch;
    add_rows(work, to_pitch, size, stream);
  }

  void add_fill(std::size_t pitch, rows size, std::uint32_t value, std::uint64_t stream) {
    queued_work work;
    work.value = static_cast<std::uint8_t>(value);
    add_rows(work, pitch, size, stream);
  }

  void add_rows(queued_work& work, std::size_t pitch, rows size, std::uint64_t stream) {
    work.to = arguments_.get<std::uint8_t*>(0);
    work.to_pitch = pitch;
    work.width = size[0];
    work.height = size[1];
    if (size[0] * size[1] == 0) return succeed();
    if (work.to == nullptr) return fail(invalid_value);
    queue().add(work, stream == tail_stream);
    succeed();
  }

  block_context& block_;
  call_arguments arguments_;
  const surroundings& around_;
};

using function_of_runtime = void (device_call::*)();

const std::unordered_map<std::string_view, function_of_runtime>& functions() {
  // This table is never destroyed, because programs may launch kernels while they exit.
  static const auto& all = *new const std::unordered_map<std::string_view, function_of_runtime>{
      {"EventCreateWithFlags", &device_call::create_handle},
      {"EventDestroy", &device_call::ignore},
      {"EventRecord", &device_call::ignore},
      {"EventRecordWithFlags", &device_call::ignore},
      {"Free", &device_call::release},
      {"GetDevice", &device_call::get_device},
      {"GetDeviceCount", &device_call::get_device_count},
      {"GetErrorName", &device_call::error_name},
      {"GetErrorString", &device_call::error_sentence},
      {"GetLastError", &device_call::get_error},
      {"GetParameterBuffer", &device_call::get_plain_buffer},
      {"GetParameterBufferV2", &device_call::get_parameter_buffer},
      {"GraphSetConditional", &device_call::set_condition},
      {"LaunchDevice", &device_call::launch_with_buffer},
      {"LaunchDeviceV2", &device_call::launch},
      {"Malloc", &device_call::allocate},
      {"Memcpy2DAsync", &device_call::copy_rows},
      {"MemcpyAsync", &device_call::copy},
      {"Memset2DAsync", &device_call::fill_rows},
      {"MemsetAsync", &device_call::fill},
      {"PeekAtLastError", &device_call::peek_error},
      {"StreamCreateWithFlags", &device_call::create_handle},
      {"StreamDestroy", &device_call::ignore},
      {"StreamWaitEvent", &device_call::ignore},
  };
  return all;
}

// Returns the name without prefix and suffix: LaunchDeviceV2 for __cudaCDP2LaunchDeviceV2_ptsz. Empty if the name does
// not belong to CUDA's device runtime.
std::string_view plain_name(std::string_view name) {
  for (const std::string_view prefix : {"__cudaCDP2", "cuda"}) {
    if (!name.starts_with(prefix)) continue;
    name.remove_prefix(prefix.size());
    if (name.ends_with("_ptsz")) name.remove_suffix(5);
    return name;
  }
  return {};
}

}  // namespace

bool is_in_device_runtime(std::string_view function) { return functions().contains(plain_name(function)); }

bool is_absent_from_device_runtime(std::string_view function) {
  // Functions of a program do not have these names, because names of C++ functions are mangled.
  return !plain_name(function).empty() || function == "__cudaDeviceSynchronizeDeprecationAvoidance";
}

bool is_text_of_device_runtime(std::uint64_t address, std::size_t bytes) {
  const auto holds = [&](const char* text) {
    const auto begin = reinterpret_cast<std::uint64_t>(text);
    return address >= begin && address - begin + bytes <= std::strlen(text) + 1;
  };
  return std::any_of(known_codes.begin(), known_codes.end(),
                     [&](const error_code& e) { return holds(e.name) || holds(e.sentence); });
}

void call_device_runtime(block_context& block, const function& callee, std::uint8_t* formals) {
  device_call call(block, callee, formals);
  (call.*functions().at(plain_name(callee.name)))();
}

}  // namespace hpe::ptx
