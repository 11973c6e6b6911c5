// Copies between two GPUs.
#include <thread>

#include "bench/transfers/parts.h"
#include "tests/core/kernels.h"

namespace hpe::bench {

namespace {

/// Four arrays: a source and a target for each direction.
struct exchange {
  static constexpr std::size_t words = stream_bytes / sizeof(std::uint32_t);
  hpe::array<std::uint32_t> a{words, hpe::on_device(0)};
  hpe::array<std::uint32_t> b{words, hpe::on_device(1)};
  hpe::array<std::uint32_t> c{words, hpe::on_device(0)};
  hpe::array<std::uint32_t> d{words, hpe::on_device(1)};

  exchange() {
    // Each array is written only by the device on which it is allocated, because hpe would migrate it to a writing
    // device that cannot access it.
    int device = 0;
    for (const auto* each : {&a, &b, &c, &d}) {
      hpe::launch_on(device, test_kernel().fill, hpe::grid(1024), {each->data(), words, fresh_seed()}, hpe::out(*each));
      hpe::synchronize();
      device = 1 - device;
    }
  }
};

}  // namespace

void peers(table& t, const raw_gpu& first, const raw_gpu& second) {
  const exchange x;
  // Copies between the memory of the same arrays by the CUDA driver.
  const auto raw = [&](const raw_gpu& gpu, const hpe::array<std::uint32_t>& to, const hpe::array<std::uint32_t>& from) {
    gpu.use();
    CALL(cuMemcpyAsync, as_device(to.data()), as_device(from.data()), stream_bytes, gpu.stream);
  };
  const auto finish = [&] {
    first.finish();
    second.finish();
  };
  const auto one = paired_timings(
      t.repeats, [] {},
      [&] {
        hpe::copy(x.b.data(), x.a.data(), stream_bytes);
        hpe::synchronize();
      },
      [] {},
      [&] {
        raw(second, x.b, x.a);
        finish();
      });
  t.rate("peer copy by the driver", stream_bytes, one.second);
  t.rate("peer copy by hpeMemcpy", stream_bytes, one.first);
  t.ratio("  of the driver's", one.first, one.second, 0.95);
  const auto two = paired_timings(
      t.repeats, [] {},
      [&] {
        hpe::copy(x.b.data(), x.a.data(), stream_bytes);
        hpe::copy(x.c.data(), x.d.data(), stream_bytes);
        hpe::synchronize();
      },
      [] {},
      [&] {
        raw(second, x.b, x.a);
        raw(first, x.c, x.d);
        finish();
      });
  t.rate("both ways by the driver", 2 * stream_bytes, two.second);
  t.rate("both ways by hpeMemcpy", 2 * stream_bytes, two.first);
  t.ratio("  of the driver's", two.first, two.second, 0.95);
  first.use();
}

void staged_exchange(table& t, const raw_gpu& first, const raw_gpu& second) {
  const exchange x;
  const pinned_buffer pinned(4 * stream_bytes);
  const raw_gpu first_too(0);
  const raw_gpu second_too(1);
  const auto times = paired_timings(
      t.repeats, [] {},
      [&] {
        {
          const std::jthread other([&] { hpe::copy(x.c.data(), x.d.data(), stream_bytes); });
          hpe::copy(x.b.data(), x.a.data(), stream_bytes);
        }
        hpe::synchronize();
      },
      [] {},
      [&] {
        // The upper bound that the two links to the host set: each link carries the data of both directions.
        std::byte* at = pinned.data();
        for (const auto& [out, in] : {std::pair{&first, &first_too}, std::pair{&second, &second_too}}) {
          out->use();
          out->down(at, out->memory, stream_bytes);
          in->up(in->memory, at + stream_bytes, stream_bytes);
          at += 2 * stream_bytes;
        }
        for (const raw_gpu* gpu : {&first, &first_too, &second, &second_too}) gpu->finish();
      });
  t.rate("driver copies on both host links, up and down concurrently", 2 * stream_bytes, times.second);
  t.rate("exchange of two GPUs through the host, without peer access", 2 * stream_bytes, times.first);
  t.ratio("  of the host links", times.first, times.second, 0.7);
  first.use();
}

}  // namespace hpe::bench
