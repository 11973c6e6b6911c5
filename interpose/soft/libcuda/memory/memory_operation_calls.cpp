// The stream operations on single words of memory: writes of a value, and waits for a value that another stream,
// another device or CPU code writes.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "hpe/hpe.h"
#include "interpose/soft/cudart/api/graph/graph_calls.h"
#include "interpose/soft/cudart/device/context.h"
#include "interpose/soft/cudart/graph/graph_exec.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "interpose/soft/cudart/stream/checked_work.h"
#include "interpose/soft/cudart/stream/stream_operation.h"
#include "interpose/soft/libcuda/call.h"

using namespace hpe::libcuda;
using hpe::cudart::process;
using hpe::cudart::require;

namespace {

using operations = std::vector<CUstreamBatchMemOpParams>;

bool is_wait(CUstreamBatchMemOpType type) {
  return type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

bool is_write(CUstreamBatchMemOpType type) {
  return type == CU_STREAM_MEM_OP_WRITE_VALUE_32 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

std::size_t bytes_of(CUstreamBatchMemOpType type) {
  return type == CU_STREAM_MEM_OP_WAIT_VALUE_64 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8 : 4;
}

void* word_at(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

/// Throws unless the address is aligned to `bytes`, and a CUDA allocation contains the whole word.
void require_word(CUdeviceptr address, std::size_t bytes) {
  const auto found = process().memory().find(word_at(address));
  require(address % bytes == 0 && found && found->holds(word_at(address), bytes), cudaErrorInvalidValue);
}

void require_valid(const CUstreamBatchMemOpParams& each) {
  if (is_wait(each.operation)) {
    constexpr unsigned known = CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH;
    require((each.waitValue.flags & ~known) == 0, cudaErrorInvalidValue);
    require_word(each.waitValue.address, bytes_of(each.operation));
  } else if (is_write(each.operation)) {
    require((each.writeValue.flags & ~unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER}) == 0, cudaErrorInvalidValue);
    require_word(each.writeValue.address, bytes_of(each.operation));
  } else {
    require(each.operation == CU_STREAM_MEM_OP_BARRIER || each.operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES,
            cudaErrorInvalidValue);
  }
}

/// Whether a word has the value for which an operation waits. GEQ compares the words as cyclic counters.
template <class Word, class Signed>
bool is_reached(Word is, Word wanted, unsigned flags) {
  switch (flags & CU_STREAM_WAIT_VALUE_NOR) {
    case CU_STREAM_WAIT_VALUE_GEQ: return static_cast<Signed>(is - wanted) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return is == wanted;
    case CU_STREAM_WAIT_VALUE_AND: return (is & wanted) != 0;
    default: return ~(is | wanted) != 0;
  }
}

/// For the checker: the work of a stream that has last written a word, and the value. The work is added before it
/// writes the word, so a wait that sees the value finds the work.
class written_words {
 public:
  static void add(CUdeviceptr address, std::uint64_t value) {
    const hpe::cudart::running_work* const now = hpe::cudart::this_threads_work();
    if (now == nullptr || now->work == nullptr) return;
    const std::lock_guard lock(mutex());
    all()[address] = {value, now->work->when};
  }

  /// Returns null if another writer has written the value, such as a kernel or CPU code.
  [[nodiscard]] static hpe::check::past_ptr find(CUdeviceptr address, std::uint64_t value) {
    const std::lock_guard lock(mutex());
    const auto found = all().find(address);
    return found != all().end() && found->second.value == value ? found->second.writer : nullptr;
  }

 private:
  struct entry {
    std::uint64_t value = 0;
    hpe::check::past_ptr writer;
  };
  // Never destroyed, because streams use them until the process ends.
  static std::mutex& mutex() {
    static auto* const it = new std::mutex;
    return *it;
  }
  static std::map<CUdeviceptr, entry>& all() {
    static auto* const it = new std::map<CUdeviceptr, entry>;
    return *it;
  }
};

/// Whether the stream's thread accesses a word itself. hpe's copies wait for running kernels, which may use the word.
/// CPU code can always access pinned memory, also while kernels run. The checker would count such an access as one of
/// the program.
bool is_accessed_here(CUdeviceptr address) {
  const auto found = process().memory().find(word_at(address));
  return found && found->kind == hpe::cudart::allocation_kind::host && hpe::cudart::checker() == nullptr;
}

template <class Word>
hpeStatus read(CUdeviceptr address, Word& value) {
  if (!is_accessed_here(address)) return ::hpeMemcpy(&value, word_at(address), sizeof value);
  value = std::atomic_ref(*static_cast<Word*>(word_at(address))).load();
  return HPE_SUCCESS;
}

template <class Word>
cudaError_t write(CUdeviceptr address, Word value) {
  written_words::add(address, value);
  if (is_accessed_here(address))
    std::atomic_ref(*static_cast<Word*>(word_at(address))).store(value);
  else if (::hpeMemcpy(word_at(address), &value, sizeof value) != HPE_SUCCESS)
    return cudaErrorIllegalAddress;
  return cudaSuccess;
}

cudaError_t write(const CUstreamBatchMemOpParams& what) {
  const auto& wanted = what.writeValue;
  return bytes_of(what.operation) == 8 ? write<std::uint64_t>(wanted.address, wanted.value64)
                                       : write<std::uint32_t>(wanted.address, wanted.value);
}

/// Waits until the word has the value for which an operation waits, and returns this value as `seen`. Returns the
/// sticky error as soon as the process has one, because its streams then drop the work that would have written the
/// value.
template <class Word, class Signed>
cudaError_t wait_for(CUdeviceptr address, Word wanted, unsigned flags, std::uint64_t& seen) {
  constexpr std::chrono::microseconds between(20);
  for (;;) {
    Word is = 0;
    if (read(address, is) != HPE_SUCCESS) return cudaErrorIllegalAddress;
    seen = is;
    if (is_reached<Word, Signed>(is, wanted, flags)) return cudaSuccess;
    if (const cudaError_t fault = hpe::cudart::sticky_code(); fault != cudaSuccess) return fault;
    std::this_thread::sleep_for(between);
  }
}

cudaError_t wait_for(const CUstreamBatchMemOpParams& what, std::uint64_t& seen) {
  const auto& wanted = what.waitValue;
  return bytes_of(what.operation) == 8
             ? wait_for<std::uint64_t, std::int64_t>(wanted.address, wanted.value64, wanted.flags, seen)
             : wait_for<std::uint32_t, std::int32_t>(wanted.address, wanted.value, wanted.flags, seen);
}

/// A list of operations, which the stream runs as one task. As on a GPU, the stream waits for ever if the value is
/// never written. Barrier operations have no effect, because on soft devices each task is complete before the next task
/// on its stream begins.
class memory_operation final : public hpe::cudart::stream_operation {
 public:
  /// The type of these graph nodes, which only the driver defines.
  static constexpr auto node_type = static_cast<cudaGraphNodeType>(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);

  explicit memory_operation(operations list) : list_(std::move(list)) {}
  [[nodiscard]] const operations& list() const { return list_; }
  cudaGraphNodeType type() const override { return node_type; }

  cudaError_t prepare(int /*device*/, hpe::cudart::stream_task& out) const override {
    hpe::cudart::tell_unknown_order("streams write values to memory, or wait for values");
    hpe::cudart::task_memory_uses uses;
    for (const CUstreamBatchMemOpParams& each : list_)
      if (is_write(each.operation))
        uses.ranges.push_back({word_at(each.writeValue.address), bytes_of(each.operation), HPE_OUT});
    // The words that the stream reads are not announced: CPU code may write them, and so must not wait for the stream.
    uses.waits_for_values =
        std::any_of(list_.begin(), list_.end(), [](const auto& each) { return is_wait(each.operation); });
    out = {[list = list_] { return run(list); }, std::move(uses)};
    return cudaSuccess;
  }

 private:
  static cudaError_t run(const operations& list) {
    std::vector<hpe::check::past_ptr> writers;  // of the values for which the list waits
    bool are_known = true;
    for (const CUstreamBatchMemOpParams& each : list) {
      cudaError_t result = cudaSuccess;
      if (is_wait(each.operation)) {
        std::uint64_t seen = 0;
        result = wait_for(each, seen);
        writers.push_back(written_words::find(each.waitValue.address, seen));
        are_known = are_known && writers.back() != nullptr;
      }
      if (is_write(each.operation)) result = write(each);
      if (result != cudaSuccess) return result;
    }
    if (!writers.empty()) hpe::cudart::tell_values(are_known ? writers : std::vector<hpe::check::past_ptr>());
    return cudaSuccess;
  }

  const operations list_;
};

std::shared_ptr<const memory_operation> make(const CUstreamBatchMemOpParams* first, unsigned count, unsigned flags) {
  constexpr unsigned most = 256;
  require(first != nullptr && count > 0 && count <= most && flags == 0, cudaErrorInvalidValue);
  operations list(first, first + count);
  for (const CUstreamBatchMemOpParams& each : list) require_valid(each);
  return std::make_shared<memory_operation>(std::move(list));
}

std::shared_ptr<const memory_operation> make(const CUDA_BATCH_MEM_OP_NODE_PARAMS* from) {
  const CUDA_BATCH_MEM_OP_NODE_PARAMS& what = given(from);
  return make(what.paramArray, what.count, what.flags);
}

CUresult queue(const char* function, CUstream handle, const CUstreamBatchMemOpParams* first, unsigned count,
               unsigned flags = 0) {
  return in_context(function, [&] {
    auto what = make(first, count, flags);
    return submit(*process().find_stream(handle), std::move(what));
  });
}

template <class Word>
CUresult queue_wait(const char* function, CUstreamBatchMemOpType type, CUstream stream, CUdeviceptr address, Word value,
                    unsigned flags) {
  CUstreamBatchMemOpParams what{};
  what.waitValue.operation = type;
  what.waitValue.address = address;
  what.waitValue.value64 = value;
  what.waitValue.flags = flags;
  return queue(function, stream, &what, 1);
}

template <class Word>
CUresult queue_write(const char* function, CUstreamBatchMemOpType type, CUstream stream, CUdeviceptr address,
                     Word value, unsigned flags) {
  CUstreamBatchMemOpParams what{};
  what.writeValue.operation = type;
  what.writeValue.address = address;
  what.writeValue.value64 = value;
  what.writeValue.flags = flags;
  return queue(function, stream, &what, 1);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return queue_wait("cuStreamWaitValue32_v2", CU_STREAM_MEM_OP_WAIT_VALUE_32, stream, address, value, flags);
}
CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return queue_wait("cuStreamWaitValue64_v2", CU_STREAM_MEM_OP_WAIT_VALUE_64, stream, address, value, flags);
}
CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return queue_write("cuStreamWriteValue32_v2", CU_STREAM_MEM_OP_WRITE_VALUE_32, stream, address, value, flags);
}
CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return queue_write("cuStreamWriteValue64_v2", CU_STREAM_MEM_OP_WRITE_VALUE_64, stream, address, value, flags);
}

CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams* list,
                                       unsigned flags) {
  return queue("cuStreamBatchMemOp_v2", stream, list, count, flags);
}

CUresult CUDAAPI cuGraphAddBatchMemOpNode(CUgraphNode* made, CUgraph graph, const CUgraphNode* after, std::size_t count,
                                          const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  return call("cuGraphAddBatchMemOpNode", [&] {
    auto what = make(parameters);
    given(made) = handle_of(process().graphs().find(graph).add(std::move(what), hpe::cudart::nodes_of(after, count),
                                                               process().current_device()));
  });
}

/// The list to which paramArray points is valid until the program destroys the node or sets another list.
CUresult CUDAAPI cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS* out) {
  return call("cuGraphBatchMemOpNodeGetParams", [&] {
    const auto* const what = dynamic_cast<const memory_operation*>(process().graphs().find(node).what().get());
    require(what != nullptr, cudaErrorInvalidValue);
    const operations& list = what->list();
    given(out) = {nullptr, static_cast<unsigned>(list.size()), const_cast<CUstreamBatchMemOpParams*>(list.data()), 0};
  });
}

CUresult CUDAAPI cuGraphBatchMemOpNodeSetParams(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  return call("cuGraphBatchMemOpNodeSetParams", [&] { process().graphs().find(node).set(make(parameters)); });
}

CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                    const CUDA_BATCH_MEM_OP_NODE_PARAMS* parameters) {
  return call("cuGraphExecBatchMemOpNodeSetParams",
              [&] { process().execs().find(exec)->set(process().graphs().find(node), make(parameters)); });
}
}
