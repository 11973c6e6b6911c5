// The references without hpe: copies by the CUDA driver, hand-written copies, accesses to host memory, and managed
// memory.
#include "bench/transfers/parts.h"

namespace hpe::bench {

link_rates plain_copies(table& t, const raw_gpu& gpu, bool links_alone) {
  link_rates result{};
  const pinned_buffer pinned(stream_bytes);
  const auto queue_up = [&] { gpu.up(gpu.memory, pinned.data(), stream_bytes); };
  const auto queue_down = [&] { gpu.down(pinned.data(), gpu.memory, stream_bytes); };
  const auto nothing = [] {};
  // Times a copy on the link and body() on the host, which run at the same time.
  const auto beside = [&](const std::function<void()>& queue, const std::function<void()>& body) {
    return timed(t.repeats, nothing, [&] {
      queue();
      body();
      gpu.finish();
    });
  };
  const timing up = beside(queue_up, nothing);
  const timing down = beside(queue_down, nothing);
  t.rate("driver copy of pinned memory, host to GPU (the link)", stream_bytes, up);
  t.rate("driver copy of pinned memory, GPU to host (the link)", stream_bytes, down);
  result = {rate_of(stream_bytes, up.median), rate_of(stream_bytes, down.median)};
  if (links_alone) return result;
  std::vector<std::byte> pageable(stream_bytes, std::byte{1});
  const auto line = [&](const std::string& what, double of, const std::function<void()>& body) {
    t.rate(what, stream_bytes,
           timed(
               t.repeats, [] {}, body),
           of, "of the link");
  };
  line("driver copy of pageable memory, host to GPU", result.up, [&] {
    gpu.up(gpu.memory, pageable.data(), stream_bytes);
    gpu.finish();
  });
  line("driver copy of pageable memory, GPU to host", result.down, [&] {
    gpu.down(pageable.data(), gpu.memory, stream_bytes);
    gpu.finish();
  });
  const pinned_buffer two(2 * raw_gpu::by_hand_buffer);
  line("double buffering by hand, host to GPU", result.up,
       [&] { gpu.up_by_hand(gpu.memory, pageable.data(), stream_bytes, two); });
  line("double buffering by hand, GPU to host", result.down,
       [&] { gpu.down_by_hand(pageable.data(), gpu.memory, stream_bytes, two); });
  // Measures the rate at which eight threads access ordinary memory; if the link is faster, this rate limits transfers.
  const auto in_ordinary_memory = [&](const char* what, const char* link_is, double link, const timing& time) {
    t.rate(std::string(what) + " of pageable memory, 8 threads" + link_is, stream_bytes, time, link, "of the link");
    return rate_of(stream_bytes, time.median);
  };
  std::vector<std::byte> other(stream_bytes, std::byte{1});
  const auto fill = [&] { fill_all(pageable.data(), stream_bytes); };
  const auto read = [&] { read_all(pageable.data(), stream_bytes); };
  const auto copy = [&] { copy_all(other.data(), pageable.data(), stream_bytes); };
  in_ordinary_memory("memset", "", result.up, beside(nothing, fill));
  in_ordinary_memory("fill by words", "", result.up,
                     beside(nothing, [&] { write_all(pageable.data(), stream_bytes); }));
  in_ordinary_memory("read", "", result.down, beside(nothing, read));
  // The threads and the link access host memory at the same time, as when hpe moves data while the program continues to
  // run.
  constexpr const char* during_upload = ", during a pinned upload";
  constexpr const char* during_download = ", during a pinned download";
  result.up_while_filling = in_ordinary_memory("memset", during_upload, result.up, beside(queue_up, fill));
  result.down_while_reading = in_ordinary_memory("read", during_download, result.down, beside(queue_down, read));
  result.up_while_copying = in_ordinary_memory("copy", during_upload, result.up, beside(queue_up, copy));
  result.down_while_copying = in_ordinary_memory("copy", during_download, result.down, beside(queue_down, copy));
  return result;
}

void managed_memory(table& t, const raw_gpu& gpu, const link_rates& is) {
  CUdeviceptr memory = 0;
  CALL(cuMemAllocManaged, &memory, stream_bytes, CU_MEM_ATTACH_GLOBAL);
  auto* const data = reinterpret_cast<std::byte*>(memory);  // NOLINT(performance-no-int-to-ptr)
  const auto kernel_writes = [&] {
    gpu.fill(data, stream_bytes);
    gpu.finish();
  };
  const auto prefetch = [&](CUmemLocationType where, int id) {
    CUmemLocation place{};
    place.type = where;
    place.id = id;
    CALL(cuMemPrefetchAsync, memory, stream_bytes, place, 0, gpu.stream);
  };
  const auto line = [&](const std::string& what, double of, const std::function<void()>& body) {
    t.rate("managed memory: " + what, stream_bytes, timed(t.repeats, kernel_writes, body), of, "of the link");
  };
  line("host reads a kernel's output, 1 thread", is.down, [&] { touch_pages(data, stream_bytes); });
  line("the same after cuMemPrefetchAsync to the host", is.down, [&] {
    prefetch(CU_MEM_LOCATION_TYPE_HOST, 0);
    gpu.finish();
    touch_pages(data, stream_bytes);
  });
  line("host writes a kernel's input, 1 thread", is.up, [&] {
    write_pages(data, stream_bytes);
    kernel_writes();
  });
  line("the same with cuMemPrefetchAsync to the GPU", is.up, [&] {
    write_pages(data, stream_bytes);
    prefetch(CU_MEM_LOCATION_TYPE_DEVICE, gpu.device);
    kernel_writes();
  });
  CALL(cuMemFree, memory);
}

}  // namespace hpe::bench
