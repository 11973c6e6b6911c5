// Compares every form of surface loads and stores with plain copies of bytes, with both engines.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "runtime/base/error.h"
#include "runtime/ptx/execution/textures/texture.h"
#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

struct geometry {
  const char* name;
  bool layered;
  unsigned dimensions;
};
constexpr geometry geometries[] = {
    {"1d", false, 1}, {"2d", false, 2}, {"3d", false, 3}, {"a1d", true, 1}, {"a2d", true, 2}};

struct place {
  std::int32_t layer, x, y, z;
};

// Returns the letter of the registers that hold elements of this size.
char letters_of(unsigned bytes) { return bytes <= 2 ? 'h' : bytes == 4 ? 'r' : 'd'; }
std::string list_of(char prefix, unsigned from, unsigned count) {
  std::string text;
  for (unsigned n = 0; n < count; ++n) text += fmt::format("{}%{}{}", n == 0 ? "" : ", ", prefix, from + n);
  return text;
}

std::string kernel_with(const std::string& body) {
  return ".version 7.8\n.target sm_75\n.address_size 64\n"
         ".visible .entry k(.param .u64 object, .param .u64 places, .param .u64 data) {\n"
         ".reg .b16 %h<8>;\n.reg .b32 %r<12>;\n.reg .b64 %d<12>;\n"
         "ld.param.u64 %d0, [object];\nld.param.u64 %d1, [places];\nld.param.u64 %d2, [data];\n"
         "mov.u32 %r8, %tid.x;\nmul.wide.u32 %d3, %r8, 16;\nadd.u64 %d1, %d1, %d3;\n"
         "mul.wide.u32 %d3, %r8, 32;\nadd.u64 %d2, %d2, %d3;\n"
         "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%d1];\n" +
         body + "ret;\n}\n";
}

std::string coordinates_of(const geometry& g) {
  if (g.layered) return g.dimensions == 1 ? "{%r0, %r1}" : "{%r0, %r1, %r2, %r2}";
  return g.dimensions == 1 ? "{%r1}" : g.dimensions == 2 ? "{%r1, %r2}" : "{%r1, %r2, %r3, %r3}";
}

// The elements of a thread's data are at multiples of eight bytes.
std::string moves(const char* instruction, unsigned bytes, unsigned vector) {
  std::string text;
  for (unsigned n = 0; n < vector; ++n) {
    const std::string reg = fmt::format("%{}{}", letters_of(bytes), 4 + n), at = fmt::format("[%d2+{}]", 8 * n);
    const bool loads = std::string(instruction) == "ld";
    text += fmt::format("{}.global.b{} {}, {};\n", instruction, 8 * bytes, loads ? reg : at, loads ? at : reg);
  }
  return text;
}

struct form {
  geometry where;
  unsigned bytes, vector;
  const char* boundary;

  [[nodiscard]] unsigned size() const { return bytes * vector; }
  [[nodiscard]] std::string registers() const { return fmt::format("{{{}}}", list_of(letters_of(bytes), 4, vector)); }
  [[nodiscard]] std::string suffix() const {
    const std::string length = vector == 1 ? "" : fmt::format(".v{}", vector);
    return fmt::format("{}{}.b{}.{}", where.name, length, 8 * bytes, boundary);
  }
  [[nodiscard]] std::string load() const {
    return kernel_with(fmt::format("suld.b.{} {}, [%d0, {}];\n", suffix(), registers(), coordinates_of(where)) +
                       moves("st", bytes, vector));
  }
  [[nodiscard]] std::string store() const {
    return kernel_with(moves("ld", bytes, vector) +
                       fmt::format("sust.b.{} [%d0, {}], {};\n", suffix(), coordinates_of(where), registers()));
  }
};

