// Measures accesses by the host and the GPU through one pointer, and hpeMemcpy.
#include <fmt/core.h>

#include <cstring>
#include <memory>

#include "bench/transfers/parts.h"
#include "tests/core/kernels.h"

namespace hpe::bench {

namespace {

constexpr std::uint32_t tiles = 1024;
constexpr std::size_t words = stream_bytes / sizeof(std::uint32_t);

volatile std::uint64_t sink;

constexpr const char* of_both = "of the rate of memory and link together";

std::byte* bytes_of(const hpe::array<std::uint32_t>& a) { return reinterpret_cast<std::byte*>(a.data()); }

}  // namespace

void touch_pages(const std::byte* data, std::size_t bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bytes; i += page) sum += static_cast<std::uint64_t>(data[i]);
  sink = sum;
}

// Reads whole cache lines with one instruction each. On the Xeon of an H200 machine, eight threads read ordinary memory
// at 103 GB/s line by line, but at 52 GB/s word by word, which is slower than the link.
void read_all(const std::byte* data, std::size_t bytes) {
  using line = std::uint64_t __attribute__((vector_size(64), may_alias));
  in_crowd(bytes, mebi, [&](std::size_t at, std::size_t size) {
    const auto* const lines = reinterpret_cast<const line*>(data + at);
    line even{};
    line odd{};
    for (std::size_t i = 0; i < size / sizeof(line); i += 2) {
      even += lines[i];
      odd += lines[i + 1];
    }
    even += odd;
    sink = even[0] + even[1] + even[2] + even[3] + even[4] + even[5] + even[6] + even[7];
  });
}

void write_pages(std::byte* data, std::size_t bytes) {
  const auto value = static_cast<std::byte>(fresh_seed());
  for (std::size_t i = 0; i < bytes; i += page) data[i] = value;
}

void write_all(std::byte* data, std::size_t bytes) {
  const std::uint64_t first = fresh_seed();
  in_crowd(bytes, 8 * mebi, [&](std::size_t at, std::size_t size) {
    auto* const numbers = reinterpret_cast<std::uint64_t*>(data + at);
    for (std::size_t i = 0; i < size / sizeof *numbers; ++i) numbers[i] = first + i;
  });
}

// Fills memory with stores that do not read the old contents, as memset does for large sizes. memset itself is not
// called, because hpe would pass the call to the GPU.
void fill_all(std::byte* data, std::size_t bytes) {
  const std::uint64_t value = fresh_seed();
  in_crowd(bytes, 8 * mebi, [&](std::size_t at, std::size_t size) {
    std::byte* to = data + at;
    std::size_t words = size / sizeof value;
    asm volatile("rep stosq" : "+D"(to), "+c"(words) : "a"(value) : "memory");
  });
}

void copy_all(std::byte* to, const std::byte* from, std::size_t bytes) {
  in_crowd(bytes, mebi, [&](std::size_t at, std::size_t size) { std::memcpy(to + at, from + at, size); });
}

void launch_fill(const hpe::array<std::uint32_t>& a) {
  hpe::launch(test_kernel().fill, hpe::grid(tiles), {a.data(), a.size(), fresh_seed()}, hpe::out(a));
  hpe::synchronize();
}

void host_reads(table& t, const link_rates& is) {
  std::unique_ptr<hpe::array<std::uint32_t>> a;
  const auto touch = [&] { touch_pages(bytes_of(*a), stream_bytes); };
  const auto all = [&] { read_all(bytes_of(*a), stream_bytes); };
  const auto line = [&](const std::string& what, double bar, const std::function<void()>& prepare,
                        const std::function<void()>& body) {
    const timing time = timed(t.repeats, prepare, body);
    t.rate("host reads a kernel's output, " + what, stream_bytes, time, is.down, "of the link", bar);
    return time;
  };
  const auto new_array = [&] {
    a = std::make_unique<hpe::array<std::uint32_t>>(words);
    launch_fill(*a);
  };
  const auto instead_of_another = [&] {
    a.reset();
    new_array();
  };
  const auto again = [&] { launch_fill(*a); };

  line("allocation on kept host pages, 1 thread", 0.88, instead_of_another, touch);
  line("allocation on kept host pages, 8 threads", 0.88, instead_of_another, all);
  line("1 thread, one word of each page", 0.95, again, touch);
  t.share(line("8 threads, all bytes", 0.95, again, all), stream_bytes, is.down_while_reading, of_both);
}

void host_writes(table& t, const link_rates& is) {
  const hpe::array<std::uint32_t> a(words);
  std::byte* const data = bytes_of(a);
  write_all(data, stream_bytes);
  const auto prepare = [&] {
    launch_fill(a);
    read_all(data, stream_bytes);  // the host and the GPU then have valid copies
  };
  const auto line = [&](const std::string& what, double bar, const std::function<void()>& write) {
    const timing time = timed(t.repeats, prepare, [&] {
      write();
      hpe::launch(test_kernel().nothing, hpe::grid(1), {nullptr}, hpe::in(a));
      hpe::synchronize();
    });
    t.rate("host writes a kernel's input, " + what, stream_bytes, time, is.up, "of the link", bar);
    return time;
  };
  line("1 thread, one word of each page", 0.92, [&] { write_pages(data, stream_bytes); });
  t.share(line("8 threads, memset", 0.92, [&] { fill_all(data, stream_bytes); }), stream_bytes, is.up_while_filling,
          of_both);
  line("8 threads, by words", 0, [&] { write_all(data, stream_bytes); });
}

void pageable_copies(table& t, const link_rates& is) {
  const hpe::array<std::uint32_t> a(words);
  std::vector<std::byte> host(stream_bytes, std::byte{1});
  const auto prepare = [&] { launch_fill(a); };
  for (const std::size_t size : {64 * mebi, stream_bytes}) {
    const auto line = [&](const char* way, double link, double both, const std::function<void()>& body) {
      const timing time = timed(t.repeats, prepare, body);
      t.rate(fmt::format("hpeMemcpy of pageable memory, {}, {} MiB", way, size / mebi), size, time, link, "of the link",
             0.88);
      t.share(time, size, both, of_both);
    };
    line("host to GPU", is.up, is.up_while_copying, [&] {
      hpe::copy(a.data(), host.data(), size);
      hpe::synchronize();
    });
    line("GPU to host", is.down, is.down_while_copying, [&] { hpe::copy(host.data(), a.data(), size); });
  }
}

}  // namespace hpe::bench
