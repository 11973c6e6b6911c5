// Cube maps, mipmapped arrays and gathers: reads with a level or a gradient, between two levels, and across the edges
// of cubes. The values are small multiples of powers of two, so that filtering is exact.
#include <cmath>
#include <vector>

#include "check.h"

namespace {

struct point {
  float a[9];
};

enum class kind {
  plain,
  lod1,
  lod2,
  lod3,
  layered_lod1,
  layered_lod2,
  grad1,
  grad2,
  grad3,
  cube,
  layered_cube,
  cube_lod,
  layered_cube_lod,
  gather0,
  gather1
};

template <kind K>
__global__ void read(cudaTextureObject_t t, const point* points, float4* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float* a = points[i].a;
  if constexpr (K == kind::plain) out[i] = tex2D<float4>(t, a[0], a[1]);
  if constexpr (K == kind::lod1) out[i] = tex1DLod<float4>(t, a[0], a[1]);
  if constexpr (K == kind::lod2) out[i] = tex2DLod<float4>(t, a[0], a[1], a[2]);
  if constexpr (K == kind::lod3) out[i] = tex3DLod<float4>(t, a[0], a[1], a[2], a[3]);
  if constexpr (K == kind::layered_lod1) out[i] = tex1DLayeredLod<float4>(t, a[0], int(a[1]), a[2]);
  if constexpr (K == kind::layered_lod2) out[i] = tex2DLayeredLod<float4>(t, a[0], a[1], int(a[2]), a[3]);
  if constexpr (K == kind::grad1) out[i] = tex1DGrad<float4>(t, a[0], a[1], a[2]);
  if constexpr (K == kind::grad2)
    out[i] = tex2DGrad<float4>(t, a[0], a[1], make_float2(a[2], a[3]), make_float2(a[4], a[5]));
  if constexpr (K == kind::grad3)
    out[i] = tex3DGrad<float4>(t, a[0], a[1], a[2], make_float4(a[3], a[4], a[5], 0), make_float4(a[6], a[7], a[8], 0));
  if constexpr (K == kind::cube) out[i] = texCubemap<float4>(t, a[0], a[1], a[2]);
  if constexpr (K == kind::layered_cube) out[i] = texCubemapLayered<float4>(t, a[0], a[1], a[2], int(a[3]));
  if constexpr (K == kind::cube_lod) out[i] = texCubemapLod<float4>(t, a[0], a[1], a[2], a[3]);
  if constexpr (K == kind::layered_cube_lod)
    out[i] = texCubemapLayeredLod<float4>(t, a[0], a[1], a[2], int(a[3]), a[4]);
  if constexpr (K == kind::gather0) out[i] = tex2Dgather<float4>(t, a[0], a[1], 0);
  if constexpr (K == kind::gather1) out[i] = tex2Dgather<float4>(t, a[0], a[1], 1);
}

template <kind K>
void show(const char* name, cudaTextureObject_t texture, const std::vector<point>& points) {
  const int count = int(points.size());
  const bool gathers = K == kind::gather0 || K == kind::gather1;
  point* from;
  float4* to;
  std::vector<float4> out(count);
  CHECK(cudaMalloc(&from, count * sizeof(point)));
  CHECK(cudaMalloc(&to, count * sizeof(float4)));
  CHECK(cudaMemcpy(from, points.data(), count * sizeof(point), cudaMemcpyHostToDevice));
  read<K><<<(count + 63) / 64, 64>>>(texture, from, to, count);
  CHECK(cudaMemcpy(out.data(), to, count * sizeof(float4), cudaMemcpyDeviceToHost));
  std::printf("%s:", name);
  for (const float4& each : out) {
    std::printf(" %.9g", each.x);
    if (gathers) std::printf(" %.9g %.9g %.9g,", each.y, each.z, each.w);
  }
  std::printf("\n");
  CHECK(cudaFree(from));
  CHECK(cudaFree(to));
  CHECK(cudaDestroyTextureObject(texture));
}

const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();

template <class Value>
void fill(cudaArray_t array, int level, const Value& value) {
  cudaExtent extent;
  CHECK(cudaArrayGetInfo(nullptr, &extent, nullptr, array));
  const size_t rows = extent.height ? extent.height : 1, planes = extent.depth ? extent.depth : 1;
  std::vector<float> values;
  for (size_t z = 0; z < planes; ++z)
    for (size_t y = 0; y < rows; ++y)
      for (size_t x = 0; x < extent.width; ++x) values.push_back(value(level, int(x), int(y), int(z)));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(values.data(), extent.width * sizeof(float), extent.width, rows);
  copy.dstArray = array;
  copy.extent = make_cudaExtent(extent.width, rows, planes);
  copy.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&copy));
}