std::vector<form> all_forms() {
  std::vector<form> found;
  for (const geometry& g : geometries)
    for (const unsigned bytes : {1U, 2U, 4U, 8U})
      for (const unsigned vector : {1U, 2U, 4U})
        for (const char* const boundary : {"trap", "clamp", "zero"})
          if (bytes * vector <= 16) found.push_back({g, bytes, vector, boundary});
  return found;
}

// Memory with gaps between rows and between planes, and the expected content of the memory.
class model {
 public:
  static constexpr int width = 5, height = 3, planes = 4, element = 16;
  static constexpr int row = width * element, pitch = row + 48, slice = height * pitch + 32;

  model(kernel_runner& runner, const geometry& g, std::mt19937& random) : geometry_(g), expected_(planes * slice) {
    for (auto& each : expected_) each = static_cast<std::uint8_t>(random());
    memory_ = runner.upload(expected_);
    texture t;
    t.data = memory_;
    t.width = width;
    t.channels = 4;
    t.height = g.dimensions > 1 ? height : 0;
    t.pitch = pitch;
    t.depth = g.dimensions > 2 ? planes : 0;
    t.layers = g.layered ? planes : 0;
    t.slice = slice;
    object_ = runner.upload(std::vector<texture>{t});
  }

  // Coordinates that the geometry does not have are random, and must be ignored.
  [[nodiscard]] place random_place(std::mt19937& random, unsigned size, bool inside) const {
    const auto any = [&](int count) {
      return inside ? static_cast<int>(random() % static_cast<unsigned>(count))
                    : static_cast<int>(random() % static_cast<unsigned>(3 * count)) - count;
    };
    const int steps = row / static_cast<int>(size);
    return {any(planes), any(steps) * static_cast<int>(size), any(height), any(planes)};
  }

  // Returns -1 if the place is outside.
  [[nodiscard]] int offset_of(place p, unsigned size, bool clamps) const {
    const auto put = [&](int& i, int last) {
      if (clamps) i = std::clamp(i, 0, last);
      return i >= 0 && i <= last;
    };
    if (!geometry_.layered) p.layer = 0;
    if (geometry_.dimensions < 2) p.y = 0;
    if (geometry_.dimensions < 3) p.z = 0;
    if (!put(p.x, row - static_cast<int>(size)) || !put(p.y, height - 1) || !put(p.z, planes - 1) ||
        !put(p.layer, planes - 1))
      return -1;
    return (p.z + p.layer) * slice + p.y * pitch + p.x;
  }

  [[nodiscard]] std::vector<std::uint8_t>& expected() { return expected_; }
  [[nodiscard]] const std::uint8_t* memory() const { return memory_; }
  [[nodiscard]] const texture* object() const { return object_; }

 private:
  geometry geometry_;
  std::vector<std::uint8_t> expected_;
  std::uint8_t* memory_ = nullptr;
  const texture* object_ = nullptr;
};

class Surfaces : public programs_fixture {
 protected:
  void SetUp() override {
    programs_fixture::SetUp();
    seed_ = std::random_device{}();
    random_.seed(seed_);
  }
  std::string named(const form& f) const { return f.suffix() + fmt::format(", seed {}", seed_); }
  std::vector<std::uint8_t> noise(std::size_t bytes) {
    std::vector<std::uint8_t> found(bytes);
    for (auto& each : found) each = static_cast<std::uint8_t>(random_());
    return found;
  }
  unsigned seed_ = 0;
};

constexpr unsigned threads = 37;

