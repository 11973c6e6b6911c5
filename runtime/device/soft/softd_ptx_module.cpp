#include "runtime/device/soft/softd_ptx_module.h"

#include "runtime/base/error.h"
#include "runtime/device/soft/ptx_layout.h"
#include "runtime/device/soft/soft_ptx_module.h"
#include "runtime/ptx/interpreter.h"
#include "runtime/ptx/parser.h"

namespace hpe::device::soft {

softd_ptx_module::softd_ptx_module(os::file_descriptor texts, std::size_t bytes, const ptx_addresses& parts,
                                   bool interpret)
    : texts_(std::move(texts)), bytes_(bytes), parts_(parts), interpret_(interpret) {}

void softd_ptx_module::prepare() {
  const std::shared_ptr<const ptx::program> program = ptx::parse(unpack_texts(texts_.get(), bytes_));
  auto image = std::make_unique<ptx::image>(program, lay_out(*program).addresses(parts_));
  if (!interpret_) compiled_ = ptx::compile(*image);
  image_ = std::move(image);
  texts_.reset();
}

const ptx::function& softd_ptx_module::find(const std::string& kernel) {
  std::call_once(prepared_, [this] { prepare(); });
  const ptx::function* const found = image_->program().find_kernel(kernel);
  HPE_REQUIRE(found != nullptr, HPE_ERROR_NOT_FOUND, "there is no kernel \"{}\" in the module of PTX", kernel);
  return *found;
}

std::shared_ptr<ptx::engine> softd_ptx_module::engine_for(const ptx::function& kernel) {
  if (compiled_) return compiled_->engine_for(kernel);
  return std::make_shared<ptx::interpreter>(image_->program());
}

}  // namespace hpe::device::soft