template <class Value>
cudaResourceDesc levels(cudaExtent extent, unsigned count, unsigned flags, const Value& value) {
  cudaResourceDesc made{};
  made.resType = cudaResourceTypeMipmappedArray;
  CHECK(cudaMallocMipmappedArray(&made.res.mipmap.mipmap, &floats, extent, count, flags));
  for (unsigned level = 0; level < count; ++level) {
    cudaArray_t array;
    CHECK(cudaGetMipmappedArrayLevel(&array, made.res.mipmap.mipmap, level));
    fill(array, int(level), value);
  }
  return made;
}

template <class Value>
cudaResourceDesc plane(cudaExtent extent, unsigned flags, const Value& value) {
  cudaResourceDesc made{};
  made.resType = cudaResourceTypeArray;
  CHECK(cudaMalloc3DArray(&made.res.array.array, &floats, extent, flags));
  fill(made.res.array.array, 0, value);
  return made;
}

cudaTextureDesc description(bool filtered, bool between_levels, cudaTextureAddressMode mode = cudaAddressModeClamp,
                            bool normalized = true) {
  cudaTextureDesc made{};
  for (auto& each : made.addressMode) each = mode;
  made.filterMode = filtered ? cudaFilterModeLinear : cudaFilterModePoint;
  made.mipmapFilterMode = between_levels ? cudaFilterModeLinear : cudaFilterModePoint;
  made.normalizedCoords = normalized;
  made.maxMipmapLevelClamp = 1000;
  return made;
}

cudaTextureObject_t texture(const cudaResourceDesc& resource, const cudaTextureDesc& description) {
  cudaTextureObject_t made;
  CHECK(cudaCreateTextureObject(&made, &resource, &description, nullptr));
  return made;
}

