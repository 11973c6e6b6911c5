#pragma once

#include <driver_types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "interpose/soft/cudart/device/handle_table.h"
#include "interpose/soft/cudart/stream/stream_operation.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

class graph;

/// The set of all existing graphs and nodes, with which hpe detects invalid handles. Thread safe.
class live_objects {
 public:
  void enter(const void* object);
  void leave(const void* object);
  bool has(const void* object) const;

 private:
  mutable mutex mutex_;
  std::unordered_set<const void*> objects_ HPE_GUARDED_BY(mutex_);
};

class graph_node {
 public:
  graph_node(graph& owner, std::shared_ptr<const stream_operation> what, int device, std::uint64_t origin);
  ~graph_node();
  graph_node(const graph_node&) = delete;
  graph_node& operator=(const graph_node&) = delete;

  graph& owner() const { return owner_; }
  std::uint64_t id() const { return id_; }  ///< not reused in this process
  /// The id of the node from which this node was cloned; 0 if it is not a clone.
  std::uint64_t origin() const { return origin_; }
  int device() const { return device_; }  ///< the device that was current when the node was made

  const std::shared_ptr<const stream_operation>& what() const { return what_; }
  cudaGraphNodeType type() const { return what_->type(); }
  /// Throws failure(cudaErrorInvalidValue) if the new operation has another type.
  void set(std::shared_ptr<const stream_operation> what);

  /// Owns the arrays to which the result of the last query of the node's parameters points, until the next query or
  /// until the node is destroyed.
  void keep(std::shared_ptr<const void> told) { told_ = std::move(told); }

  graph* child() const { return child_.get(); }  ///< null unless this is a child graph node
  void set_child(std::unique_ptr<graph> child);

  /// bodies() returns the bodies (graphs) of a conditional node; for other nodes, the list is empty. The list of
  /// handles that add_bodies() returns is valid as long as the node exists.
  const std::vector<std::shared_ptr<graph>>& bodies() const { return bodies_; }
  cudaGraph_t* add_bodies(std::vector<std::shared_ptr<graph>> bodies);

  const std::vector<graph_node*>& before() const { return before_; }  ///< the nodes on which this node depends
  const std::vector<graph_node*>& after() const { return after_; }    ///< the nodes that depend on this node

 private:
  friend class graph;
  graph& owner_;
  const std::uint64_t id_;
  const std::uint64_t origin_;
  const int device_;
  std::shared_ptr<const stream_operation> what_;
  std::unique_ptr<graph> child_;
  std::vector<std::shared_ptr<graph>> bodies_;
  std::vector<cudaGraph_t> body_handles_;
  std::shared_ptr<const void> told_;
  std::vector<graph_node*> before_;
  std::vector<graph_node*> after_;
};

/// A graph: operations and the dependencies between them. As in CUDA, only one thread may use a graph at a time. The
/// functions throw `failure`, mostly with cudaErrorInvalidValue.
class graph : public std::enable_shared_from_this<graph> {
 public:
  explicit graph(std::shared_ptr<live_objects> live);
  ~graph();
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;

  /// Adds a node with this operation. `before` contains the nodes on which the new node depends: nodes of this graph,
  /// each only once.
  graph_node& add(std::shared_ptr<const stream_operation> what, std::span<graph_node* const> before, int device,
                  std::uint64_t origin = 0);
  void remove(graph_node& node);  ///< also removes the node's edges

  void connect(graph_node& from, graph_node& to);     ///< throws if the edge exists
  void disconnect(graph_node& from, graph_node& to);  ///< throws if the edge does not exist

  const std::vector<std::unique_ptr<graph_node>>& nodes() const { return nodes_; }  ///< nodes in order of creation

  /// Returns the nodes in an order that satisfies the dependencies. Where the dependencies allow several orders,
  /// prefers the order of creation. Throws if the dependencies form a cycle.
  std::vector<graph_node*> in_order() const;

  /// Adds `count` references to the user object that `name` identifies; let_go releases them. Clones and executable
  /// graphs of this graph also own references to the object. `let_go` throws if the graph has fewer than `count`
  /// references.
  void keep(const void* name, std::shared_ptr<void> value, unsigned count);
  void let_go(const void* name, unsigned count);
  std::vector<std::shared_ptr<void>> kept() const;  ///< includes the objects of child graphs and bodies

  /// Whether the graph has conditional nodes. If so, the graph cannot be cloned, and only one executable graph of it
  /// can exist at a time, because several executable graphs would share the values of its conditions.
  bool has_conditions() const;
  void set_instance(std::weak_ptr<const void> made) { instance_ = std::move(made); }
  bool has_instance() const { return !instance_.expired(); }  ///< whether the object of set_instance exists

  /// Returns a copy of the graph and its child graphs. Each new node records the id of the node from which it was
  /// cloned.
  std::unique_ptr<graph> clone() const;

 private:
  friend class graph_node;
  friend class graph_table;
  struct kept_object {
    std::shared_ptr<void> value;
    unsigned times = 0;
  };
  std::shared_ptr<live_objects> live_;
  std::vector<std::unique_ptr<graph_node>> nodes_;
  std::unordered_map<const void*, kept_object> kept_;
  std::weak_ptr<const void> instance_;
  bool is_body_ = false;  // whether the graph is a body of a conditional node, which owns the graph
};

/// Maps handles to graphs and nodes. Thread safe. The functions throw failure(cudaErrorInvalidValue).
class graph_table {
 public:
  cudaGraph_t create() { return adopt(make()); }
  cudaGraph_t adopt(std::shared_ptr<graph> made) { return graphs_.adopt(std::move(made)); }
  /// Returns the handle of the graph of a stream capture: an independent graph, or the body of a conditional node.
  cudaGraph_t handle_of_captured(std::shared_ptr<graph> captured);
  std::shared_ptr<graph> make() const;  ///< returns a new graph without a handle
  void destroy(cudaGraph_t handle) { graphs_.destroy(handle); }
  graph& find(cudaGraph_t handle) const;                   ///< also finds child graphs
  std::shared_ptr<graph> share(cudaGraph_t handle) const;  ///< does not find child graphs
  graph_node& find(cudaGraphNode_t handle) const;

 private:
  const std::shared_ptr<live_objects> live_ = std::make_shared<live_objects>();
  handle_table<cudaGraph_t, graph, cudaErrorInvalidValue> graphs_;
};

inline cudaGraph_t handle_of(graph& it) { return reinterpret_cast<cudaGraph_t>(&it); }
inline cudaGraphNode_t handle_of(graph_node& it) { return reinterpret_cast<cudaGraphNode_t>(&it); }

}  // namespace hpe::cudart
