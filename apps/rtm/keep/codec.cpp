#include "apps/rtm/keep/codec.h"

#include <zfp.h>

#include <stdexcept>
#include <utility>

namespace hpe::rtm {

namespace {

class zfp_codec final : public codec {
 public:
  zfp_codec(std::vector<part_shape> shapes, std::int64_t bits) : shapes_(std::move(shapes)), bits_(bits) {}

  [[nodiscard]] std::size_t packed_bytes(std::size_t d) const override {
    const call c(*this, d, nullptr, nullptr, 0);
    return zfp_stream_maximum_size(c.coder.get(), c.field.get());
  }

  void pack(std::size_t d, std::span<const std::uint8_t> part, std::uint8_t* to) const override {
    const call c(*this, d, const_cast<std::uint8_t*>(part.data()), to, packed_bytes(d));
    static_cast<void>(
        zfp_stream_set_execution(c.coder.get(), zfp_exec_omp));  // no effect if zfp was built without threads
    if (zfp_compress(c.coder.get(), c.field.get()) == 0) throw std::runtime_error("zfp cannot compress a wave field");
  }

  void unpack(std::size_t d, const std::uint8_t* from, std::span<std::uint8_t> part) const override {
    const call c(*this, d, part.data(), const_cast<std::uint8_t*>(from), packed_bytes(d));
    if (zfp_decompress(c.coder.get(), c.field.get()) == 0)
      throw std::runtime_error("zfp cannot decompress a wave field");
  }

 private:
  struct closes {
    void operator()(zfp_field* f) const { zfp_field_free(f); }
    void operator()(zfp_stream* s) const { zfp_stream_close(s); }
    void operator()(bitstream* b) const { stream_close(b); }
  };

  /// zfp's objects for one part.
  struct call {
    call(const zfp_codec& of, std::size_t d, void* cells, void* packed, std::size_t bytes)
        : bits(stream_open(packed, bytes)), coder(zfp_stream_open(bits.get())) {
      const auto [z, y, x] = of.shapes_[d];
      const auto nz = static_cast<std::size_t>(z), ny = static_cast<std::size_t>(y), nx = static_cast<std::size_t>(x);
      const bool section = y == 1;
      field.reset(section ? zfp_field_2d(cells, zfp_type_float, nz, nx)
                          : zfp_field_3d(cells, zfp_type_float, nz, ny, nx));
      zfp_stream_set_rate(coder.get(), static_cast<double>(of.bits_), zfp_type_float, section ? 2 : 3, 0);
    }
    std::unique_ptr<bitstream, closes> bits;
    std::unique_ptr<zfp_stream, closes> coder;
    std::unique_ptr<zfp_field, closes> field;
  };

  const std::vector<part_shape> shapes_;
  const std::int64_t bits_;
};

}  // namespace

std::unique_ptr<codec> make_zfp(std::vector<part_shape> shapes, std::int64_t bits) {
  return std::make_unique<zfp_codec>(std::move(shapes), bits);
}

}  // namespace hpe::rtm