TEST_P(Surfaces, LoadsAreTheBytesThatLieThere) {
  for (const form& f : all_forms()) {
    kernel_runner runner({f.load()}, GetParam());
    model m(runner, f.where, random_);
    const bool traps = std::string(f.boundary) == "trap", clamps = std::string(f.boundary) == "clamp";
    std::vector<place> places(threads);
    for (place& each : places) each = m.random_place(random_, f.size(), traps);
    const std::vector<std::uint8_t> poison = noise(threads * 32);
    auto* const out = runner.upload(poison);
    const auto stopped = runner.launch("k", {{1}, {threads}}, m.object(), runner.upload(places), out);
    ASSERT_FALSE(stopped.has_value()) << named(f) << stopped->message();
    std::vector<std::uint8_t> expected = poison;
    for (unsigned t = 0; t < threads; ++t) {
      const int from = m.offset_of(places[t], f.size(), clamps);
      for (unsigned n = 0; n < f.vector; ++n)
        for (unsigned b = 0; b < f.bytes; ++b)
          expected[t * 32 + n * 8 + b] = from < 0 ? 0 : m.expected()[static_cast<unsigned>(from) + n * f.bytes + b];
    }
    ASSERT_EQ(std::vector<std::uint8_t>(out, out + expected.size()), expected) << named(f);
    ASSERT_TRUE(std::equal(m.expected().begin(), m.expected().end(), m.memory())) << named(f);
  }
}

TEST_P(Surfaces, StoresWriteThoseBytesAndNoOthers) {
  for (const form& f : all_forms()) {
    kernel_runner runner({f.store()}, GetParam());
    model m(runner, f.where, random_);
    const bool traps = std::string(f.boundary) == "trap", clamps = std::string(f.boundary) == "clamp";
    const std::vector<std::uint8_t> values = noise(threads * 32);
    const auto* const in = runner.upload(values);
    for (unsigned t = 0; t < threads; ++t) {  // one after the other, because several threads may have the same place
      const place p = m.random_place(random_, f.size(), traps);
      const auto stopped =
          runner.launch("k", {{1}, {1}}, m.object(), runner.upload(std::vector<place>{p}), in + std::size_t{t} * 32);
      ASSERT_FALSE(stopped.has_value()) << named(f) << stopped->message();
      const int to = m.offset_of(p, f.size(), clamps);
      for (unsigned n = 0; n < f.size() && to >= 0; ++n)
        m.expected()[static_cast<unsigned>(to) + n] = values[t * 32 + n / f.bytes * 8 + n % f.bytes];
    }
    ASSERT_TRUE(std::equal(m.expected().begin(), m.expected().end(), m.memory())) << named(f);
  }
}

TEST_P(Surfaces, AnAccessOutsideStopsTheKernelAndTheMessageHasItsPlace) {
  for (const geometry& g : geometries) {
    std::vector<place> outside{{0, -4, 0, 0}, {0, model::row, 0, 0}, {0, model::row - 3, 0, 0}};
    if (g.dimensions > 1) outside.insert(outside.end(), {{0, 0, -1, 0}, {0, 0, model::height, 0}});
    if (g.dimensions > 2) outside.insert(outside.end(), {{0, 0, 0, -1}, {0, 0, 0, model::planes}});
    if (g.layered) outside.insert(outside.end(), {{-1, 0, 0, 0}, {model::planes, 0, 0, 0}});
    const form f{g, 4, 1, "trap"};
    for (const bool loads : {true, false}) {
      for (const place& p : outside) {
        kernel_runner runner({loads ? f.load() : f.store()}, GetParam());
        model m(runner, g, random_);
        std::vector<place> places(5, place{0, 0, 0, 0});
        places[3] = p;
        const auto stopped =
            runner.launch("k", {{1}, {5}}, m.object(), runner.upload(places), runner.upload(noise(5 * 32)));
        ASSERT_TRUE(stopped.has_value()) << named(f);
        EXPECT_EQ(stopped->why, trap::reason::surface);
        EXPECT_EQ(stopped->thread.x, 3U);
        for (const char* const part : {"kernel k: thread (3, 0, 0) of block (0, 0, 0) left a surface",
                                       loads ? "'suld.b." : "'sust.b.", "PTX line", "of 80 bytes"})
          EXPECT_NE(stopped->message().find(part), std::string::npos) << stopped->message();
      }
    }
  }
}

