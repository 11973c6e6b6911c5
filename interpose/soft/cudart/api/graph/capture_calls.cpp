// The CUDA runtime's functions for stream capture.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "interpose/soft/cudart/api/graph/graph_calls.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/device/errors.h"
#include "interpose/soft/cudart/stream/capture.h"

using namespace hpe::cudart;

namespace {

bool is_mode(cudaStreamCaptureMode mode) {
  return mode == cudaStreamCaptureModeGlobal || mode == cudaStreamCaptureModeThreadLocal ||
         mode == cudaStreamCaptureModeRelaxed;
}

void begin_capture(cudaStream_t handle, std::shared_ptr<graph> into, const std::vector<graph_node*>& after,
                   cudaStreamCaptureMode mode) {
  const auto begun = std::make_shared<capture>(std::move(into), mode);
  begun->begin(process().find_stream(handle), after);
  process().captures().add(begun);
}

/// Returns the capture of a stream; null if the stream is not being captured. Throws for the legacy stream while
/// blocking streams are being captured.
std::shared_ptr<capture> capture_of(cudart_stream& where) {
  require(where.captures_in_the_way().empty(), cudaErrorStreamCaptureImplicit);
  return where.capturing();
}

}  // namespace

extern "C" {

cudaError_t CUDARTAPI cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return api_call(__func__, [&] {
    require(is_mode(mode), cudaErrorInvalidValue);
    begin_capture(handle, process().graphs().make(), {}, mode);
  });
}

cudaError_t CUDARTAPI cudaStreamBeginCaptureToGraph(cudaStream_t handle, cudaGraph_t into, const cudaGraphNode_t* after,
                                                    const cudaGraphEdgeData* edges, size_t count,
                                                    cudaStreamCaptureMode mode) {
  return api_call(__func__, [&] {
    require(is_mode(mode), cudaErrorInvalidValue);
    require_plain_edges(edges, count);
    begin_capture(handle, process().graphs().share(into), nodes_of(after, count), mode);
  });
}

/// `made` may be null if the program has captured into its own graph, whose handle it already has.
cudaError_t CUDARTAPI cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* made) {
  return api_call(__func__, [&] {
    const auto where = process().find_stream(handle);
    const auto active = where->capturing();
    require(active != nullptr, cudaErrorIllegalState);
    if (made != nullptr) *made = nullptr;
    std::shared_ptr<graph> captured = active->end(*where);
    if (made != nullptr) *made = process().graphs().handle_of_captured(std::move(captured));
  });
}

cudaError_t CUDARTAPI cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return api_call(__func__, [&] {
    require(status != nullptr, cudaErrorInvalidValue);
    const auto where = process().find_stream(handle);
    const auto active = capture_of(*where);
    *status = active ? active->state(*where).status : cudaStreamCaptureStatusNone;
  });
}

cudaError_t CUDARTAPI cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                               unsigned long long* id, cudaGraph_t* into, const cudaGraphNode_t** after,
                                               const cudaGraphEdgeData** edges, size_t* count) {
  return api_call(__func__, [&] {
    require(status != nullptr, cudaErrorInvalidValue);
    const auto where = process().find_stream(handle);
    const auto active = capture_of(*where);
    const capture_state state = active ? active->state(*where) : capture_state{};
    *status = state.status;
    if (state.status != cudaStreamCaptureStatusActive) return;
    if (id != nullptr) *id = state.id;
    if (into != nullptr) *into = handle_of(*state.into);
    // The handle of a node is its address, so a list of nodes is also a list of handles.
    if (after != nullptr) *after = reinterpret_cast<const cudaGraphNode_t*>(state.after->data());
    if (edges != nullptr) *edges = nullptr;  // all edges are plain
    if (count != nullptr) *count = state.after->size();
  });
}

cudaError_t CUDARTAPI cudaStreamUpdateCaptureDependencies(cudaStream_t handle, cudaGraphNode_t* nodes,
                                                          const cudaGraphEdgeData* edges, size_t count,
                                                          unsigned flags) {
  return api_call(__func__, [&] {
    require(flags == cudaStreamAddCaptureDependencies || flags == cudaStreamSetCaptureDependencies,
            cudaErrorInvalidValue);
    require_plain_edges(edges, count);
    const auto where = process().find_stream(handle);
    const auto active = where->capturing();
    require(active != nullptr, cudaErrorIllegalState);
    const std::vector<graph_node*> after = nodes_of(nodes, count);
    if (flags == cudaStreamSetCaptureDependencies) {
      active->set_position(*where, after);
    } else {
      active->join(*where, after);
    }
  });
}

cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return api_call(__func__, [&] {
    require(mode != nullptr && is_mode(*mode), cudaErrorInvalidValue);
    std::swap(*mode, thread_capture_mode());
  });
}
}
