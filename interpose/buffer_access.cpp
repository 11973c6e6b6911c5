#include "interpose/buffer_access.h"

// Invariant: if the range is hpe memory and not empty, access_ is set, and data_ points into copy_ or, if copy_ is
// empty, into the alias (the runtime's own mapping of the range in host memory). If the range is adopted memory and not
// empty, adopted_ is set, and data_ points into own_. Otherwise data_ points to the range itself.

namespace hpe::interpose {

namespace {

constexpr std::size_t page = 4096;

}  // namespace

void buffer_access::use_adopted(adopted_pointers& behind, bool read_now) {
  adopted_ = &behind;
  const std::size_t lead = reinterpret_cast<std::uintptr_t>(address_) % page;
  own_ = {behind.borrow(lead + bytes_), return_memory{&behind, lead + bytes_}};
  data_ = own_.get() + lead;
  if (read_now) read_adopted();
}

void buffer_access::read_adopted() { adopted_->read(data_, reinterpret_cast<std::uintptr_t>(address_), adopted_runs_); }

buffer_access::buffer_access(const void* address, std::size_t bytes, host_use use, bool again,
                             std::vector<host_run> runs)
    : address_(static_cast<std::byte*>(const_cast<void*>(address))),
      bytes_(bytes),
      use_(use),
      runs_(std::move(runs)),
      data_(address_) {
  if (bytes == 0) return;
  core::host_access* const access = core::host_access::of(address);
  if (access == nullptr) {
    adopted_pointers* const behind = adopted_pointers::of(address);
    for (const host_run& one : runs_)
      adopted_runs_.push_back({static_cast<std::ptrdiff_t>(one.offset), {{one.bytes}, {}}});
    if (behind != nullptr) use_adopted(*behind, use != host_use::write && !again);
    return;
  }
  access_ = access;
  // With `again`, the range may be used in place only if this is possible at every later refresh(). A valid copy in
  // host memory, which suffices for one read, may be invalid later; so in_place() is called as for writing.
  const host_use lasting = again ? host_use::write : use;
  if (std::byte* const place = access->in_place(address, bytes, lasting)) {
    data_ = place;
    return;
  }
  copy_ = access->borrow(address, bytes);
  data_ = copy_.data();
  if (use != host_use::write && !again) access->read(data_, address_, bytes_, runs_);
}

buffer_access::buffer_access(adopted_pointers& behind, const void* address, host_use use, bool again, const box& shape)
    : address_(static_cast<std::byte*>(const_cast<void*>(address))),
      bytes_(shape.span()),
      use_(use),
      adopted_runs_{{0, shape}} {
  use_adopted(behind, use != host_use::write && !again);
}

buffer_access buffer_access::started(const void* address, std::size_t bytes) {
  buffer_access result;
  result.address_ = static_cast<std::byte*>(const_cast<void*>(address));
  result.bytes_ = bytes;
  result.data_ = result.address_;
  core::host_access* const access = bytes != 0 ? core::host_access::of(address) : nullptr;
  if (access == nullptr) {
    adopted_pointers* const behind = bytes != 0 ? adopted_pointers::of(address) : nullptr;
    result.adopted_runs_ = {{0, {{bytes}, {}}}};
    if (behind != nullptr) {
      result.use_adopted(*behind, false);
      result.moving_ = behind->start_read(result.data_, reinterpret_cast<std::uintptr_t>(address), bytes);
    }
    return result;
  }
  result.access_ = access;
  if (std::byte* const place = access->in_place(address, bytes, host_use::read)) {
    result.data_ = place;
  } else {
    result.copy_ = access->borrow(address, bytes);
    result.data_ = result.copy_.data();
    result.copying_ = access->start_read(result.data_, address, bytes);
  }
  return result;
}

bool buffer_access::ready() const { return access_ != nullptr ? access_->reached(copying_) : moving_.done(); }

void buffer_access::wait_ready() { access_ != nullptr ? access_->finish(copying_) : moving_.wait(); }

void buffer_access::refresh() {
  if (adopted_ != nullptr && use_ != host_use::write) read_adopted();
  if (access_ == nullptr) return;
  if (in_place()) {
    (void)access_->in_place(address_, bytes_, use_);
    return;
  }
  settle();
  if (use_ != host_use::write) access_->read(data_, address_, bytes_, runs_);
}

void buffer_access::settle() {
  if (access_ != nullptr && !in_place()) access_->settle(copy_);
  moving_.wait();
}

bool buffer_access::settled() const {
  return access_ == nullptr || in_place() ? moving_.done() : access_->settled(copy_);
}

void buffer_access::start_written() {
  if (adopted_ == nullptr) return written();
  moving_ = adopted_->start_write(reinterpret_cast<std::uintptr_t>(address_), data_, bytes_);
}

void buffer_access::written(std::size_t offset, std::size_t bytes) {
  if (adopted_ != nullptr)
    adopted_->write(reinterpret_cast<std::uintptr_t>(address_) + offset, data_ + offset, bytes);
  else if (!in_place())
    access_->write(address_ + offset, copy_, data_ + offset, bytes);
}

void buffer_access::written(std::span<const placed_box> boxes) {
  if (adopted_ != nullptr) return adopted_->write(reinterpret_cast<std::uintptr_t>(address_), data_, boxes);
  for (const placed_box& each : boxes)
    each.shape.for_each_row(
        [&](std::size_t at) { written(static_cast<std::size_t>(each.offset) + at, each.shape.extent.width); });
}

}  // namespace hpe::interpose
