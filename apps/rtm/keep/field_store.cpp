// In a ring of n slots, item i is in slot i % n. After the last item is written, the ring holds the last n items, so
// these items are not read back. A slot is filled again as soon as the kernels that read its item are queued, because
// the runtime runs copies, reads and writes of a slot after earlier kernels that use the slot.
#include "apps/rtm/keep/field_store.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "apps/rtm/keep/sink.h"
#include "hpe/hpe.hpp"

namespace hpe::rtm {

namespace {

/// Keeps all items in device memory: each item has its own slot.
class device_store final : public field_store {
 public:
  std::int64_t to_write(std::int64_t item) override { return item; }
  void written(std::int64_t /*item*/) override {}
  std::int64_t to_read(std::int64_t item) override { return item; }
  void was_read(std::int64_t /*item*/) override {}
};

/// The ring of buffers, for stores whose items are on the host or on disk.
class ring_store : public field_store {
 public:
  std::int64_t to_write(std::int64_t item) override {
    if (item >= size()) wait_for(item - size());
    return item % size();
  }
  void written(std::int64_t item) override {
    out(item);
    last_ = item;
  }
  std::int64_t to_read(std::int64_t item) override {
    if (item <= last_ - size()) wait_for(item);
    return item % size();
  }
  void was_read(std::int64_t item) override {
    if (item >= size()) in(item - size());
  }

 protected:
  explicit ring_store(slots memory) : memory_(std::move(memory)) {}
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(memory_.size()); }
  [[nodiscard]] const std::vector<std::span<std::uint8_t>>& slot_of(std::int64_t item) const {
    return memory_[static_cast<std::size_t>(item % size())];
  }

 private:
  /// out() begins to move an item from its slot to the host or the disk; in() begins to move an item into its slot.
  virtual void out(std::int64_t item) = 0;
  virtual void in(std::int64_t item) = 0;
  /// Waits until the last move of the item has ended.
  virtual void wait_for(std::int64_t item) = 0;

  const slots memory_;
  std::int64_t last_ = 0;
};

/// Keeps items in host memory. The runtime orders the copies from and to devices, so no function waits.
class host_store final : public ring_store {
 public:
  host_store(slots memory, std::int64_t items) : ring_store(std::move(memory)) {
    for (const std::span<std::uint8_t>& part : slot_of(0)) item_bytes_ += part.size();
    kept_ = array<std::uint8_t>(item_bytes_ * static_cast<std::size_t>(items), on_host());
  }

 private:
  void out(std::int64_t item) override {
    for_parts(item, [](std::uint8_t* kept, std::span<std::uint8_t> part) { copy(kept, part.data(), part.size()); });
  }
  void in(std::int64_t item) override {
    for_parts(item, [](std::uint8_t* kept, std::span<std::uint8_t> part) { copy(part.data(), kept, part.size()); });
  }
  void wait_for(std::int64_t /*item*/) override {}

  template <class Move>
  void for_parts(std::int64_t item, Move move) const {
    std::uint8_t* kept = kept_.data() + item_bytes_ * static_cast<std::size_t>(item);
    for (const std::span<std::uint8_t>& part : slot_of(item)) {
      if (!part.empty()) move(kept, part);
      kept += part.size();
    }
  }

  std::size_t item_bytes_ = 0;
  array<std::uint8_t> kept_;
};

/// Keeps items in a sink, compressed or not. A separate thread moves the items.
class worker_store final : public ring_store {
 public:
  worker_store(slots memory, store_settings s) : ring_store(std::move(memory)), packing_(std::move(s.packing)) {
    std::size_t most = 0;
    for (std::size_t d = 0; d < slot_of(0).size(); ++d) {
      const std::size_t part = slot_of(0)[d].size();
      const std::size_t bytes = packing_ && part > 0 ? round_up(packing_->packed_bytes(d), sector) : part;
      places_.push_back(item_bytes_);
      item_bytes_ += bytes;
      most = std::max({most, bytes, part});
    }
    const std::size_t all = item_bytes_ * static_cast<std::size_t>(s.items);
    kept_ = s.where == keep_place::disk ? file_in(s.folder, all) : host_memory(all);
    if (packing_) {
      part_.resize(most);
      packed_.reset(static_cast<std::uint8_t*>(::operator new (most, std::align_val_t{sector})));
    }
    moving_.assign(static_cast<std::size_t>(size()), 0);
    worker_ = std::thread([this] { work(); });
  }

