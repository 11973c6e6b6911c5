#include "runtime/core/api/soft_cuda.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace hpe::core {

std::optional<soft_cuda> soft_cuda::find() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  auto* const enqueue = reinterpret_cast<enqueue_function*>(::dlsym(library, "hpe_enqueue_on_soft_devices"));
  auto* const wait = reinterpret_cast<synchronize_function*>(::dlsym(library, "hpe_synchronize_on_soft_devices"));
  ::dlclose(library);  // the program keeps it
  return enqueue == nullptr || wait == nullptr ? std::nullopt : std::optional(soft_cuda(enqueue, wait));
}

void soft_cuda::enqueue(unsigned device, hpeEnqueueFunction function, void* argument, std::uint64_t homes,
                        std::span<const hpeAccess> accesses) const {
  struct call {
    hpeEnqueueFunction function;
    void* argument;
    bool has_begun = false;
  } of_program{function, argument};
  const auto note_and_call = [](void* stream, void* made) {
    call& it = *static_cast<call*>(made);
    it.has_begun = true;
    return it.function(stream, it.argument);
  };
  int result = 0;
  const char* const failed =
      enqueue_(device, note_and_call, &of_program, homes, accesses.data(), accesses.size(), &result);
  HPE_REQUIRE(of_program.has_begun, HPE_ERROR_LAUNCH_FAILED, "the CUDA driver of device {} cannot record work: {}",
              device, failed);
  HPE_REQUIRE(result == 0, HPE_ERROR_LAUNCH_FAILED,
              "the function that was to queue work on device {} returned {} instead of 0", device, result);
  HPE_REQUIRE(
      failed == nullptr, HPE_ERROR_LAUNCH_FAILED,
      "the function that was to queue work on device {} made a call that CUDA cannot capture ({}), for example it "
      "waited for its stream; hpeAcquire allows such calls",
      device, failed);
}

std::optional<error> soft_cuda::wait(int device, unsigned count) {
  const auto driver = find();
  std::optional<error> first;
  for (unsigned each = 0; driver && each < count; ++each) {
    if (device >= 0 && each != static_cast<unsigned>(device)) continue;
    const char* const failed = driver->synchronize_(each);
    if (failed != nullptr && !first)
      first.emplace(HPE_ERROR_LAUNCH_FAILED, fmt::format("work of hpeEnqueue failed on device {}: {}", each, failed));
  }
  return first;
}

}  // namespace hpe::core
