#pragma once

/// Queues the work of programs that use CUDA directly (kernels that nvcc compiled with the program, and libraries that
/// queue work on a stream), and orders this work with the rest of hpe's work. Header only, for translation units that
/// nvcc compiles, and for other units that can include the headers of the CUDA runtime. The program must link the CUDA
/// runtime, statically or dynamically. hpe numbers the devices as the CUDA runtime does.
///
///   hpe::launch(saxpy, blocks, 256, n, 2.0F, x.data(), y.data());                   // accesses from the arguments
///   hpe::launch_on(1, saxpy, blocks, 256, n, 2.0F, x.data(), y.data(), hpe::in(x), hpe::inout(y));
///   hpe::enqueue(0, [&](cudaStream_t s) { cufftSetStream(plan, s); cufftExecC2C(...); }, hpe::inout(data));
///
/// Calls return as soon as the work is queued. Soft devices cannot run the program's own CUDA code
/// (HPE_ERROR_NOT_SUPPORTED); see launch_over for the kernels that soft devices can run.

#include <cuda_runtime_api.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// nvcc mistakes the name hpe::module for the declaration of a C++20 module and prints a warning.
#ifdef __CUDACC__
#pragma nv_diag_suppress 3189
#endif
#include "hpe/announce.h"
#include "hpe/hpe.hpp"
#include "hpe/ndarray.hpp"
#ifdef __CUDACC__
#pragma nv_diag_default 3189
#endif

namespace hpe {

/// The shape of a launch: its grid and block, and the bytes of dynamic shared memory of each block.
struct cuda_shape {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes = 0;
};

namespace detail {

/// The callback for hpeEnqueueLocked, which calls `function`. If `function` throws, the callback stores the exception
/// for the caller to rethrow. The callback also detects an error that the CUDA runtime recorded but `function` did not
/// return.
template <class Function>
struct enqueued {
  Function& function;
  std::exception_ptr thrown = nullptr;
  cudaError_t failure = cudaSuccess;

  static int call(void* stream, void* self) noexcept {
    auto& it = *static_cast<enqueued*>(self);
    const bool clean = cudaPeekAtLastError() == cudaSuccess;  // hpe leaves an earlier error for the program to fetch
    try {
      const int result = it.run(static_cast<cudaStream_t>(stream));
      if (clean && cudaPeekAtLastError() != cudaSuccess) it.failure = cudaGetLastError();
      return result != 0 ? result : static_cast<int>(it.failure);
    } catch (...) {
      it.thrown = std::current_exception();
      return -1;
    }
  }

  int run(cudaStream_t stream) {
    using result = std::invoke_result_t<Function&, cudaStream_t>;
    if constexpr (std::is_void_v<result>) {
      std::invoke(function, stream);
      return 0;
    } else if constexpr (std::is_same_v<result, cudaError_t>) {
      return static_cast<int>(failure = std::invoke(function, stream));
    } else {
      return static_cast<int>(std::invoke(function, stream));
    }
  }
};

template <class Function>
void enqueue(int device, Function& function, const hpeAccess* accesses, std::size_t count) {
  enqueued<Function> work{function};
  const hpeStatus status = hpeEnqueueLocked(device, &enqueued<Function>::call, &work, accesses, count);
  if (work.thrown) std::rethrow_exception(work.thrown);
  if (status == HPE_ERROR_LAUNCH_FAILED && work.failure != cudaSuccess)
    throw error(status, std::string(hpeGetLastErrorMessage()) + ": " + cudaGetErrorName(work.failure) + ", " +
                            cudaGetErrorString(work.failure));
  check(status);
}

/// The memory that a kernel can reach through a parameter of a given type.
enum class reach { nothing, allocation, everything };

template <class Parameter>
constexpr reach reach_of() {
  using pointee = std::remove_pointer_t<Parameter>;
  if constexpr (std::is_class_v<Parameter> || std::is_union_v<Parameter>) return reach::everything;
  if constexpr (!std::is_pointer_v<Parameter> || std::is_function_v<pointee>) return reach::nothing;
  return std::is_pointer_v<pointee> ? reach::everything : reach::allocation;
}

template <class Parameter>
void add_access(std::vector<hpeAccess>& list, const Parameter& argument) {
  if constexpr (reach_of<Parameter>() == reach::allocation) {
    const void* const address = const_cast<const void*>(static_cast<const volatile void*>(argument));
    const hpePointerInfo into = pointer_info(address);
    if (into.kind == HPE_MEMORY_ORDINARY) return;  // not hpe memory: a null pointer, or memory of the program
    list.push_back({into.base, 0, std::is_const_v<std::remove_pointer_t<Parameter>> ? HPE_IN : HPE_INOUT});
  }
}

template <class... Parameters>
void launch(int device, void (*kernel)(Parameters...), const cuda_shape& shape, std::tuple<Parameters...>& arguments,
            const hpeAccess* accesses, std::size_t count) {
  const auto queue = [&](cudaStream_t stream) {
    const void* const entry = reinterpret_cast<const void*>(kernel);
    constexpr std::size_t without_asking = 48 * 1024;
    if (shape.shared_bytes > without_asking) {
      const auto wanted = static_cast<int>(shape.shared_bytes);
      if (const auto e = cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, wanted)) return e;
    }
    return std::apply(
        [&](Parameters&... each) {
          void* pointers[sizeof...(Parameters) + 1] = {const_cast<void*>(static_cast<const void*>(&each))...};
          return cudaLaunchKernel(entry, shape.grid, shape.block, pointers, shape.shared_bytes, stream);
        },
        arguments);
  };
  try {
    enqueue(device, queue, accesses, count);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_LAUNCH_FAILED) throw;
    const auto text = [](dim3 d) {
      return std::to_string(d.x) + " x " + std::to_string(d.y) + " x " + std::to_string(d.z);
    };
    throw error(HPE_ERROR_INVALID_ARGUMENT, "a kernel with a grid of " + text(shape.grid) + " blocks of " +
                                                text(shape.block) + " threads and " +
                                                std::to_string(shape.shared_bytes) +
                                                " bytes of dynamic shared memory was not launched: " + e.what());
  }
}

}  // namespace detail

