#include "apps/rtm/keep_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>

#include "apps/command_line/program.h"
#include "apps/rtm/keep/revolve.h"
#include "apps/rtm/keep/sink.h"

namespace hpe::rtm {

namespace {

/// The fraction of the free memory that kept fields may use; records and the runtime need the rest.
constexpr double usable = 0.9;

double seconds_of(const decomposition& parts, const std::function<void()>& work) {
  parts.synchronize();
  const auto begin = std::chrono::steady_clock::now();
  work();
  parts.synchronize();
  return std::max(1e-9, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

/// Returns aligned memory whose pages exist, because every byte has been written.
std::unique_ptr<std::uint8_t, decltype(&std::free)> written_memory(std::size_t bytes) {
  std::unique_ptr<std::uint8_t, decltype(&std::free)> memory(
      static_cast<std::uint8_t*>(std::aligned_alloc(sector, bytes)), &std::free);
  std::fill_n(memory.get(), bytes, std::uint8_t{1});
  return memory;
}

double free_on_devices(const history_shape& shape) {
  double least = HUGE_VAL;
  for (int d = 0; d < shape.parts.devices(); ++d)
    least = std::min(least, static_cast<double>(device_info(shape.parts.device(d)).memory_free));
  return usable * least;
}

double free_in(const std::string& folder) {
  std::error_code unknown;
  const auto space = std::filesystem::space(folder.empty() ? "." : folder, unknown);
  return unknown ? 0 : static_cast<double>(space.available);
}

std::string gib(double bytes) { return fmt::format("{:.2f} GiB", bytes / (1 << 30)); }

/// Adds to `o` the bytes that `items` items take on devices, on the host or on disk.
void add_room(keep_option& o, std::int64_t items, const item_bytes& item) {
  const std::int64_t slots = slots_of(o.how.where, items, item.on_devices);
  const double kept = static_cast<double>(items) * static_cast<double>(item.kept);
  o.on_device += static_cast<double>(slots) * static_cast<double>(item.on_one_device);
  if (o.how.where == keep_place::host) o.on_host = kept;
  if (o.how.where == keep_place::disk) o.on_disk = kept;
}

/// Returns the rate of the slowest copy between a device and a place, in bytes per second; infinity for device memory.
double rate_to(keep_place where, bool packed, const keep_rates& r) {
  if (where == keep_place::device) return HUGE_VAL;
  double rate = where == keep_place::disk ? std::min(r.link, r.disk) : r.link;
  if (packed) rate = std::min(rate, r.pack);
  return std::max(rate, 1.0);
}

keep_option fields_in(keep_place where, const history_shape& shape, const keeping& wanted, const keep_rates& r) {
  keep_option o;
  o.how = wanted;
  o.how.how = keep_method::fields;
  o.how.where = where;
  const item_bytes item = bytes_of_field(shape, wanted);
  add_room(o, shape.fields(), item);
  const auto fields = static_cast<double>(shape.fields()), steps = static_cast<double>(shape.steps);
  o.seconds = 2 * std::max(steps * r.step + fields * r.keep,
                           fields * static_cast<double>(item.kept) / rate_to(where, wanted.zfp, r));
  return o;
}

keep_option boundary_in(keep_place where, const history_shape& shape, const keeping& wanted, const keep_rates& r) {
  keep_option o;
  o.how = wanted;
  o.how.how = keep_method::boundary;
  o.how.where = where;
  const item_bytes item = bytes_of_boundary(shape), state = bytes_of_checkpoint(shape);
  add_room(o, shape.steps, item);
  o.on_device += static_cast<double>(state.on_one_device + bytes_of_field(shape, {}).on_one_device);
  const auto fields = static_cast<double>(shape.fields()), steps = static_cast<double>(shape.steps);
  const double moved = steps * static_cast<double>(item.kept) / rate_to(where, false, r);
  o.seconds = std::max(steps * (r.step + r.boundary), moved) +
              std::max(steps * (2 * r.step + r.boundary) + 2 * fields * r.keep, moved);
  return o;
}

keep_option checkpoints_on_devices(const history_shape& shape, const keeping& wanted, const keep_rates& r) {
  keep_option o;
  o.how = wanted;
  o.how.how = keep_method::checkpoints;
  o.how.where = keep_place::device;
  const auto state = static_cast<double>(bytes_of_checkpoint(shape).on_one_device);
  const double others = state + static_cast<double>(bytes_of_field(shape, {}).on_one_device);
  if (wanted.checkpoints == 0)
    o.how.checkpoints = static_cast<std::int64_t>(
        std::clamp((free_on_devices(shape) - others) / state, 1.0, static_cast<double>(shape.fields())));
  o.how.checkpoints = std::min(o.how.checkpoints, shape.fields());
  o.on_device = others + static_cast<double>(o.how.checkpoints) * state;
  const auto fields = static_cast<double>(shape.fields()), steps = static_cast<double>(shape.steps);
  const auto repeated = static_cast<double>(revolve(shape.fields(), o.how.checkpoints).repeated() * shape.keep_every);
  o.seconds = (2 * steps + repeated) * r.step + 2 * fields * r.keep;
  return o;
}

}  // namespace

keep_rates measure_rates(propagator<float>& wave, const medium<float>& m, const stack<float>& onto,
                         const history_shape& shape, const keeping& wanted) {
  constexpr std::size_t most = 256 << 20, written = 64 << 20;
  constexpr int repeats = 4;
  keep_rates r;
  const std::int64_t bits = wanted.zfp ? 0 : wanted.bits;
  const kept_fields<float> one(shape.cells, shape.parts, 1, bits);
  wave.reset();
  const auto steps = [&] {
    for (int i = 0; i < repeats; ++i) wave.step(m, nullptr, nullptr, 0);
  };
  const auto keeps = [&] {
    for (int i = 0; i < repeats; ++i) {
      wave.keep(one, 0);
      wave.correlate(one, 0, onto);
    }
  };
  steps();  // loads the kernels
  keeps();
  r.step = seconds_of(shape.parts, steps) / repeats;
  r.keep = seconds_of(shape.parts, keeps) / (2 * repeats);
  const double moved = static_cast<double>(bytes_of_field(shape, wanted).on_devices);
  r.boundary = r.keep * static_cast<double>(bytes_of_boundary(shape).on_devices) / moved;

  const std::size_t bytes = std::min(one.room(0, 0).size(), most) / sector * sector;
  if (bytes > 0) {
    const array<std::uint8_t> host(bytes, on_host());
    const auto copies = [&] { copy(host.data(), one.room(0, 0).data(), bytes); };
    copies();
    r.link = static_cast<double>(bytes) / seconds_of(shape.parts, copies) * shape.parts.devices();
  }
  const auto memory = written_memory(written);
  try {
    const std::unique_ptr<sink> file = file_in(wanted.folder, written);
    r.disk = static_cast<double>(written) / static_cast<double>(shape.at_once) /
             seconds_of(shape.parts, [&] { file->write(memory.get(), written, 0); });
  } catch (const bad_input&) {
    r.disk = 0;  // the list of methods then states that the folder has too little space
  }
  if (wanted.zfp && wanted.bits != 0) {
    constexpr std::int64_t edge = 128;
    constexpr std::size_t cells = static_cast<std::size_t>(edge) * edge * edge;
    const std::unique_ptr<codec> zfp = make_zfp({{edge, edge, edge}}, wanted.bits);
    std::vector<std::uint8_t> packed(zfp->packed_bytes(0));
    const std::span<std::uint8_t> part(memory.get(), cells * sizeof(float));
    const double both = seconds_of(shape.parts, [&] {
      zfp->pack(0, part, packed.data());
      zfp->unpack(0, packed.data(), part);
    });
    r.pack = 2 * static_cast<double>(wanted.bits) / 8 * static_cast<double>(cells) / both;
  }
  return r;
}

std::vector<keep_option> keep_options(const history_shape& shape, const keeping& wanted, const keep_rates& rates) {
  std::vector<keep_option> all;
  for (const keep_place where : {keep_place::device, keep_place::host, keep_place::disk})
    all.push_back(fields_in(where, shape, wanted, rates));
  all.push_back(checkpoints_on_devices(shape, wanted, rates));
  for (const keep_place where : {keep_place::device, keep_place::host, keep_place::disk})
    all.push_back(boundary_in(where, shape, wanted, rates));
  const auto sharers = static_cast<double>(shape.at_once);
  const double on_devices = free_on_devices(shape), on_host = usable * command_line::free_on_host() / sharers;
  const double on_disk = free_in(wanted.folder) / sharers;
  for (keep_option& o : all) {
    const bool fields = o.how.how == keep_method::fields;
    const bool packed_on_devices = fields && o.how.where == keep_place::device && wanted.zfp;
    const bool method_wanted =
        wanted.how == keep_method::automatic ? o.how.how != keep_method::boundary : wanted.how == o.how.how;
    o.as_requested =
        method_wanted && !packed_on_devices && (wanted.where == keep_place::automatic || wanted.where == o.how.where);
    if (shape.cut && !fields)
      o.missing = "with a grid that is cut over processes, only fields can be kept";
    else if (packed_on_devices)
      o.missing = "zfp compresses on the host, not on devices";
    else if (o.on_device > on_devices)
      o.missing = fmt::format("{} are needed on each device, but only {} are free", gib(o.on_device), gib(on_devices));
    else if (o.on_host > on_host)
      o.missing = fmt::format("{} are needed on the host, but only {} are free", gib(o.on_host), gib(on_host));
    else if (o.on_disk > on_disk)
      o.missing =
          fmt::format("{} are needed on disk, but only {} are free in {}", gib(o.on_disk), gib(on_disk), wanted.folder);
  }
  return all;
}

const keep_option& best_of(const std::vector<keep_option>& options, const keeping& wanted) {
  const keep_option* best = nullptr;
  std::string reasons;
  for (const keep_option& o : options) {
    if (!o.as_requested) continue;
    if (!o.missing.empty())
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", name_of(o.how), o.missing);
    else if (best == nullptr || o.seconds < best->seconds)
      best = &o;
  }
  if (best != nullptr) return *best;
  throw bad_input(fmt::format(
      "the source's wave field cannot be kept: {}. Keep fewer fields (keep_every), compress them (compress), {}, use "
      "more "
      "devices, or give soft devices more memory (HPE_SOFT_MEMORY)",
      reasons.empty() ? "checkpoints are kept in device memory only" : reasons,
      wanted.how == keep_method::automatic && wanted.where == keep_place::automatic
          ? "name a folder with more space (folder)"
          : "let hpe choose the place (\"auto\")"));
}

keeping choose_keeping(propagator<float>& wave, const medium<float>& m, const stack<float>& onto,
                       const history_shape& shape, const keeping& wanted) {
  const std::vector<keep_option> unmeasured = keep_options(shape, wanted, {});
  const keep_option& first = best_of(unmeasured, wanted);
  const auto possible = std::count_if(unmeasured.begin(), unmeasured.end(),
                                      [](const keep_option& o) { return o.as_requested && o.missing.empty(); });
  // Fields in device memory need neither copies nor repeated steps, so no other method is faster.
  if (possible == 1 || shape.cut || (first.how.how == keep_method::fields && first.how.where == keep_place::device))
    return first.how;
  return best_of(keep_options(shape, wanted, measure_rates(wave, m, onto, shape, wanted)), wanted).how;
}

std::string explain_keeping(const std::vector<keep_option>& options, const keeping& wanted,
                            const history_shape& shape) {
  std::string all = fmt::format("{} steps, {} fields\n{:24} {:>12} {:>12} {:>12} {:>12}\n", shape.steps, shape.fields(),
                                "", "a device", "host", "disk", "a shot");
  const keep_option* best = nullptr;
  std::string refusal;
  try {
    best = &best_of(options, wanted);
  } catch (const bad_input& e) {
    refusal = std::string(e.what()) + "\n";
  }
  for (const keep_option& o : options)
    all += fmt::format("{:24} {:>12} {:>12} {:>12} {:>10.2f} s{}\n", name_of(o.how), gib(o.on_device), gib(o.on_host),
                       gib(o.on_disk), o.seconds,
                       &o == best          ? "  chosen"
                       : o.missing.empty() ? ""
                                           : "  not possible: " + o.missing);
  return all + refusal;
}

std::string name_of(const keeping& k) {
  if (k.how == keep_method::checkpoints) return fmt::format("{} checkpoints", k.checkpoints);
  const char* const where = k.where == keep_place::device ? "on devices"
                            : k.where == keep_place::host ? "on the host"
                                                          : "on disk";
  return fmt::format("{} {}", k.how == keep_method::boundary ? "boundary" : "fields", where);
}

}  // namespace hpe::rtm
