// Until a capture ends, the capture and its streams own references to each other. A thread locks the mutex of a capture
// before the mutexes of streams and events.

#include "interpose/soft/cudart/stream/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <unordered_set>
#include <utility>

#include "interpose/soft/cudart/device/failure.h"
#include "interpose/soft/cudart/device/thread_state.h"
#include "interpose/soft/cudart/graph/graph_operations.h"

namespace hpe::cudart {
namespace {

std::uint64_t next_capture_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

[[noreturn]] void fail_and_invalidate(const std::vector<std::shared_ptr<capture>>& active, cudaError_t code) {
  const char* const call = this_thread().call;
  for (const auto& each : active)
    each->invalidate(fmt::format("{} invalidated the capture", call != nullptr ? call : "a call"));
  throw failure(code);
}

/// Throws for a legacy stream if blocking streams of its device are being captured, because the work would become a
/// part of these captures.
void require_no_implicit_capture(cudart_stream& where) {
  const auto active = where.captures_in_the_way();
  if (!active.empty()) fail_and_invalidate(active, cudaErrorStreamCaptureImplicit);
}

}  // namespace

capture::capture(std::shared_ptr<graph> into, cudaStreamCaptureMode mode)
    : graph_(std::move(into)), mode_(mode), id_(next_capture_id()) {}

void capture::begin(const std::shared_ptr<cudart_stream>& origin, std::span<graph_node* const> after) {
  require(origin->kind() != stream_kind::legacy, cudaErrorStreamCaptureUnsupported);
  require(!origin->capturing(), cudaErrorIllegalState);
  const lock_guard lock(mutex_);
  origin_ = origin.get();
  streams_.push_back(origin);
  positions_[origin.get()].assign(after.begin(), after.end());
  origin->set_capturing(shared_from_this());
}

void capture::require_valid() const {
  if (!valid_) throw failure(cudaErrorStreamCaptureInvalidated, why_invalid_);
}

bool capture::all_joined() const {
  std::unordered_set<const graph_node*> joined;
  std::vector<const graph_node*> open(positions_.at(origin_).begin(), positions_.at(origin_).end());
  while (!open.empty()) {
    const graph_node* const node = open.back();
    open.pop_back();
    if (joined.insert(node).second) open.insert(open.end(), node->before().begin(), node->before().end());
  }
  return std::all_of(positions_.begin(), positions_.end(), [&](const auto& each) {
    const auto& [_, nodes] = each;
    return std::all_of(nodes.begin(), nodes.end(), [&](const graph_node* node) { return joined.count(node) != 0; });
  });
}

std::shared_ptr<graph> capture::end(cudart_stream& origin) {
  const lock_guard lock(mutex_);
  require(&origin == origin_, cudaErrorStreamCaptureUnmatched);
  require(mode_ == cudaStreamCaptureModeRelaxed || thread_ == std::this_thread::get_id(),
          cudaErrorStreamCaptureWrongThread);
  const bool joined = all_joined();
  for (const auto& each : streams_) each->set_capturing(nullptr);
  streams_.clear();
  positions_.clear();
  require_valid();
  valid_ = false;
  require(joined, cudaErrorStreamCaptureUnjoined);
  return graph_;
}

graph_node& capture::add(cudart_stream& where, std::shared_ptr<const stream_operation> what) {
  const lock_guard lock(mutex_);
  require_valid();
  std::vector<graph_node*>& position = positions_.at(&where);
  graph_node& made = graph_->add(std::move(what), position, where.device());
  position = {&made};
  return made;
}

void capture::record(cudart_stream& where, event& what) {
  const lock_guard lock(mutex_);
  require_valid();
  what.set_captured({weak_from_this(), positions_.at(&where)});
}

void capture::join(cudart_stream& where, std::span<graph_node* const> after) {
  const lock_guard lock(mutex_);
  require_valid();
  const auto [place, is_new] = positions_.try_emplace(&where);
  if (is_new) {
    streams_.push_back(where.shared_from_this());
    where.set_capturing(shared_from_this());
  }
  std::vector<graph_node*>& position = place->second;
  for (graph_node* const each : after) {
    if (std::find(position.begin(), position.end(), each) == position.end()) position.push_back(each);
  }
}

void capture::set_position(cudart_stream& where, std::span<graph_node* const> after) {
  const lock_guard lock(mutex_);
  require_valid();
  for (const graph_node* const each : after) require(&each->owner() == graph_.get(), cudaErrorInvalidValue);
  positions_.at(&where).assign(after.begin(), after.end());
}

void capture::invalidate(std::string why) {
  const lock_guard lock(mutex_);
  invalidate_locked(std::move(why));
}

void capture::invalidate_locked(std::string why) {
  if (std::exchange(valid_, false)) why_invalid_ = std::move(why);
}

void capture::lose(const cudart_stream& destroyed) {
  const lock_guard lock(mutex_);
  if (&destroyed == origin_) invalidate_locked("cudaStreamDestroy destroyed the stream in which the capture began");
}

capture_state capture::state(const cudart_stream& where) const {
  const lock_guard lock(mutex_);
  if (streams_.empty()) return {};
  if (!valid_) return {cudaStreamCaptureStatusInvalidated, 0, nullptr, nullptr};
  const auto position = positions_.find(&where);
  return {cudaStreamCaptureStatusActive, id_, graph_.get(), position == positions_.end() ? nullptr : &position->second};
}

bool capture::forbids_unsafe_calls(cudaStreamCaptureMode thread_mode) const {
  const lock_guard lock(mutex_);
  if (streams_.empty() || thread_mode == cudaStreamCaptureModeRelaxed) return false;
  if (thread_ == std::this_thread::get_id()) return mode_ != cudaStreamCaptureModeRelaxed;
  return thread_mode == cudaStreamCaptureModeGlobal && mode_ == cudaStreamCaptureModeGlobal;
}

void capture_table::add(const std::shared_ptr<capture>& begun) {
  const lock_guard lock(mutex_);
  std::erase_if(captures_, [](const auto& each) { return each.expired(); });
  captures_.push_back(begun);
}

void capture_table::require_unsafe_calls_allowed() {
  std::vector<std::shared_ptr<capture>> disturbed;
  {
    const lock_guard lock(mutex_);
    for (const auto& each : captures_) {
      auto active = each.lock();
      if (active && active->forbids_unsafe_calls(thread_capture_mode())) disturbed.push_back(std::move(active));
    }
  }
  if (!disturbed.empty()) fail_and_invalidate(disturbed, cudaErrorStreamCaptureUnsupported);
}

cudaStreamCaptureMode& thread_capture_mode() {
  static thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

void require_not_capturing(cudart_stream& where) {
  if (const auto active = where.capturing()) {
    const bool valid = active->state(where).status == cudaStreamCaptureStatusActive;
    fail_and_invalidate({active}, valid ? cudaErrorStreamCaptureUnsupported : cudaErrorStreamCaptureInvalidated);
  }
  require_no_implicit_capture(where);
}

void require_none_capturing(const std::vector<std::shared_ptr<capture>>& active) {
  if (!active.empty()) fail_and_invalidate(active, cudaErrorStreamCaptureUnsupported);
}

cudaError_t submit(cudart_stream& where, std::shared_ptr<const stream_operation> what) {
  stream_task task;
  if (const cudaError_t error = what->prepare(where.device(), task); error != cudaSuccess) return error;
  if (const auto active = where.capturing()) {
    active->add(where, std::move(what));
    return cudaSuccess;
  }
  require_no_implicit_capture(where);
  return where.enqueue(std::move(task), {}, nullptr, what->place());
}

void record_event(cudart_stream& where, cudaEvent_t handle, const std::shared_ptr<event>& what, unsigned flags) {
  require((flags & ~unsigned{cudaEventRecordExternal}) == 0, cudaErrorInvalidValue);
  const auto active = where.capturing();
  if (active && flags == cudaEventRecordExternal) {
    active->add(where, std::make_shared<record_operation>(handle, what));
  } else if (active) {
    active->record(where, *what);
  } else {
    require(flags == cudaEventRecordDefault, cudaErrorInvalidValue);
    require_no_implicit_capture(where);
    what->record(where);
  }
}

void wait_for_event(cudart_stream& where, cudaEvent_t handle, const std::shared_ptr<event>& what, unsigned flags) {
  require((flags & ~unsigned{cudaEventWaitExternal}) == 0, cudaErrorInvalidValue);
  const auto active = where.capturing();
  if (flags == cudaEventWaitExternal) {
    require(active != nullptr, cudaErrorInvalidValue);
    active->add(where, std::make_shared<wait_operation>(handle, what));
    return;
  }

  const bool was_captured = what->is_captured();
  const captured_point captured = what->captured();
  const auto other = captured.in.lock();
  if (other && other->state(where).status == cudaStreamCaptureStatusNone) throw failure(cudaErrorCapturedEvent);
  if (was_captured && !other) throw failure(cudaErrorCapturedEvent);
  if (active && other && active != other) fail_and_invalidate({active, other}, cudaErrorStreamCaptureMerge);
  if (other) {
    if (where.kind() == stream_kind::legacy) fail_and_invalidate({other}, cudaErrorStreamCaptureImplicit);
    other->join(where, captured.after);
    return;
  }

  const auto last = what->last();
  if (!last) return;
  if (active) fail_and_invalidate({active}, cudaErrorStreamCaptureIsolation);
  require_no_implicit_capture(where);
  task_memory_uses uses;
  uses.follows.push_back(last->past());
  uses.waits_for_unknown = last->is_foreign();
  check(where.enqueue({[] { return cudaSuccess; }, std::move(uses)}, {last->end()}));
}

}  // namespace hpe::cudart