TEST_P(Surfaces, AnObjectOfZeroStopsTheKernel) {
  const form f{geometries[1], 4, 1, "zero"};
  kernel_runner runner({f.load()}, GetParam());
  const auto stopped = runner.launch("k", {{1}, {1}}, std::uint64_t{0}, runner.allocate(16), runner.allocate(32));
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->why, trap::reason::address);
}

TEST_P(Surfaces, FormattedStoresConvert) {
  using element = texture::element;
  struct conversion {
    element format;
    unsigned bytes;
    std::array<std::uint32_t, 4> from, to;
  };
  const auto f = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const auto s = [](int x) { return static_cast<std::uint32_t>(x); };
  for (const conversion& each : {
           conversion{element::f32, 4, {f(1.5F), f(-0.0F), f(INFINITY), 7}, {f(1.5F), f(-0.0F), f(INFINITY), 7}},
           conversion{element::s32, 4, {1, s(-2), 3, s(-4)}, {1, s(-2), 3, s(-4)}},
           conversion{
               element::f16, 2, {f(1.5F), f(-2), f(65536), f(1.0F + 0x1p-12F)}, {0x3e00, 0xc000, 0x7c00, 0x3c00}},
           conversion{element::s16, 2, {s(-5), 40000, s(-40000), 7}, {0xfffb, 0x7fff, 0x8000, 7}},
           conversion{element::u16, 2, {5, 70000, s(-1), 0}, {5, 0xffff, 0xffff, 0}},
           conversion{element::s8, 1, {s(-5), 200, s(-200), 7}, {0xfb, 0x7f, 0x80, 7}},
           conversion{element::u8, 1, {5, 300, s(-1), 0}, {5, 0xff, 0xff, 0}},
       }) {
    for (const unsigned channels : {1U, 2U, 4U}) {
      kernel_runner runner({kernel_with("ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d2];\n"
                                        "sust.p.2d.v4.b32.trap [%d0, {%r1, %r2}], {%r4, %r5, %r6, %r7};\n")},
                           GetParam());
      std::vector<std::uint8_t> expected = noise(3 * 100);
      texture t;
      t.data = runner.upload(expected);
      t.width = 5;
      t.height = 3;
      t.pitch = 100;
      t.channels = channels;
      t.format = each.format;
      const auto stopped = runner.launch("k", {{1}, {1}}, runner.upload(std::vector<texture>{t}),
                                         runner.upload(std::vector<place>{{0, 4, 2, 0}}),
                                         runner.upload(std::vector<std::uint32_t>(each.from.begin(), each.from.end())));
      ASSERT_FALSE(stopped.has_value()) << stopped->message();
      for (unsigned c = 0; c < channels; ++c)
        std::memcpy(&expected[200 + (4 * channels + c) * each.bytes], &each.to[c], each.bytes);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), static_cast<const std::uint8_t*>(t.data)))
          << static_cast<int>(each.format) << ", channels: " << channels;
    }
  }
}

TEST_P(Surfaces, FormattedStoresCountElements) {
  struct outcome {
    std::int32_t x;
    const char* boundary;
    int element;  // the element to which the thread writes; -1 for none
  };
  for (const outcome& each :
       {outcome{2, "clamp", 2}, outcome{5, "clamp", 4}, outcome{-1, "clamp", 0}, outcome{0x40000000, "clamp", 4},
        outcome{0x40000000, "zero", -1}, outcome{-0x40000000, "zero", -1}, outcome{4, "zero", 4}}) {
    kernel_runner runner(
        {kernel_with(fmt::format("ld.global.u32 %r4, [%d2];\nsust.p.1d.b32.{} [%d0, {{%r1}}], %r4;\n", each.boundary))},
        GetParam());
    std::vector<std::uint32_t> expected(5, 77);
    texture t;
    t.data = runner.upload(expected);
    t.width = 5;
    t.format = texture::element::u32;
    EXPECT_RUNS(runner.launch("k", {{1}, {1}}, runner.upload(std::vector<texture>{t}),
                              runner.upload(std::vector<place>{{0, each.x, 0, 0}}),
                              runner.upload(std::vector<std::uint32_t>{9})));
    if (each.element >= 0) expected[static_cast<std::size_t>(each.element)] = 9;
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), static_cast<const std::uint32_t*>(t.data)))
        << each.x << each.boundary;
  }
}

