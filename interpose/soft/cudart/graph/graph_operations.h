#pragma once

#include <driver_types.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "interpose/soft/cudart/stream/event.h"
#include "interpose/soft/cudart/stream/stream_operation.h"

// Operations of graph nodes that do not use a device.

namespace hpe::cudart {

class host_operation final : public stream_operation {
 public:
  explicit host_operation(cudaHostNodeParams parameters) : parameters_(parameters) {}
  const cudaHostNodeParams& parameters() const { return parameters_; }
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeHost; }
  cudaError_t prepare(int device, stream_task& out) const override;

 private:
  cudaHostNodeParams parameters_;
};

/// An operation without effect, for empty nodes and for child graph nodes (the nodes of the child graph have their own
/// operations).
class marker_operation final : public stream_operation {
 public:
  explicit marker_operation(cudaGraphNodeType type) : type_(type) {}
  cudaGraphNodeType type() const override { return type_; }
  cudaError_t prepare(int device, stream_task& out) const override;

 private:
  cudaGraphNodeType type_;
};

/// The operation of a conditional node: runs one of the node's bodies, which are graphs, or no body.
class branch_operation : public stream_operation {
 public:
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeConditional; }
  cudaError_t prepare(int /*device*/, stream_task& out) const override {
    out = [] { return cudaSuccess; };
    return cudaSuccess;
  }

  virtual void begin_launch() const = 0;      ///< called before each launch of the whole graph
  virtual std::size_t choose() const = 0;     ///< the index of the body to run; if the index is too high, no body runs
  virtual bool is_loop() const noexcept = 0;  ///< whether the node calls choose() again after a body has run
};

/// Records an event; each launch of the graph is a new recording.
class record_operation final : public stream_operation {
 public:
  record_operation(cudaEvent_t handle, std::shared_ptr<event> what) : handle_(handle), event_(std::move(what)) {}
  cudaEvent_t handle() const { return handle_; }
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeEventRecord; }
  cudaError_t prepare(int device, stream_task& out) const override;
  stream_task begin(cudart_stream& where) const override;

 private:
  cudaEvent_t handle_;
  std::shared_ptr<event> event_;
};

/// Waits for the event's latest recording: that of an earlier node of the same launch if there is one, otherwise the
/// last recording before the graph was launched.
class wait_operation final : public stream_operation {
 public:
  wait_operation(cudaEvent_t handle, std::shared_ptr<event> what) : handle_(handle), event_(std::move(what)) {}
  cudaEvent_t handle() const { return handle_; }
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeWaitEvent; }
  cudaError_t prepare(int device, stream_task& out) const override;
  stream_task begin(cudart_stream& where) const override;

 private:
  cudaEvent_t handle_;
  std::shared_ptr<event> event_;
};

}  // namespace hpe::cudart
