// The forms of a finding: text, JSON and SARIF, with each member present and absent.

#include "runtime/check/reports.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/options.h"
#include "tests/temporary_folder.h"

namespace hpe::check {
namespace {

finding full() {
  finding f;
  f.kind = "stream-race";
  f.sentence = "two \"writes\"";
  f.missing = "a wait";
  f.address = 0x1010;
  f.bytes = 4;
  f.offset = 16;
  f.allocation = finding_side{"", "cudaMalloc", 0, "", "/src/a b/m.cu:7", 0};
  f.allocation_bytes = 256;
  f.now = finding_side{"write", "kernel add(float*)", 2, "/src/k.cu:30", "/src/m.cu:12", 5};
  f.earlier = finding_side{"read", "cudaMemcpyAsync", 0, "", "main", 0};
  f.count = 3;
  return f;
}

finding plain() {
  finding f;
  f.kind = "leak";
  f.sentence = "bytes remain";
  return f;
}

TEST(Reports, ATextNamesTheMembersThatThereAre) {
  EXPECT_EQ(text_of(full()),
            "hpe check: stream-race: two \"writes\" (3 times)\n"
            "  now:     write by kernel add(float*), argument 2, at /src/k.cu:30; called at /src/m.cu:12 on stream 5\n"
            "  earlier: read by cudaMemcpyAsync; called at main\n"
            "  memory:  byte 16 and the 3 bytes behind it of the 256 bytes that cudaMalloc allocated at "
            "/src/a b/m.cu:7 (address 0x1010)\n"
            "  missing: a wait\n");
  EXPECT_EQ(text_of(plain()), "hpe check: leak: bytes remain\n");
  finding f = plain();
  f.address = 0x40;
  f.bytes = 2;
  EXPECT_EQ(text_of(f), "hpe check: leak: bytes remain\n  memory:  2 bytes at address 0x40\n");
  f.allocation = finding_side{"", "hpeMalloc", 0, "", "main", 0};
  f.allocation_bytes = 9;
  f.bytes = 1;
  EXPECT_EQ(text_of(f),
            "hpe check: leak: bytes remain\n  memory:  byte 0 of the 9 bytes that hpeMalloc allocated at main (address "
            "0x40)\n");
  f.bytes = 0;
  f.count = 2;
  EXPECT_EQ(text_of(f),
            "hpe check: leak: bytes remain (2 times)\n  memory:  the 9 bytes that hpeMalloc allocated at main (address "
            "0x40)\n");
}

TEST(Reports, JsonHasTheMembersThatThereAre) {
  const std::string text = json_of({full(), plain()}, "11");
  for (const char* const part :
       {R"("rank":11)", R"("kind":"stream-race")", R"("count":3)", R"("sentence":"two \"writes\"")",
        R"("address":"0x1010")", R"("offset":16)", R"("bytes":4)", R"("call":"cudaMalloc")",
        R"("place":"/src/a b/m.cu:7")", R"("argument":2)", R"("source":"/src/k.cu:30")", R"("stream":5)",
        R"("missing":"a wait")", R"("kind":"leak")"}) {
    std::string without;  // spaces behind colons do not matter
    for (std::size_t n = 0; n < text.size(); ++n)
      if (text[n] != ' ' || n == 0 || text[n - 1] != ':') without += text[n];
    EXPECT_NE(without.find(part), std::string::npos) << part << '\n' << text;
  }
  const std::string least = json_of({plain()});
  for (const char* const name : {"rank", "address", "offset", "bytes\"", "allocation", "now", "earlier", "missing"})
    EXPECT_EQ(least.find(std::string("\"") + name), std::string::npos) << name << '\n' << least;
  EXPECT_EQ(json_of({full()}).find("\"argument\":0"), std::string::npos) << "an unknown argument is left out";
  EXPECT_EQ(json_of({full()}).find("\"stream\":0"), std::string::npos) << "stream 0 is left out";
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Reports, SarifHasThePlacesInTheOrderInWhichTheProgramMustChange) {
  std::string text = sarif_of({full(), plain()}, "/src");
  std::erase(text, ' ');
  std::erase(text, '\n');
  const auto position = [&](const std::string& part) {
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part << '\n' << text;
    return at;
  };
  const std::size_t source = position(R"("uri":"k.cu","uriBaseId":"%SRCROOT%"},"region":{"startLine":30})");
  const std::size_t related = position(R"("relatedLocations")");
  const std::size_t call = position(R"("uri":"m.cu","uriBaseId":"%SRCROOT%"},"region":{"startLine":12})");
  const std::size_t earlier = position(R"("fullyQualifiedName":"main")");
  const std::size_t memory = position(R"("uri":"a%20b/m.cu","uriBaseId":"%SRCROOT%"},"region":{"startLine":7})");
  EXPECT_LT(source, related);
  EXPECT_LT(related, call);
  EXPECT_LT(call, earlier);
  EXPECT_LT(earlier, memory);
  for (const char* const part :
       {R"~("text":"now:writebykerneladd(float*)")~", R"("text":"now:kerneladd(float*),calledhere")",
        R"("text":"earlier:cudaMemcpyAsync,calledhere")", R"("text":"memory:cudaMalloc,calledhere")", R"("id":1)",
        R"("id":2)", R"("id":3)", R"("uri":"file:///src/")", R"("ruleId":"stream-race","ruleIndex":0)",
        R"("level":"error")", R"("ruleId":"leak","ruleIndex":12,"level":"warning")", R"("occurrenceCount":3)",
        R"~("text":"two\"writes\".Missing:await.")~", R"("text":"bytesremain")", R"("version":"2.1.0")"})
    position(part);
  EXPECT_EQ(count_of(text, "relatedLocations"), 1U) << "the second finding has no places";
  EXPECT_EQ(count_of(text, R"("id":4)"), 0U);
}

TEST(Reports, SarifTellsFilesOutsideOfTheFolderFromWordsWithColons) {
  const auto place = [](const std::string& name) {
    finding f = plain();
    f.now = finding_side{"read", "x", 0, "", name, 0};
    std::string text = sarif_of({f}, "/src");
    std::erase(text, ' ');
    std::erase(text, '\n');
    return text.substr(text.find("\"results\""));
  };
  EXPECT_NE(place("/srcs/a.cu:3").find(R"("uri":"file:///srcs/a.cu"})"), std::string::npos) << place("/srcs/a.cu:3");
  EXPECT_NE(place("a.cu:3").find(R"("uri":"a.cu"})"), std::string::npos);
  EXPECT_NE(place("/z%Z09@+,=~_-.cu:10").find("%25Z09@+,=~_-.cu"), std::string::npos) << place("/z%Z09@+,=~_-.cu:10");
  for (const char* const word : {"f()", "a.cu:0", "a.cu:", "std::f", "a.cu:3x", "main+0x10"})
    EXPECT_NE(place(word).find("fullyQualifiedName"), std::string::npos) << word;
}

TEST(Reports, FingerprintsAreEqualForEqualFindingsInOtherLines) {
  const auto print = [](const finding& f, int which = 0) {
    const std::string text = sarif_of({f, f}, "/src");
    std::size_t at = 0;
    for (int n = 0; n <= which; ++n) at = text.find("hpeFinding/v1", at + 1);
    const std::size_t begin = text.find('"', text.find(':', at)) + 1;
    return text.substr(begin, text.find('"', begin) - begin);
  };
  const std::string first = print(full());
  EXPECT_EQ(first.size(), 16U);
  EXPECT_EQ(print(full(), 1), first + ":2") << "the second finding with this fingerprint";
  finding moved = full();
  moved.now->place = "/elsewhere/m.cu:99";
  moved.now->source = "/elsewhere/k.cu:31";
  moved.sentence = "other words";
  EXPECT_EQ(print(moved), first);
  for (const auto change :
       {+[](finding& f) { f.kind = "leak"; }, +[](finding& f) { f.now->how = "read"; },
        +[](finding& f) { f.now->what = "kernel b"; }, +[](finding& f) { f.earlier.reset(); },
        +[](finding& f) { f.now->place = "/src/n.cu:12"; }, +[](finding& f) { f.now->source = "/src/n.cu:30"; },
        +[](finding& f) { f.allocation->what = "hpeMalloc"; }}) {
    finding other = full();
    change(other);
    EXPECT_NE(print(other), first);
  }
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Reports, WhatIsToBeIgnoredMatchesTheKindAndAnyText) {
  const ignored_findings rules("# comment\n\nstream-race add(float # kernel\n* bytes remain\nleak \t m.cu:7 \r\n");
  EXPECT_TRUE(rules.contains(full()));
  EXPECT_TRUE(rules.contains(plain()));
  finding f = full();
  f.now.reset();
  EXPECT_FALSE(rules.contains(f));
  f.kind = "leak";
  EXPECT_TRUE(rules.contains(f)) << "the place of the allocation";
  for (const char* const text : {"two \"wr", "k.cu:30", "m.cu:12", "cudaMemcpyAsync", "main", "cudaMalloc", "a b/m.cu"})
    EXPECT_TRUE(full().matches("stream-race", text)) << text;
  EXPECT_FALSE(full().matches("leak", "two"));
  EXPECT_FALSE(full().matches("*", "nothing"));
}

TEST(Reports, AreWrittenWhereTheOptionsSayAndEndTheProcess) {
  const temporary_folder place;
  options chosen;
  chosen.check_json = place / "all.%p.json";
  chosen.check_sarif = place / "all.sarif";
  chosen.check_status = 255;
  const auto ended = [&](int status, const std::vector<finding>& all, const options& how) {
    ::unsetenv("OMPI_COMM_WORLD_RANK");
    const std::string_view notes[] = {"first note", "second note"};
    std::_Exit(findings_report(how).end_process(status, all, notes));
  };
  EXPECT_EXIT(ended(0, {plain(), full()}, chosen), testing::ExitedWithCode(255),
              "^hpe check: leak: bytes remain\nhpe check: stream-race(.|\n)*  missing: a wait\nhpe check: 2 findings\n"
              "hpe check: first note\nhpe check: second note\n$");
  EXPECT_EQ(content_of(place / "all.sarif").find("$schema") != std::string::npos, true);
  std::size_t files = 0;
  for (const auto& each : std::filesystem::directory_iterator(place.path()))
    if (each.path().extension() == ".json") {
      ++files;
      EXPECT_EQ(content_of(each.path()), json_of({plain(), full()}));
      EXPECT_EQ(each.path().string().find('%'), std::string::npos);
    }
  EXPECT_EQ(files, 1U);
  EXPECT_EXIT(ended(3, {plain()}, chosen), testing::ExitedWithCode(3), "1 findings") << "the program's own status";
  EXPECT_EXIT(ended(0, {}, chosen), testing::ExitedWithCode(0), "hpe check: no findings\nhpe check: first note");
  options quiet;
  quiet.check_status = 0;
  EXPECT_EXIT(ended(0, {plain()}, quiet), testing::ExitedWithCode(0), "1 findings");
  quiet.check_json = place / "no/such/folder.json";
  EXPECT_EXIT(ended(0, {plain()}, quiet), testing::ExitedWithCode(0),
              "the file .*folder.json of HPE_CHECK_JSON cannot be written");
  quiet.check_status = 256;
  EXPECT_THROW(findings_report{quiet}, error);
  quiet.check_status = 1;
  quiet.check_ignore = place / "none";
  EXPECT_THROW(findings_report{quiet}, error) << "a file that cannot be read";
  std::ofstream(place / "rules") << "leak remain\n";
  quiet.check_ignore = place / "rules";
  const findings_report with_rules(quiet);
  EXPECT_TRUE(with_rules.ignored().contains(plain()));
  EXPECT_TRUE(with_rules.is_of_this_process());
  EXPECT_EXIT(std::_Exit(with_rules.is_of_this_process() ? 1 : 0), testing::ExitedWithCode(0), "") << "a fork";
}

TEST(Reports, ProcessesOfOneRunAddTheirFindingsToTheFiles) {
  const temporary_folder place;
  options chosen;
  chosen.check_json = place / "all.json";
  chosen.check_sarif = place / "all.sarif";
  chosen.check_since = 1;  // files of any time are of this run
  const auto end = [&](const std::vector<finding>& all, const char* folder, const char* rank = nullptr) {
    const auto ending = [&] {
      if (rank != nullptr) ::setenv("OMPI_COMM_WORLD_RANK", rank, 1);
      std::filesystem::current_path(folder);
      std::_Exit(findings_report(chosen).end_process(0, all, {}));
    };
    EXPECT_EXIT(ending(), testing::ExitedWithCode(all.empty() ? 0 : 9), "");
  };
  end({}, "/usr");
  end({plain()}, "/usr");
  end({full(), full()}, "/usr");
  EXPECT_EQ(content_of(place / "all.json"), json_of({plain(), full(), full()}));
  EXPECT_EQ(content_of(place / "all.sarif"), sarif_of({plain(), full(), full()}, "/usr"));

  // A process in another folder: its files are not relative to the folder of the first process.
  finding of_usr = plain();
  of_usr.now = finding_side{"read", "x", 0, "", "/usr/m.cu:12", 0};
  finding of_home = plain();
  of_home.now = finding_side{"read", "x", 0, "", "/home/m.cu:12", 0};
  std::filesystem::remove(place / "all.sarif");
  end({of_usr}, "/usr");
  end({of_usr, of_home}, "/home");
  const std::string text = content_of(place / "all.sarif");
  EXPECT_NE(text.find(R"("uri":"m.cu","uriBaseId":"%SRCROOT%")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("uri":"file:///usr/m.cu"})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("uri":"file:///home/m.cu"})"), std::string::npos) << text;

  std::ofstream(place / "all.json") << "the text of another program";
  end({plain()}, "/usr");
  EXPECT_EQ(content_of(place / "all.json"), json_of({plain()}));
  end({full()}, "/usr", "3");
  EXPECT_EQ(content_of(place / "all.3.json"), json_of({full()}, "3"));
  EXPECT_EQ(content_of(place / "all.json"), json_of({plain()}));
  chosen.check_since = std::numeric_limits<std::int64_t>::max();  // files of any time are of earlier runs
  end({full()}, "/usr");
  EXPECT_EQ(content_of(place / "all.json"), json_of({full()}));
  EXPECT_EQ(content_of(place / "all.sarif"), sarif_of({full()}, "/usr"));
}

}  // namespace
}  // namespace hpe::check
