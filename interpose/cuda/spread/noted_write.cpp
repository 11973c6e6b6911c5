#include "interpose/cuda/spread/noted_write.h"

namespace hpe::cuda_hooks {

void noted_write::begin(spreading& told, CUstream stream, std::initializer_list<used_range> ranges) {
  told_ = &told;
  places_ = told.keep_places();
  stream_ = stream;
  anything_ = ranges.size() == 0;
  for (const used_range& r : ranges) {
    if (!r.written || r.bytes == 0) continue;
    if (count_ < written_.size()) {
      written_[count_++] = r.address;
    } else {
      anything_ = true;
    }
  }
}

void noted_write::tell() {
  CUstream const stream = stream_ == unknown_stream() ? nullptr : stream_;
  if (anything_) return told_->writes_anything(stream);
  for (unsigned n = 0; n < count_; ++n) told_->writes(written_[n], stream);
}

}  // namespace hpe::cuda_hooks