  ~worker_store() override {
    {
      const std::lock_guard lock(mutex_);
      jobs_.clear();
      ending_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }
  worker_store(const worker_store&) = delete;
  worker_store& operator=(const worker_store&) = delete;

 private:
  struct job {
    std::int64_t item;
    bool out;
  };
  struct frees {
    void operator()(std::uint8_t* bytes) const { ::operator delete (bytes, std::align_val_t{sector}); }
  };

  void out(std::int64_t item) override { begin({item, true}); }
  void in(std::int64_t item) override { begin({item, false}); }

  void begin(job next) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(next);
      ++moving_[static_cast<std::size_t>(next.item % size())];
    }
    changed_.notify_all();
  }

  void wait_for(std::int64_t item) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_ || moving_[static_cast<std::size_t>(item % size())] == 0; });
    if (failure_) std::rethrow_exception(failure_);
  }

  void work() {
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return ending_ || !jobs_.empty(); });
      if (ending_) return;
      const job next = jobs_.front();
      jobs_.pop_front();
      lock.unlock();
      std::exception_ptr failed;
      try {
        move(next);
      } catch (...) {
        failed = std::current_exception();
      }
      lock.lock();
      --moving_[static_cast<std::size_t>(next.item % size())];
      if (failed && !failure_) failure_ = failed;
      changed_.notify_all();
    }
  }

  void move(job it) {
    for (std::size_t d = 0; d < places_.size(); ++d) {
      const std::span<std::uint8_t> part = slot_of(it.item)[d];
      const std::size_t at = item_bytes_ * static_cast<std::size_t>(it.item) + places_[d];
      if (part.empty()) continue;
      if (packing_)
        move_packed(it.out, d, part, at);
      else if (it.out)
        kept_->write(part.data(), part.size(), at);
      else
        kept_->read(part.data(), part.size(), at);
    }
  }

  /// Packs a part of an item, or unpacks it. Copies the whole part between device memory and host memory at once,
  /// because page faults for single accesses would be much slower.
  void move_packed(bool out, std::size_t d, std::span<std::uint8_t> part, std::size_t at) {
    const std::size_t bytes = round_up(packing_->packed_bytes(d), sector);
    const std::span<std::uint8_t> cells(part_.data(), part.size());
    if (out) {
      copy(cells.data(), part.data(), part.size());
      packing_->pack(d, cells, packed_.get());
      kept_->write(packed_.get(), bytes, at);
    } else {
      kept_->read(packed_.get(), bytes, at);
      packing_->unpack(d, packed_.get(), cells);
      copy(part.data(), cells.data(), part.size());
    }
  }

  const std::unique_ptr<codec> packing_;
  std::vector<std::size_t> places_;  ///< offsets of the devices' parts within an item, in bytes
  std::size_t item_bytes_ = 0;
  std::unique_ptr<sink> kept_;
  std::vector<std::uint8_t> part_;
  std::unique_ptr<std::uint8_t, frees> packed_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<job> jobs_;
  std::vector<int> moving_;  ///< number of unfinished jobs of each slot
  std::exception_ptr failure_;
  bool ending_ = false;
  std::thread worker_;
};

}  // namespace

std::int64_t slots_of(keep_place where, std::int64_t items, std::size_t item_bytes) {
  constexpr std::size_t small = 64 << 20;
  constexpr std::int64_t least = 4, most = 16;
  if (where == keep_place::device) return items;
  const auto ring = static_cast<std::int64_t>(small / std::max<std::size_t>(item_bytes, 1));
  return std::min(items, std::clamp(ring, least, most));
}

std::unique_ptr<field_store> make_store(store_settings s, slots memory) {
  if (s.where == keep_place::device) return std::make_unique<device_store>();
  if (s.where == keep_place::host && !s.packing) return std::make_unique<host_store>(std::move(memory), s.items);
  return std::make_unique<worker_store>(std::move(memory), std::move(s));
}

}  // namespace hpe::rtm