TEST_P(Surfaces, TellTheirSizes) {
  kernel_runner runner({kernel_with("suq.width.b32 %r4, [%d0];\nsuq.height.b32 %r5, [%d0];\n"
                                    "st.global.v2.u32 [%d2], {%r4, %r5};\n"
                                    "suq.depth.b32 %r4, [%d0];\nsuq.array_size.b32 %r5, [%d0];\n"
                                    "st.global.v2.u32 [%d2+8], {%r4, %r5};\n"
                                    "txq.width.b32 %r4, [%d0];\ntxq.height.b32 %r5, [%d0];\n"
                                    "st.global.v2.u32 [%d2+16], {%r4, %r5};\n"
                                    "txq.normalized_coords.b32 %r4, [%d0];\ntxq.array_size.b32 %r5, [%d0];\n"
                                    "st.global.v2.u32 [%d2+24], {%r4, %r5};\n")},
                       GetParam());
  texture t;
  t.width = 11;
  t.height = 12;
  t.depth = 13;
  t.layers = 14;
  t.normalized = true;
  auto* const out = runner.upload(std::vector<std::uint32_t>(8, 99));
  EXPECT_RUNS(runner.launch("k", {{1}, {1}}, runner.upload(std::vector<texture>{t}), runner.allocate(16), out));
  EXPECT_EQ(std::vector<std::uint32_t>(out, out + 8), (std::vector<std::uint32_t>{11, 12, 13, 14, 11, 12, 1, 14}));
}

TEST(SurfaceText, InvalidAndUnsupportedInstructionsAreRefusedAtLoading) {
  for (const auto& [body, status] : std::vector<std::pair<std::string, hpeStatus>>{
           {"suld.b.2d.v4.b64.trap {%d4, %d5, %d6, %d7}, [%d0, {%r1, %r2}];\n", HPE_ERROR_INVALID_ARGUMENT},
           {"suld.b.2d.b32.trap {%r4}, [%d0, {%r1}];\n", HPE_ERROR_INVALID_ARGUMENT},
           {"suld.b.2d.v2.b32.trap {%r4}, [%d0, {%r1, %r2}];\n", HPE_ERROR_INVALID_ARGUMENT},
           {"suld.b.2d.b32.trap {%r4}, [%d0];\n", HPE_ERROR_INVALID_ARGUMENT},
           {"suld.b.a2d.b32.trap {%r4}, [%d0, {%r1, %r2}];\n", HPE_ERROR_INVALID_ARGUMENT},
           {"sust.p.2d.b16.trap [%d0, {%r1, %r2}], %h4;\n", HPE_ERROR_INVALID_ARGUMENT},
           {"sust.2d.b32.trap [%d0, {%r1, %r2}], %r4;\n", HPE_ERROR_NOT_SUPPORTED},
           {"suld.b.b32.trap {%r4}, [%d0, {%r1}];\n", HPE_ERROR_NOT_SUPPORTED},
           {"suq.width.b32 %r4, %d0;\n", HPE_ERROR_INVALID_ARGUMENT},
       }) {
    try {
      static_cast<void>(parse({kernel_with(body)}));
      ADD_FAILURE() << body;
    } catch (const error& e) {
      EXPECT_EQ(e.status(), status) << e.what();
      EXPECT_NE(std::string(e.what()).find(body.substr(0, body.find(' '))), std::string::npos) << e.what();
    }
  }
}

INSTANTIATE_FOR_ENGINES(Surfaces);

}  // namespace
}  // namespace hpe::ptx::test
