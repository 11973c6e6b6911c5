// The functions cuLink..., which link PTX texts to one image. hpe links the texts when it loads a module, so the image
// only contains the texts. cuLinkComplete loads the image once to test whether hpe can link the texts.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/handle_table.h"
#include "interpose/soft/cudart/module/module_image.h"
#include "interpose/soft/cudart/module/module_table.h"
#include "interpose/soft/libcuda/call.h"
#include "interpose/soft/libcuda/module/grid_barrier.h"
#include "interpose/soft/libcuda/module/jit_options.h"

namespace hpe::libcuda {

jit_logs::jit_logs(unsigned count, const CUjit_option* options, void** values) noexcept {
  if (options == nullptr || values == nullptr) return;
  for (unsigned i = 0; i < count; ++i) {
    switch (options[i]) {
      case CU_JIT_INFO_LOG_BUFFER: info_.text = static_cast<char*>(values[i]); break;
      case CU_JIT_ERROR_LOG_BUFFER: error_.text = static_cast<char*>(values[i]); break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_.room = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i]));
        info_.told = values + i;
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        error_.room = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i]));
        error_.told = values + i;
        break;
      default: break;
    }
  }
}

void jit_logs::log::write(std::string_view sentence) const noexcept {
  std::size_t written = 0;
  if (text != nullptr && room > 0) {
    written = std::min(sentence.size(), room - 1);
    std::memcpy(text, sentence.data(), written);
    text[written] = '\0';
  }
  if (told != nullptr) *told = reinterpret_cast<void*>(written);
}

void jit_logs::clear() const noexcept {
  info_.write("");
  error_.write("");
}

void jit_logs::tell(std::string_view sentence) const noexcept { error_.write(sentence); }

}  // namespace hpe::libcuda

using namespace hpe::libcuda;
using hpe::cudart::failure;
using hpe::cudart::process;
using hpe::cudart::require;

namespace {

struct link_state {
  jit_logs logs;
  std::vector<std::string> texts;
  std::string image;
};

using link_table = hpe::cudart::handle_table<CUlinkState, link_state, cudaErrorInvalidResourceHandle>;

link_table& links() {
  static auto* const only = new link_table;
  return *only;
}

/// Whether a file is CUDA's device runtime, a library of host objects without PTX. hpe has its own PTX only for the
/// functions that synchronize grids; if a program needs other functions of the device runtime, linking fails.
bool is_device_runtime(std::string_view name) { return name.find("cudadevrt") != std::string_view::npos; }

void add(link_state& to, CUjitInputType type, const std::string& bytes, std::string_view name) {
  switch (type) {
    // `bytes` may contain a zero byte at which the text ends.
    case CU_JIT_INPUT_PTX: to.texts.emplace_back(bytes.c_str()); return;
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_FATBINARY: {
      auto texts = hpe::cudart::read_image(bytes);
      std::move(texts.begin(), texts.end(), std::back_inserter(to.texts));
      return;
    }
    default:
      if (is_device_runtime(name)) {
        to.texts.emplace_back(grid_barrier_text);
        return;
      }
      to.logs.tell("hpe links PTX and fat binaries with PTX; host objects, libraries and NVVM code are not linked");
      throw failure(type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_LIBRARY || type == CU_JIT_INPUT_NVVM
                        ? cudaErrorNotSupported
                        : cudaErrorInvalidValue);
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* made) {
  return call("cuLinkCreate_v2", [&] {
    auto state = std::make_shared<link_state>();
    state->logs = {count, options, values};
    state->logs.clear();
    given(made) = links().adopt(std::move(state));
  });
}

CUresult CUDAAPI cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, std::size_t size,
                                  const char* name, unsigned /*count*/, CUjit_option* /*options*/, void** /*values*/) {
  return call("cuLinkAddData_v2", [&] {
    require(data != nullptr && size > 0, cudaErrorInvalidValue);
    add(*links().find(state), type, std::string(static_cast<const char*>(data), size), name != nullptr ? name : "");
  });
}

CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned /*count*/,
                                  CUjit_option* /*options*/, void** /*values*/) {
  return call("cuLinkAddFile_v2", [&] {
    require(path != nullptr, cudaErrorInvalidValue);
    add(*links().find(state), type, hpe::cudart::read_whole_file(path), path);
  });
}

/// The image is valid as long as the link state exists.
CUresult CUDAAPI cuLinkComplete(CUlinkState handle, void** image, std::size_t* bytes) {
  return call("cuLinkComplete", [&] {
    require(image != nullptr, cudaErrorInvalidValue);
    const auto state = links().find(handle);
    std::string why;
    try {
      require(!state->texts.empty(), cudaErrorInvalidValue);
      process().modules().remove(process().modules().load(state->texts, process().memory(), &why));
    } catch (const failure&) {
      state->logs.tell(why);
      throw;
    }
    state->image = hpe::cudart::make_linked_image(state->texts);
    *image = state->image.data();
    if (bytes != nullptr) *bytes = state->image.size();
  });
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState state) {
  return call("cuLinkDestroy", [&] { links().destroy(state); });
}
}
