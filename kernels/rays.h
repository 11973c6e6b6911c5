#pragma once

/// Ray tracing of spheres that move in a cube: the state of the scene, its movement, and the colour of a pixel, for
/// soft devices, GPUs and the host. The header needs only <stdint.h> and <math.h>.

#include "kernels/imaging.h"

namespace hpe::kernels {

struct vector3 {
  float x, y, z;
};
HPE_IMAGING_BOTH vector3 operator+(vector3 a, vector3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
HPE_IMAGING_BOTH vector3 operator-(vector3 a, vector3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
HPE_IMAGING_BOTH vector3 operator*(float s, vector3 a) { return {s * a.x, s * a.y, s * a.z}; }
HPE_IMAGING_BOTH float dot(vector3 a, vector3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
HPE_IMAGING_BOTH vector3 unit(vector3 a) { return (1 / sqrtf(dot(a, a))) * a; }

struct sphere {
  vector3 centre, velocity, colour;
  float radius, mirror, spare;
};

/// The number of spheres in a scene. With 282 spheres, a scene has 13548 bytes, like the scene of Schaa and Kaeli. The
/// spheres stay in the cube from -1 to 1 along each axis.
inline constexpr int32_t spheres = 282;
struct scene {
  vector3 light;
  sphere all[spheres];
};
static_assert(sizeof(scene) == 13548);

/// Computes `part` rows of pixels: first, first + distance, ... The lowest byte of a pixel is red, the next green, the
/// third blue.
struct trace_rays {
  const scene* state;
  uint32_t* pixels;  // part x width
  int32_t width, height, first, distance, part;

  [[nodiscard]] HPE_IMAGING_BOTH uint64_t count() const { return uint64_t(width) * uint64_t(part); }
  HPE_IMAGING_BOTH void element(uint64_t number) const {
    const int32_t x = int32_t(number % uint32_t(width));
    const int32_t y = first + int32_t(number / uint32_t(width)) * distance;
    const float scale = 2.0F / float(height);
    const vector3 eye{0, 0, -3};
    const vector3 ray =
        unit({(float(x) - 0.5F * float(width)) * scale, (0.5F * float(height) - float(y)) * scale, 1.8F});
    const vector3 seen = colour(eye, ray, 2);
    const auto byte = [](float v) { return uint32_t(lrintf(fminf(fmaxf(v, 0), 1) * 255.0F)); };
    pixels[number] = byte(seen.x) | byte(seen.y) << 8 | byte(seen.z) << 16;
  }

  /// Returns the number of the nearest sphere that a ray hits, and sets distance_to; returns -1 if the ray hits no
  /// sphere.
  [[nodiscard]] HPE_IMAGING_BOTH int32_t hit(vector3 from, vector3 ray, float& distance_to) const {
    int32_t nearest = -1;
    for (int32_t i = 0; i < spheres; ++i) {
      const vector3 to = state->all[i].centre - from;
      const float along = dot(to, ray), r = state->all[i].radius;
      const float inside = along * along - dot(to, to) + r * r;
      if (inside <= 0) continue;
      constexpr float near = 1e-3F;
      const float where = along - sqrtf(inside);
      if (where > near && (nearest < 0 || where < distance_to)) {
        nearest = i;
        distance_to = where;
      }
    }
    return nearest;
  }

  /// Returns the colour that a ray sees. The ray is followed to at most `hits` spheres; a reflection at the last one is
  /// not followed.
  [[nodiscard]] HPE_IMAGING_BOTH vector3 colour(vector3 from, vector3 ray, int32_t hits) const {
    vector3 seen{0, 0, 0};
    float share = 1;
    for (int32_t n = 0; n < hits; ++n) {
      float distance_to = 0;
      const int32_t i = hit(from, ray, distance_to);
      if (i < 0) return seen + (share * (0.3F + 0.2F * ray.y)) * vector3{0.6F, 0.8F, 1};
      const sphere& s = state->all[i];
      const vector3 place = from + distance_to * ray, out = unit(place - s.centre);
      const vector3 to_light = unit(state->light - place);
      float other = 0;
      const bool shaded = hit(place, to_light, other) >= 0;
      const float brightness = 0.15F + (shaded ? 0 : 0.85F * fmaxf(dot(out, to_light), 0));
      seen = seen + (share * (1 - s.mirror) * brightness) * s.colour;
      share *= s.mirror;
      from = place;
      ray = ray - (2 * dot(ray, out)) * out;
    }
    return seen;
  }
};

/// Returns a scene with spheres at pseudo-random places that depend on the seed.
inline scene first_scene(uint32_t seed) {
  uint32_t state = seed;
  const auto within = [&](float least, float most) {
    state = state * 1664525U + 1013904223U;
    return least + (most - least) * float(state >> 8) * 0x1p-24F;
  };
  scene s{};
  s.light = {-4, 5, -4};
  for (sphere& one : s.all) {
    one.centre = {within(-1, 1), within(-1, 1), within(-1, 1)};
    one.velocity = {within(-0.02F, 0.02F), within(-0.02F, 0.02F), within(-0.02F, 0.02F)};
    one.colour = {within(0.3F, 1), within(0.3F, 1), within(0.3F, 1)};
    one.radius = within(0.03F, 0.12F);
    one.mirror = within(0, 0.6F);
  }
  return s;
}

/// Moves all spheres by one frame; spheres bounce off the sides of the cube.
inline void move_spheres(scene& s) {
  const auto bounce = [](float& place, float& speed) {
    place += speed;
    if (fabsf(place) > 1) speed = -copysignf(speed, place);
  };
  for (sphere& one : s.all) {
    bounce(one.centre.x, one.velocity.x);
    bounce(one.centre.y, one.velocity.y);
    bounce(one.centre.z, one.velocity.z);
  }
}

}  // namespace hpe::kernels