void mipmaps() {
  const auto constant = [](int level, int, int, int) { return 256.0f * level; };
  const cudaResourceDesc square = levels(make_cudaExtent(32, 32, 0), 6, 0, constant);
  std::vector<point> at;
  for (int i = -6; i <= 40; ++i) at.push_back({.5f, .5f, i / 1024.f});
  for (int i = 1000; i < 1040; ++i) at.push_back({.5f, .5f, i / 1024.f});
  for (const float level : {1.5f, 1.75f, 5.f, 5.5f, 10.f, -3.f, NAN, INFINITY}) at.push_back({.5f, .5f, level});
  show<kind::lod2>("between levels", texture(square, description(true, true)), at);
  at.clear();
  for (int i = 500; i <= 524; ++i) at.push_back({.5f, .5f, i / 1024.f});
  for (const float level : {-1.f, 1.4f, 1.5f, 1.6f, 4.4f, 9.f}) at.push_back({.5f, .5f, level});
  show<kind::lod2>("nearest level", texture(square, description(true, false)), at);
  at.clear();
  for (const float level : {-1.f, 0.f, .5f, 1.f, 3.f, 3.25f, 4.f, 9.f}) at.push_back({.5f, .5f, level});
  cudaTextureDesc bounded = description(true, true);
  bounded.mipmapLevelBias = .25f;
  bounded.minMipmapLevelClamp = .75f;
  bounded.maxMipmapLevelClamp = 3.5f;
  show<kind::lod2>("bias and clamp", texture(square, bounded), at);
  bounded.mipmapFilterMode = cudaFilterModePoint;
  show<kind::lod2>("bias and clamp, nearest", texture(square, bounded), at);
  show<kind::plain>("without a level", texture(square, description(true, true)), {{.5f, .5f}, {.1f, .9f}});
  show<kind::plain>("without a level, bounded", texture(square, bounded), {{.5f, .5f}, {.1f, .9f}});
  at.clear();
  for (const float step : {0.f, .5f, 1.f, 2.f, 4.f, 8.f, 64.f, 1000.f}) {
    at.push_back({.5f, .5f, step / 32});
    at.push_back({.5f, .5f, 0, 0, 0, step / 32});
  }
  show<kind::grad2>("gradients", texture(square, description(true, true)), at);
  CHECK(cudaFreeMipmappedArray(square.res.mipmap.mipmap));
  const cudaResourceDesc wide = levels(make_cudaExtent(32, 16, 0), 5, 0, constant);
  show<kind::grad2>("gradients, 32 x 16", texture(wide, description(true, true)),
                    {{.5f, .5f, 2 / 32.f}, {.5f, .5f, 0, 2 / 32.f}, {.5f, .5f, 0, 0, 0, 4 / 32.f}});

  const auto ramp = [](int level, int x, int y, int) { return 65536.0f * level + 256.f * (16 * y + x); };
  const cudaResourceDesc odd = levels(make_cudaExtent(13, 7, 0), 4, 0, ramp);
  at.clear();
  for (const float level : {0.f, 1.f, 2.f, 3.f})
    for (const float x : {0.f, .1f, .25f, .5f, .8f, 1.f, 1.3f}) at.push_back({x, .5f, level});
  show<kind::lod2>("ramp, clamp", texture(odd, description(true, true)), at);
  show<kind::lod2>("ramp, elements", texture(odd, description(false, true)), at);
  show<kind::lod2>("ramp, wrap", texture(odd, description(true, true, cudaAddressModeWrap)), at);
  show<kind::lod2>("ramp, mirror", texture(odd, description(true, true, cudaAddressModeMirror)), at);
  cudaTextureDesc border = description(true, true, cudaAddressModeBorder);
  border.borderColor[0] = 1024;
  show<kind::lod2>("ramp, border", texture(odd, border), at);

  const auto layered = [](int level, int, int, int z) { return 256.f * level + 4096 * z; };
  const cudaTextureDesc smooth = description(true, true);
  show<kind::lod1>("1D", texture(levels(make_cudaExtent(32, 0, 0), 6, 0, constant), smooth),
                   {{.5f, 0}, {.5f, 1.5f}, {.5f, 7}});
  show<kind::grad1>("1D, gradients", texture(levels(make_cudaExtent(32, 0, 0), 6, 0, constant), smooth),
                    {{.5f, 2 / 32.f}, {.5f, 0, 8 / 32.f}});
  show<kind::lod3>("3D", texture(levels(make_cudaExtent(16, 16, 16), 5, 0, constant), smooth),
                   {{.5f, .5f, .5f, 1.5f}, {.5f, .5f, .5f, 9}});
  show<kind::grad3>("3D, gradients", texture(levels(make_cudaExtent(16, 16, 16), 5, 0, constant), smooth),
                    {{.5f, .5f, .5f, 2 / 16.f, 0, 0, 0, 0, 4 / 16.f}});
  show<kind::layered_lod2>("layers", texture(levels(make_cudaExtent(16, 16, 3), 5, cudaArrayLayered, layered), smooth),
                           {{.5f, .5f, 0, 1.5f}, {.5f, .5f, 2, 1}, {.5f, .5f, 5, 3}});
  show<kind::layered_lod1>("layers, 1D",
                           texture(levels(make_cudaExtent(16, 0, 3), 5, cudaArrayLayered, layered), smooth),
                           {{.5f, 0, 1.5f}, {.5f, 2, 1}, {.5f, 5, 3}});
  show<kind::cube_lod>("cube", texture(levels(make_cudaExtent(16, 16, 6), 5, cudaArrayCubemap, layered), smooth),
                       {{1, 0, 0, 1.5f}, {-1, 0, 0, 1}, {0, 0, -1, 2}});
  show<kind::layered_cube_lod>(
      "cubes", texture(levels(make_cudaExtent(8, 8, 12), 4, cudaArrayCubemap | cudaArrayLayered, layered), smooth),
      {{1, 0, 0, 0, 1.5f}, {-1, 0, 0, 1, 1}, {0, 0, -1, 1, 2}, {0, 0, -1, 9, 2}});
}