/// Calls function(stream) in the calling thread, before enqueue returns. The device is current during the call. The
/// function may queue work on that stream and on no other stream; hpeEnqueueLocked lists what the function must not do.
/// The function returns nothing, or a number that is 0 for success (cudaError_t, cufftResult). If the function throws,
/// enqueue rethrows the exception.
template <class Function, std::same_as<hpeAccess>... Accesses>
requires std::invocable<Function&, cudaStream_t>
void enqueue(int device, Function&& function, const Accesses&... accesses) {
  hpeAccess list[sizeof...(Accesses) + 1];
  std::size_t count = 0;
  ((accesses.size != 0 ? void(list[count++] = accesses) : void()), ...);
  detail::enqueue(device, function, list, count);
}

/// The same as enqueue above, with the accesses as a list.
template <class Function>
requires std::invocable<Function&, cudaStream_t>
void enqueue(int device, Function&& function, std::span<const hpeAccess> accesses) {
  detail::enqueue(device, function, accesses.data(), accesses.size());
}

/// Bytes of hpe memory that the program itself uses on its own streams: kernels that it launches with <<<>>>, and
/// libraries with streams of their own. The constructor waits until hpe's earlier work on the bytes has finished and
/// the data is on the device; see hpeAcquire. Until the object or release_after() ends the use, CPU code and calls of
/// hpe wait before they use the bytes, so this thread must do neither.
///
///   hpe::acquired bytes({hpe::in(x), hpe::inout(y)});
///   saxpy<<<blocks, 256, 0, stream>>>(n, 2.0F, x.data(), y.data());
///   bytes.release_after(stream);
///
/// The destructor ends a use that release_after() has not ended; then the program must have waited for its work.
class acquired {
 public:
  explicit acquired(std::vector<hpeAccess> accesses) {
    std::erase_if(accesses, [](const hpeAccess& a) { return a.size == 0; });
    check(hpeAcquire(&announced_, accesses.data(), accesses.size()));
  }
  acquired(const acquired&) = delete;
  acquired& operator=(const acquired&) = delete;
  ~acquired() {
    if (announced_ != nullptr) hpeAnnouncedEnd(announced_);
  }

  /// Ends the use when the work that is now in the stream has finished. Does not wait. May be called once. Throws
  /// HPE_ERROR_INVALID_ARGUMENT if CUDA refuses the stream.
  void release_after(cudaStream_t stream) {
    const auto end = reinterpret_cast<cudaStreamCallback_t>(&hpeAnnouncedEndOnStream);
    if (const cudaError_t e = cudaStreamAddCallback(stream, end, announced_, 0)) {
      cudaGetLastError();  // the exception tells the error
      throw error(HPE_ERROR_INVALID_ARGUMENT, std::string("release_after: ") + cudaGetErrorString(e));
    }
    announced_ = nullptr;
  }

 private:
  hpeAnnouncement announced_ = nullptr;
};

