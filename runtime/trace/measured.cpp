#include "runtime/trace/measured.h"

namespace hpe::trace {

void measured::tell() noexcept {
  const clock::time_point end = clock::now();
  if (profile_ != nullptr && how_ != way::touch)
    call_stack::prepare();  // not for touches, which are measured in
                            // signal handlers
  if (profile_ != nullptr) profile_->add(how_, bytes_, end - begin_, address_);
  const category what = how_ == way::touch ? category::fault : category::copy;
  if (recorder_ != nullptr) recorder_->add(what, name_of(how_), this_thread(), begin_, end, bytes_);
}

}  // namespace hpe::trace