void cubes() {
  const auto face = [](int, int x, int y, int z) { return 65536.f * (z * 256 + 16 * y + x); };
  const cudaResourceDesc cube = plane(make_cudaExtent(4, 4, 6), cudaArrayCubemap, face);
  std::vector<point> at;
  for (int axis = 0; axis < 3; ++axis)
    for (int sign = -1; sign <= 1; sign += 2)
      for (const float u : {-.99f, -.6f, .1f, .7f})
        for (const float v : {-.8f, .3f}) {
          point each{};
          each.a[axis] = float(sign);
          each.a[(axis + 1) % 3] = u;
          each.a[(axis + 2) % 3] = v;
          at.push_back(each);
        }
  for (const point& each : std::vector<point>{{1, 1, 1},
                                              {-1, 1, 1},
                                              {1, -1, .5f},
                                              {.5f, 1, 1},
                                              {.5f, -1, 1},
                                              {1, .5f, -1},
                                              {-1, .5f, -1},
                                              {0, 0, 0},
                                              {3, 1, -2},
                                              {.001f, .0005f, -.0002f}})
    at.push_back(each);
  show<kind::cube>("faces", texture(cube, description(false, false)), at);
  show<kind::cube>("faces, filtered", texture(cube, description(true, false)), at);
  show<kind::cube>("faces, wrap", texture(cube, description(true, false, cudaAddressModeWrap)), at);
  const cudaResourceDesc two = plane(make_cudaExtent(4, 4, 12), cudaArrayCubemap | cudaArrayLayered, face);
  at.clear();
  for (const float layer : {0.f, 1.f, 2.f, -1.f}) {
    at.push_back({1, .1f, .3f, layer});
    at.push_back({.1f, .3f, -1, layer});
  }
  show<kind::layered_cube>("faces of cubes", texture(two, description(false, false)), at);
}

void gathers() {
  const cudaResourceDesc elements =
      plane(make_cudaExtent(6, 5, 0), cudaArrayTextureGather, [](int, int x, int y, int) { return 16.f * y + x; });
  std::vector<point> at;
  for (const float x : {0.f, .25f, .5f, 1.f, 1.49f, 1.495f, 1.497f, 1.498f, 1.4981f, 1.499f, 1.4999f, 1.5f, 2.7f, 5.4f,
                        5.6f, 6.f, 7.f, -1.f})
    at.push_back({x, 2.2f});
  at.push_back({2.2f, 0});
  at.push_back({2.2f, 4.9f});
  cudaTextureDesc border = description(false, false, cudaAddressModeBorder, false);
  border.borderColor[0] = 7;
  show<kind::gather0>("gather", texture(elements, description(false, false, cudaAddressModeClamp, false)), at);
  show<kind::gather0>("gather, filtered", texture(elements, description(true, false, cudaAddressModeClamp, false)), at);
  show<kind::gather0>("gather, border", texture(elements, border), at);
  show<kind::gather0>("gather, wrap", texture(elements, description(false, false, cudaAddressModeWrap)),
                      {{0, .5f}, {.99f, .01f}, {.3f, .3f}});
  show<kind::gather1>("gather of a missing channel",
                      texture(elements, description(false, false, cudaAddressModeClamp, false)), at);
}

}  // namespace

int main() {
  mipmaps();
  cubes();
  gathers();
}
