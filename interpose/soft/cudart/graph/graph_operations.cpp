#include "interpose/soft/cudart/graph/graph_operations.h"

namespace hpe::cudart {
namespace {

cudaError_t do_nothing() { return cudaSuccess; }

}  // namespace

stream_task stream_operation::begin(cudart_stream& /*where*/) const { return {}; }

cudaError_t host_operation::prepare(int /*device*/, stream_task& out) const {
  if (parameters_.fn == nullptr) return cudaErrorInvalidValue;
  const auto call = [parameters = parameters_] {
    const host_function_scope scope;
    parameters.fn(parameters.userData);
    return cudaSuccess;
  };
  out = call;
  return cudaSuccess;
}

cudaError_t marker_operation::prepare(int /*device*/, stream_task& out) const {
  out = do_nothing;
  return cudaSuccess;
}

cudaError_t record_operation::prepare(int /*device*/, stream_task& out) const {
  out = do_nothing;
  return cudaSuccess;
}

stream_task record_operation::begin(cudart_stream& where) const {
  return [promise = event_->promise(where)]() mutable {
    promise->stamp();
    promise.reset();
    return cudaSuccess;
  };
}

cudaError_t wait_operation::prepare(int /*device*/, stream_task& out) const {
  out = do_nothing;
  return cudaSuccess;
}

stream_task wait_operation::begin(cudart_stream& /*where*/) const {
  const auto last = event_->last();
  task_memory_uses uses;
  if (last) {
    uses.follows.push_back(last->past());
    uses.waits_for_unknown = last->is_foreign();
  }
  auto wait = [end = last ? last->end() : point{}] {
    end.wait();
    return cudaSuccess;
  };
  return {std::move(wait), std::move(uses)};
}

}  // namespace hpe::cudart
