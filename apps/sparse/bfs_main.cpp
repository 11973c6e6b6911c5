#include <fmt/core.h>

#include <optional>

#include "apps/command_line/program.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/files/element_file.h"
#include "apps/sparse/breadth_first.h"
#include "apps/sparse/sparse_main.h"

namespace hpe::sparse {

namespace {

struct request {
  bool help = false, quiet = false, no_check = false;
  std::uint64_t vertices = std::uint64_t{1} << 18, edges = 8, source = 0;
  bool source_given = false;
  std::string file, output, json;
  std::int64_t devices = 0, repeats = 5;
};

std::vector<command_line::option> options_of(request& r) {
  using namespace command_line;
  return {
      {"SIZE|FILE", "",
       "vertices of a random graph, as in 1000 or 2^24 (2^18); or a graph in the text format of Rodinia, or of "
       "Matrix Market",
       to_size_or_file(to_whole(r.vertices, 1), r.file)},
      {"--edges", "K", "edges from a vertex of a random graph, on average (8)", to_whole(r.edges, 1, 1 << 20)},
      {"--source", "V", "the vertex to begin with (the source in the file, else 0)",
       [&r](const std::string& name, const std::string& text) {
         to_whole(r.source)(name, text);
         r.source_given = true;
       }},
      {"--output", "FILE", "write the level of each vertex to this file, .npy or raw (u32; 4294967295: not reached)",
       to_text(r.output)},
      devices_option(r.devices),
      repeats_option(r.repeats),
      {"--no-check", "", "do not compare the levels with levels that the host computes", to_flag(r.no_check)},
      json_option(r.json),
      quiet_option(r.quiet),
      help_option(r.help)};
}

std::string help_text() {
  request defaults;
  return fmt::format(
      "Usage: hpe bfs [options] [SIZE|FILE]\n\n"
      "Searches a graph breadth-first, on the first device: the level of a vertex is the number of edges on a shortest "
      "path\n"
      "from the source.\n\n"
      "{}\n"
      "Examples:\n"
      "  hpe bfs 2^22 --edges 16\n"
      "  hpe bfs graph.txt --source 5 --output levels.npy\n",
      command_line::lines_of_help(options_of(defaults)));
}

std::vector<std::uint32_t> levels_on_host(const compressed_rows<float>& graph, std::uint64_t source) {
  std::vector<std::uint32_t> levels(graph.rows, kernels::graph_unreached), queue{static_cast<std::uint32_t>(source)};
  levels[source] = 0;
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const std::uint32_t v = queue[at];
    for (std::uint32_t k = graph.first[v]; k < graph.first[v + 1]; ++k) {
      const std::uint32_t n = graph.column[k];
      if (levels[n] != kernels::graph_unreached) continue;
      levels[n] = levels[v] + 1;
      queue.push_back(n);
    }
  }
  return levels;
}

int run(request& r) {
  check_one_device(r.devices);
  command_line::check_outputs({r.output, r.json}, {r.file});
  const random_shape shape{r.vertices, r.edges - r.edges / 2, r.edges + r.edges / 2};
  if (r.file.empty()) {
    const double bytes = 4.0 * static_cast<double>(elements_of(shape)) + 20.0 * static_cast<double>(r.vertices);
    command_line::check_room(fmt::format("a graph of {} vertices", r.vertices), {bytes, 2 * bytes}, 1);
  }
  std::optional<contents> file;
  if (!r.file.empty()) {
    file = read_file(r.file);
    if (file->rows != file->columns)
      throw bad_input(fmt::format("{} has {} rows and {} columns; a graph needs as many rows as columns", r.file,
                                  file->rows, file->columns));
    if (!r.source_given) r.source = file->source;
  }
  const compressed_rows<float> graph = file ? compress<float>(*file, 0) : random_rows<float>(shape, false, 0);
  breadth_first search(graph, 0);
  const double time = command_line::median_seconds(r.repeats, r.quiet, [&] { search.run(r.source); });
  const array<std::uint32_t>& levels = search.levels();
  if (!r.no_check && !std::equal(levels.begin(), levels.end(), levels_on_host(graph, r.source).begin())) {
    fmt::print(stderr, "hpe bfs: the levels are wrong\n");
    return command_line::failed;
  }
  if (!r.output.empty()) files::write(r.output, "u32", {levels.size()}, levels.data(), sizeof(std::uint32_t));
  std::uint64_t edges = 0;
  for (std::uint64_t v = 0; v < graph.rows; ++v)
    if (levels[v] != kernels::graph_unreached) edges += graph.first[v + 1] - graph.first[v];
  const std::string title =
      fmt::format("search of {} vertices and {} edges from vertex {}", graph.rows, graph.elements(), r.source);
  command_line::answer(
      {"hpe bfs",
       "searches a graph breadth-first",
       title,
       r.repeats,
       command_line::names_of_devices(1),
       {{"time", 1e3 * time, "ms"},
        {"edges a second", 1e-6 * static_cast<double>(edges) / time, "M/s"},
        {"greatest level", static_cast<double>(search.depth()), ""},
        {"vertices reached", static_cast<double>(search.reached()), ""}}},
      fmt::format("{} in {:.3f} ms: {} vertices reached, greatest level {}, {:.1f} million edges a second{}\n", title,
                  1e3 * time, search.reached(), search.depth(), 1e-6 * static_cast<double>(edges) / time,
                  r.no_check ? "" : "; the levels are right"),
      r.json, r.quiet);
  return 0;
}

}  // namespace

}  // namespace hpe::sparse

int bfs_main(int argc, char** argv) {
  using namespace hpe;
  return command_line::guarded("hpe bfs", [&] {
    sparse::request r;
    command_line::read(sparse::options_of(r), argc, argv);
    if (!r.help) return sparse::run(r);
    hpe::command_line::print_help(sparse::help_text());
    return 0;
  });
}
