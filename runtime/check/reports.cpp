// SARIF: https://docs.oasis-open.org/sarif/sarif/v2.1.0. A rule is a kind of finding.

#include "runtime/check/reports.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/log.h"
#include "runtime/base/options.h"
#include "runtime/base/own_process.h"
#include "runtime/check/json_object.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/os/output_file.h"

namespace hpe::check {

namespace {

json_object object_of(const finding_side& side) {
  json_object made;
  made.add("how", side.how).add("what", side.what).add_some("argument", side.argument);
  made.add_some("source", side.source).add("place", side.place).add_some("stream", side.stream);
  return made;
}

json_object object_of(const finding& f) {
  json_object made;
  made.add("kind", f.kind).add("count", f.count).add("sentence", f.sentence);
  if (f.bytes != 0) made.add("address", fmt::format("{:#x}", f.address)).add("offset", f.offset).add("bytes", f.bytes);
  if (f.allocation)
    made.add("allocation", json_object()
                               .add("bytes", f.allocation_bytes)
                               .add("call", f.allocation->what)
                               .add("place", f.allocation->place));
  if (f.now) made.add("now", object_of(*f.now));
  if (f.earlier) made.add("earlier", object_of(*f.earlier));
  made.add_some("missing", f.missing);
  return made;
}

/// A place of a finding, and what is there.
struct told_place {
  std::string place;
  std::string what;
};

/// The places of a finding: first the one where the program must change.
std::vector<told_place> places_of(const finding& f) {
  std::vector<told_place> all;
  const auto add = [&](const std::optional<finding_side>& side, std::string_view name) {
    if (!side) return;
    if (!side->source.empty()) all.push_back({side->source, fmt::format("{}: {} by {}", name, side->how, side->what)});
    if (!side->place.empty()) all.push_back({side->place, fmt::format("{}: {}, called here", name, side->what)});
  };
  add(f.now, "now");
  add(f.earlier, "earlier");
  add(f.allocation, "memory");
  return all;
}

std::string uri_of(std::string_view path) {
  std::string result;
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("/-._~+@,=").find(c) != std::string_view::npos;
    result += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

constexpr std::string_view root_name = "%SRCROOT%";

/// A location of SARIF. A place that is no line of a file, such as a function, is a logical location.
json_object location_of(const told_place& at, const std::string& root) {
  json_object made;
  const std::size_t colon = at.place.rfind(':');
  const std::string line = colon == std::string::npos ? "" : at.place.substr(colon + 1);
  const bool is_line = !line.empty() && line != "0" && line.find_first_not_of("0123456789") == std::string::npos;
  if (is_line) {
    const std::string file = at.place.substr(0, colon);
    json_object artifact;
    if (!root.empty() && file.starts_with(root + "/"))
      artifact.add("uri", uri_of(file.substr(root.size() + 1))).add("uriBaseId", root_name);
    else
      artifact.add("uri", (file.starts_with("/") ? "file://" : "") + uri_of(file));
    made.add("physicalLocation",
             json_object().add("artifactLocation", artifact).add("region", json_object().add_json("startLine", line)));
  } else {
    made.add_json("logicalLocations", json_array({json_object().add("fullyQualifiedName", at.place).text()}));
  }
  made.add("message", json_object().add("text", at.what));
  return made;
}

/// Equal for the same finding in other runs, also if other lines of the files have changed.
std::string fingerprint_of(const finding& f) {
  std::string text = f.kind;
  const auto add = [&](std::string_view part) { text.append("|").append(part); };
  for (const auto& side : {f.now, f.earlier, f.allocation}) {
    if (!side) continue;
    add(side->how);
    add(side->what);
    for (const std::string& place : {side->source, side->place}) {
      const std::size_t slash = place.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
      add(std::string_view(place).substr(begin, place.rfind(':') - begin));
    }
  }
  fnv1a hash;
  for (const char c : text) hash.add(static_cast<unsigned char>(c));
  return fmt::format("{:016x}", hash.value());
}

json_object text_object(std::string_view text) { return json_object().add("text", text); }

std::string rule_of(const finding_kind& kind) {
  json_object made;
  made.add("id", kind.name)
      .add("shortDescription", text_object(kind.title))
      .add("help", text_object(kind.help))
      .add("defaultConfiguration", json_object().add("level", kind.is_error ? "error" : "warning"));
  return made.text();
}

std::string result_of(const finding& f, const std::string& root, const std::string& fingerprint) {
  const auto& kinds = kinds_of_findings();
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const finding_kind& k) { return k.name == f.kind; });
  json_object made;
  made.add("ruleId", f.kind);
  if (kind != kinds.end())
    made.add("ruleIndex", kind - kinds.begin()).add("level", kind->is_error ? "error" : "warning");
  made.add("message",
           text_object(f.missing.empty() ? f.sentence : fmt::format("{}. Missing: {}.", f.sentence, f.missing)));
  std::vector<std::string> first, others;
  for (const told_place& each : places_of(f)) {
    json_object location = location_of(each, root);
    if (first.empty())
      first.push_back(location.text());
    else
      others.push_back(location.add("id", others.size() + 1).text());
  }
  made.add_json("locations", json_array(first));
  if (!others.empty()) made.add_json("relatedLocations", json_array(others));
  made.add("partialFingerprints", json_object().add("hpeFinding/v1", fingerprint)).add("occurrenceCount", f.count);
  made.add("properties", json_object().add("finding", object_of(f)));
  return made.text();
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  HPE_REQUIRE(file.good(), HPE_ERROR_INVALID_ARGUMENT, "HPE_CHECK_IGNORE: the file {} cannot be read", path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

listed_text json_list(const std::vector<finding>& all, const char* rank) {
  std::vector<std::string> objects;
  for (const finding& each : all) objects.push_back(object_of(each).text());
  json_object made;
  if (rank != nullptr) made.add("rank", std::strtoul(rank, nullptr, 10));
  return {made.add_json("findings", json_array({}, true)).text() + "\n", std::move(objects)};
}

std::vector<std::string> results_of(const std::vector<finding>& all, const std::string& root) {
  std::vector<std::string> results;
  std::map<std::string, int> repeats;  // findings with equal fingerprints get numbers
  for (const finding& each : all) {
    const std::string print = fingerprint_of(each);
    const int number = ++repeats[print];
    results.push_back(result_of(each, root, number == 1 ? print : fmt::format("{}:{}", print, number)));
  }
  return results;
}

listed_text sarif_list(const std::vector<finding>& all, const std::string& root) {
  std::vector<std::string> rules;
  for (const finding_kind& each : kinds_of_findings()) rules.push_back(rule_of(each));
  const json_object driver = json_object().add("name", "hpe check").add_json("rules", json_array(rules, true));
  const json_object bases =
      json_object().add(root_name, json_object().add("uri", fmt::format("file://{}/", uri_of(root))));
  json_object run;
  run.add("tool", json_object().add("driver", driver))
      .add("originalUriBaseIds", bases)
      .add("columnKind", "utf16CodeUnits");
  run.add_json("results", json_array({}, true));
  json_object made;
  made.add("$schema", "https://json.schemastore.org/sarif-2.1.0.json")
      .add("version", "2.1.0")
      .add_json("runs", json_array({run.text()}));
  return {made.text() + "\n", results_of(all, root)};
}

// Opens the regular file at a path, which is created if it is missing, and locks it until the result is destroyed.
// Returns an empty descriptor if the path leads to no regular file that can be read.
os::file_descriptor locked_file(const std::string& path) {
  constexpr ::mode_t permissions = 0666;  // without those of umask
  struct ::stat named {
  }, opened{};
  if (::stat(path.c_str(), &named) == 0 && !S_ISREG(named.st_mode)) return {};  // opening a FIFO awaits its writer
  for (;;) {
    os::file_descriptor file(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, permissions));
    if (!file) return {};
    while (::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
    if (::fstat(file.get(), &opened) != 0 || ::stat(path.c_str(), &named) != 0) return {};
    // The earlier owner of the lock may have replaced the file.
    if (opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) return file;
  }
}

// Returns the text of a file if it was written after a time, in nanoseconds since 1970.
std::string text_since(const std::string& path, std::uint64_t since) {
  struct ::stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  const auto seconds = static_cast<std::uint64_t>(found.st_mtim.tv_sec);
  const std::uint64_t written = seconds * 1'000'000'000 + static_cast<std::uint64_t>(found.st_mtim.tv_nsec);
  return written > since ? read_text(path) : std::string();
}

// Replaces the file's text by add_to(earlier). `earlier` is the text that other processes of this run have written,
// which may be processes that this one has started or that have executed its program; empty if there is none. `since`:
// when the run began.
template <class AddTo>
void write_file(const char* option, const std::string& chosen, std::uint64_t since, const AddTo& add_to) {
  if (chosen.empty()) return;
  const std::string path = name_of_output(chosen);
  try {
    const os::file_descriptor locked = locked_file(path);
    os::write_file(path, add_to(locked ? text_since(path, since) : std::string()));
  } catch (const error&) {
    log(log_level::error, "HPE_CHECK: the file {} of {} cannot be written", path, option);
  }
}

}  // namespace

std::string json_of(const std::vector<finding>& all, const char* rank) { return json_list(all, rank).text(); }

std::string sarif_of(const std::vector<finding>& all, const std::string& root) { return sarif_list(all, root).text(); }

findings_report::findings_report(const options& chosen)
    : json_(chosen.check_json),
      sarif_(chosen.check_sarif),
      since_(chosen.check_since != 0 ? chosen.check_since : start_of_own_process()),
      status_(static_cast<int>(chosen.check_status)),
      process_(::getpid()) {
  constexpr std::uint64_t most_status = 255;
  HPE_REQUIRE(chosen.check_status <= most_status, HPE_ERROR_INVALID_ARGUMENT,
              "HPE_CHECK_STATUS is {}; an exit status is a number from 0 to {}", chosen.check_status, most_status);
  if (!chosen.check_ignore.empty()) ignored_ = ignored_findings(read_text(chosen.check_ignore));
}

bool findings_report::is_of_this_process() const { return process_ == ::getpid(); }

int findings_report::end_process(int status, const std::vector<finding>& all,
                                 std::span<const std::string_view> notes) const {
  write(all, notes);
  return !all.empty() && status == 0 ? status_ : status;
}

void findings_report::write(const std::vector<finding>& all, std::span<const std::string_view> notes) const {
  const char* const rank = rank_by_environment();
  constexpr std::string_view head = "hpe check: ";
  const std::string own_head = rank == nullptr ? std::string(head) : fmt::format("hpe check, rank {}: ", rank);
  std::string text;
  for (const finding& each : all) text += own_head + text_of(each).substr(head.size());
  text += own_head + (all.empty() ? "no findings\n" : fmt::format("{} findings\n", all.size()));
  for (const std::string_view note : notes) text += fmt::format("{}{}\n", own_head, note);
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  write_file("HPE_CHECK_JSON", json_, since_,
             [&](const std::string& earlier) { return json_list(all, rank).added_to(earlier); });
  write_file("HPE_CHECK_SARIF", sarif_, since_, [&](const std::string& earlier) {
    listed_text own = sarif_list(all, std::filesystem::current_path().string());
    // The file names of an earlier process in another folder are relative to that folder.
    if (!own.begins(earlier)) own.elements = results_of(all, "");
    return own.added_to(earlier);
  });
}

}  // namespace hpe::check