/// Queues a kernel (a __global__ function) on a device. `rest` consists of the kernel's arguments, in order, and then
/// the accesses of the launch: hpe::in, out and inout.
///
/// If `rest` contains no accesses, hpe derives them from the types of the kernel's parameters. hpe assumes that the
/// kernel reads the whole allocation to which a pointer to const points, and that the kernel reads and writes the whole
/// allocation to which any other pointer points. Pointers to memory other than hpe memory are ignored. If a parameter
/// is a struct or a pointer to pointers, the kernel could reach any memory, so hpe assumes that the kernel uses every
/// allocation. This assumption is correct, but it slows launches down. If a kernel reaches memory through pointers that
/// are stored in memory, the accesses must name that memory.
///
/// Throws HPE_ERROR_INVALID_ARGUMENT with the CUDA runtime's message if the CUDA runtime refuses the launch. If the
/// kernel fails later, hpeSynchronize reports the failure.
template <class... Parameters, class... Rest>
requires(sizeof...(Rest) >= sizeof...(Parameters)) void launch_on(int device, void (*kernel)(Parameters...),
                                                                  const cuda_shape& shape, Rest&&... rest) {
  constexpr std::size_t parameters = sizeof...(Parameters);
  constexpr std::size_t named = sizeof...(Rest) - parameters;
  auto all = std::forward_as_tuple(std::forward<Rest>(rest)...);
  std::tuple<Parameters...> arguments = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple<Parameters...>(std::get<I>(std::move(all))...);
  }
  (std::make_index_sequence<parameters>{});
  if constexpr (named != 0) {
    hpeAccess list[named];
    std::size_t count = 0;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      const hpeAccess each[] = {std::get<parameters + I>(all)...};
      for (const hpeAccess& a : each)
        if (a.size != 0) list[count++] = a;
    }
    (std::make_index_sequence<named>{});
    detail::launch(device, kernel, shape, arguments, list, count);
  } else if constexpr (((detail::reach_of<Parameters>() == detail::reach::everything) || ...)) {
    detail::launch(device, kernel, shape, arguments, nullptr, HPE_ALL);
  } else {
    std::vector<hpeAccess> list;
    std::apply([&](const Parameters&... each) { (detail::add_access<Parameters>(list, each), ...); }, arguments);
    detail::launch(device, kernel, shape, arguments, list.data(), list.size());
  }
}

template <class... Parameters, class... Rest>
requires(sizeof...(Rest) >= sizeof...(Parameters)) void launch_on(int device, void (*kernel)(Parameters...), dim3 grid,
                                                                  dim3 block, Rest&&... rest) {
  launch_on(device, kernel, cuda_shape{grid, block, 0}, std::forward<Rest>(rest)...);
}

/// The same as launch_on, for the calling thread's current device (hpeSetDevice).
template <class... Parameters, class... Rest>
requires(sizeof...(Rest) >= sizeof...(Parameters)) void launch(void (*kernel)(Parameters...), const cuda_shape& shape,
                                                               Rest&&... rest) {
  launch_on(current_device, kernel, shape, std::forward<Rest>(rest)...);
}
template <class... Parameters, class... Rest>
requires(sizeof...(Rest) >= sizeof...(Parameters)) void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                                               Rest&&... rest) {
  launch_on(current_device, kernel, cuda_shape{grid, block, 0}, std::forward<Rest>(rest)...);
}

/// Queues a kernel on several devices, each of which runs one part of the grid, and returns how hpe cut the launch; see
/// hpeLaunchOver. An empty list means all devices. hpe reads the kernel's PTX from the program's file
/// (hpeKernelOfProgram) and derives from it which memory the kernel uses. If a kernel has no PTX or has to run on one
/// device, hpe launches it on the first device, with the accesses that launch_on derives from the parameters. Soft
/// devices can run the launch only if the kernel may run on several devices (hpeKernelGetObstacle).
template <class... Parameters, class... Arguments>
requires(sizeof...(Arguments) == sizeof...(Parameters)) hpeSpread
    launch_over(const std::vector<int>& devices, void (*kernel)(Parameters...), const cuda_shape& shape,
                const Arguments&... arguments) {
  const void* const function = reinterpret_cast<const void*>(kernel);
  const char* name = nullptr;
  hpeKernel in_ptx = nullptr;
  const char* obstacle = nullptr;
  std::string reason;
  if (const cudaError_t e = cudaFuncGetName(&name, function)) {
    cudaGetLastError();  // clears the error; `reason` contains it
    reason = std::string("the CUDA runtime returned no name for the kernel: ") + cudaGetErrorString(e);
  } else if (hpeKernelOfProgram(&in_ptx, function, name) != HPE_SUCCESS ||
             hpeKernelGetObstacle(in_ptx, &obstacle) != HPE_SUCCESS) {
    reason = hpeGetLastErrorMessage();
  } else if (obstacle != nullptr) {
    reason = obstacle;
  } else {
    const std::vector<std::byte> bytes =
        detail::parameters_of(in_ptx, static_cast<Parameters>(detail::parameter_of(arguments))...);
    const hpeGrid grid{{shape.grid.x, shape.grid.y, shape.grid.z},
                       {shape.block.x, shape.block.y, shape.block.z},
                       static_cast<std::uint32_t>(shape.shared_bytes),
                       0,
                       {}};
    hpeSpread how{};
    check(hpeLaunchOver(devices.empty() ? nullptr : devices.data(), devices.size(), in_ptx, &grid, bytes.data(),
                        bytes.size(), &how));
    return how;
  }
  launch_on(devices.empty() ? 0 : devices.front(), kernel, shape, detail::parameter_of(arguments)...);
  hpeSpread how{};
  how.parts = 1;
  reason.copy(how.reason, sizeof how.reason - 1);
  return how;
}

/// Like launch_over above, on all devices.
template <class... Parameters, class... Arguments>
requires(sizeof...(Arguments) == sizeof...(Parameters)) hpeSpread
    launch_over(void (*kernel)(Parameters...), dim3 grid, dim3 block, const Arguments&... arguments) {
  return launch_over(std::vector<int>{}, kernel, cuda_shape{grid, block, 0}, arguments...);
}

}  // namespace hpe
