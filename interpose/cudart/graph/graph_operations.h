#pragma once

#include <driver_types.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "interpose/cudart/stream/event.h"
#include "interpose/cudart/stream/operation.h"

// The operations that use no device.

namespace hpe::cudart {

class host_operation final : public operation {
 public:
  explicit host_operation(cudaHostNodeParams parameters) : parameters_(parameters) {}
  const cudaHostNodeParams& parameters() const { return parameters_; }
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeHost; }
  cudaError_t prepare(int device, work& out) const override;

 private:
  cudaHostNodeParams parameters_;
};

/// An operation that does nothing: an empty node, or a child graph node, whose graph has nodes of its own.
class marker_operation final : public operation {
 public:
  explicit marker_operation(cudaGraphNodeType type) : type_(type) {}
  cudaGraphNodeType type() const override { return type_; }
  cudaError_t prepare(int device, work& out) const override;

 private:
  cudaGraphNodeType type_;
};

/// A conditional node: runs one of its bodies, which are graphs of the node, or none.
class branch_operation : public operation {
 public:
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeConditional; }
  cudaError_t prepare(int /*device*/, work& out) const override {
    out = [] { return cudaSuccess; };
    return cudaSuccess;
  }

  virtual void begin_launch() const = 0;      ///< before each launch of the whole graph
  virtual std::size_t choose() const = 0;     ///< the number of the body to run now; others than its bodies': none
  virtual bool is_loop() const noexcept = 0;  ///< chooses again after a body has run
};

/// Records an event; each launch of the graph makes a new recording.
class record_operation final : public operation {
 public:
  record_operation(cudaEvent_t handle, std::shared_ptr<event> what) : handle_(handle), event_(std::move(what)) {}
  cudaEvent_t handle() const { return handle_; }
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeEventRecord; }
  cudaError_t prepare(int device, work& out) const override;
  work begin(stream& where) const override;

 private:
  cudaEvent_t handle_;
  std::shared_ptr<event> event_;
};

/// Waits for the recording of the event that is the last one when the graph is launched.
class wait_operation final : public operation {
 public:
  wait_operation(cudaEvent_t handle, std::shared_ptr<event> what) : handle_(handle), event_(std::move(what)) {}
  cudaEvent_t handle() const { return handle_; }
  cudaGraphNodeType type() const override { return cudaGraphNodeTypeWaitEvent; }
  cudaError_t prepare(int device, work& out) const override;
  work begin(stream& where) const override;

 private:
  cudaEvent_t handle_;
  std::shared_ptr<event> event_;
};

}  // namespace hpe::cudart
