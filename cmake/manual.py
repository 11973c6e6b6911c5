#!/usr/bin/env python3
"""Generates the reference of the command line from the output of the hpe command: its help texts and its table of options.

    manual.py <hpe> man FOLDER          man pages: man1/hpe.1, man1/hpe-COMMAND.1, man7/hpe-options.7
    manual.py <hpe> completion FOLDER   completion: bash/hpe, zsh/_hpe, fish/hpe.fish
    manual.py <hpe> markdown FOLDER     pages of the manual: command-line.md, options.md

A help text consists of a usage line and of blocks between blank lines. A block is prose, a list of options
("  --name VALUE  text", "  WORD  text"), the heading of such a list ("Devices:"), or, after the line "Examples:", command
lines. If an option accepts only a few words, they are in its VALUE (auto|soft), or in the message with which the command
rejects other words.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

OPTION = re.compile(r"  (-[\w,-]+|[A-Z|]+)(?: (\S.*?))?(?:  +(\S.*))?$")
HEADING = re.compile(r"[A-Z][\w,' ]{,60}:$")
CHOICE = re.compile(r": the possible values are ([\w-]+(?:, [\w-]+)*)$", re.MULTILINE)
COMMAND = re.compile(r"  ([\w-]+) +(\S.*)$")
VARIABLE = re.compile(r"  (\w+) \((?:(.*); )?default: (.*)\)$")
WITHOUT_A_PAGE = {"help", "bench"}  # the output of bench depends on the installed benchmarks


class Option(NamedTuple):
    name: str
    value: str
    text: str
    words: tuple = ()  # all possible values; empty: any value is possible

    @property
    def is_file(self):
        return "FILE" in self.value or "FOLDER" in self.value


class Help(NamedTuple):
    """The parsed help text of a command."""
    name: str
    summary: str
    usage: str
    prose: list
    options: list
    examples: list


class Variable(NamedTuple):
    name: str
    values: str | None  # the possible values, if they are a few words: "on or off"
    initial: str
    text: str

    @property
    def about_value(self):
        return (f"{self.values}; " if self.values else "") + f"default: {self.initial}"


def options_of(lines):
    found = []
    for line in lines:
        if match := OPTION.match(line):
            found.append(Option(match[1], match[2] or "", match[3] or ""))
        else:
            found[-1] = found[-1]._replace(text=f"{found[-1].text} {line.strip()}".strip())
    return found


def help_of(name, summary, text):
    usage, prose, options, examples = "", [], [], []
    for block in text.strip("\n").split("\n\n"):
        lines = [line for line in block.splitlines() if line == "Examples:" or not HEADING.match(line)]
        if lines and lines[0].lower().startswith("usage: "):
            usage = lines.pop(0)[len("usage: "):]
        if not lines:
            continue
        if OPTION.match(lines[0]):
            options += options_of(lines)
        elif lines[0] == "Examples:":
            examples += [line.strip() for line in lines[1:]]
        else:
            prose.append(" ".join(line.strip() for line in lines))
    if not usage:
        sys.exit(f"manual.py: hpe {name} --help has no usage line")
    return Help(name, summary, usage, prose, options, examples)


class Manual:
    """The help texts and options that the hpe command prints."""

    def __init__(self, program):
        self.program = program
        self.version = self.ask("--version").split()[1]
        overview = self.ask("help").splitlines()
        self.summaries = [(match[1], match[2]) for line in overview if (match := COMMAND.match(line))]
        self.commands = [help_of(name, summary, self.ask(name, "--help")) for name, summary in self.summaries
                         if name not in WITHOUT_A_PAGE]
        self.commands = [command._replace(options=[option._replace(words=self.words_of(command.name, option))
                                                   for option in command.options]) for command in self.commands]
        self.about_variables, *rest = self.ask("help", "options").split("\n\n")
        self.variables = [Variable(*VARIABLE.match(first).groups(), text.strip())
                          for first, text in (block.strip("\n").split("\n") for block in rest if not HEADING.match(block))]

    def ask(self, *arguments):
        return self.run(*arguments, check=True).stdout

    def run(self, *arguments, check):
        wide = {**os.environ, "COLUMNS": "10000"}  # no line breaks within a row
        return subprocess.run([self.program, *arguments], capture_output=True, text=True, check=check, env=wide)

    def words_of(self, command, option):
        if not option.value or option.is_file:
            return ()
        if re.fullmatch(r"[a-z0-9|-]+", option.value):
            return tuple(option.value.split("|"))
        # With --help, the command only reads its options.
        match = CHOICE.search(self.run(command, "--help", option.name, "no such word", check=False).stderr)
        return tuple(match[1].split(", ")) if match else ()


# ---- man pages

def roff(text):
    """Returns text for roff, with all requests and escapes quoted."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"`([^`]*)`", r"\\fB\1\\fR", text)
    return "\\&" + text if text[:1] in (".", "'") else text


def paragraphs(texts):
    return "\n.PP\n".join(roff(text) for text in texts)


def tagged(rows):
    """Returns rows of (tag, text) as tagged paragraphs of roff."""
    return "\n".join(f".TP\n{tag}\n{roff(text)}" for tag, text in rows)


def man_page(name, section, summary, parts, see, version):
    lines = [f'.TH {name.upper()} {section} "" "hpe {version}" "hpe"', ".SH NAME", f"{roff(name)} \\- {roff(summary)}"]
    for title, body in parts:
        if body:
            lines += [f".SH {title}", body]
    lines += [".SH SEE ALSO", ", ".join(f"\\fB{roff(other)}\\fR({number})" for other, number in see)]
    return "\n".join(lines) + "\n"


def option_tag(option):
    return f"\\fB{roff(option.name)}\\fR" + (f" \\fI{roff(option.value)}\\fR" if option.value else "")


def exit_statuses(name):
    if name == "doctor":
        return "0 if everything works; 1 if something does not work or the program of --run failed; 2 for a usage error."
    if name == "run":
        return "The exit status of the program; 2 for a usage error, 126 if the program cannot be run, 127 if it is not found."
    return "0; 1 if the command failed; 2 for a usage error."


def man_pages(manual):
    pages = [("hpe-options", 7)] + [(f"hpe-{command.name}", 1) for command in manual.commands]
    for command in manual.commands:
        parts = [("SYNOPSIS", f"\\fB{roff(command.usage)}\\fR"),
                 ("DESCRIPTION", paragraphs(command.prose)),
                 ("OPTIONS", tagged((option_tag(option), option.text) for option in command.options)),
                 ("EXAMPLES", "\n".join([".nf", *map(roff, command.examples), ".fi"]) if command.examples else ""),
                 ("EXIT STATUS", roff(exit_statuses(command.name))),
                 ("ENVIRONMENT", "\\fBhpe\\-options\\fR(7) lists the variables that hpe reads.")]
        yield f"man1/hpe-{command.name}.1", man_page(f"hpe-{command.name}", 1, command.summary, parts,
                                                     [("hpe", 1), ("hpe-options", 7)], manual.version)
    yield "man1/hpe.1", man_page("hpe", 1, "one address space for a host and several devices", [
        ("SYNOPSIS", "\\fBhpe\\fR \\fIcommand\\fR [\\fIarguments\\fR]\n.br\n\\fBhpe \\-\\-version\\fR"),
        ("DESCRIPTION", roff("Runs programs with hpe, prints information about the machine's devices, and contains "
                             "applications. Each command has a man page, and prints its options with `--help`.")),
        ("COMMANDS", tagged((f"\\fB{roff(name)}\\fR", summary) for name, summary in manual.summaries)),
        ("EXIT STATUS", roff(exit_statuses("")))], pages, manual.version)
    yield "man7/hpe-options.7", man_page("hpe-options", 7, "variables of the environment that hpe reads", [
        ("DESCRIPTION", roff(manual.about_variables)),
        ("OPTIONS", tagged((f"\\fB{roff(v.name)}\\fR ({roff(v.about_value)})", v.text)
                           for v in manual.variables))], [("hpe", 1), ("hpe-run", 1)], manual.version)


# ---- completion in shells

BASH = """\
# Completes the arguments of hpe in bash. Made by cmake/manual.py.
_hpe() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command=${{COMP_WORDS[1]}} i
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W "{commands} --help --version" -- "$word")
    return
  fi
  local -A options=(
{options}
  )
  # The values of options that accept one of a few words.
  local -A values=(
{values}
  )
  # After any other option that has a value, bash completes file names.
  local with_value=" {with_value} "
  case $command in
    help)
      mapfile -t COMPREPLY < <(compgen -W "{commands} options {variables}" -- "$word")
      return
      ;;
    bench)
      if ((COMP_CWORD == 2)); then
        mapfile -t COMPREPLY < <(compgen -c -- "hpe-bench-$word" | sed 's/^hpe-bench-//' | sort -u)
      fi
      return
      ;;
    {before_a_program})
      for ((i = 2; i < COMP_CWORD; ++i)); do
        if [[ ${{COMP_WORDS[i]}} == -- ]]; then
          if ((i + 1 == COMP_CWORD)); then mapfile -t COMPREPLY < <(compgen -c -- "$word"); fi
          return
        fi
      done
      ;;
  esac
  if [[ ${{values[$command$before]:-}} ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${{values[$command$before]}}" -- "$word")
    return
  fi
  if [[ $with_value == *" $command$before "* ]]; then return; fi
  mapfile -t COMPREPLY < <(compgen -W "${{options[$command]:-}}" -- "$word")
}}
complete -o bashdefault -o default -F _hpe hpe
"""

ZSH = """\
#compdef hpe
# Completes the arguments of hpe in zsh. Made by cmake/manual.py.
_hpe() {{
  local context state line
  local -a subcommands=(
{commands}
  )
  _arguments -C '--help[the commands]' '--version[the version]' '1: :->command' '*:: :->arguments'
  if [[ $state == command ]]; then
    _describe command subcommands
    return
  fi
  case $words[1] in
    help) compadd -- {topics} ;;
    bench) compadd -- ${{${{(k)commands[(I)hpe-bench-*]}}#hpe-bench-}} ;;
{cases}
  esac
}}
_hpe "$@"
"""

BEFORE_A_PROGRAM = ("run", "doctor")  # commands whose arguments are a program and its arguments


def options_in(command):
    return [option for option in command.options if option.name.startswith("-")]


def bash(manual):
    options = {command.name: [option.name for option in options_in(command)] for command in manual.commands}
    for name in BEFORE_A_PROGRAM:
        options[name].append("--")
    each = [(command.name + option.name, option) for command in manual.commands for option in options_in(command)]
    return BASH.format(
        commands=" ".join(name for name, _ in manual.summaries),
        variables=" ".join(variable.name for variable in manual.variables),
        before_a_program=" | ".join(BEFORE_A_PROGRAM),
        options="\n".join(f'    [{name}]="{" ".join(names)}"' for name, names in options.items()),
        values="\n".join(f'    [{key}]="{" ".join(option.words)}"' for key, option in each if option.words),
        with_value=" ".join(key for key, option in each if option.value))


def in_zsh(text):
    return "'" + text.replace("'", "'\\''") + "'"


def in_fish(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def zsh_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("`", "")


def zsh_row(option):
    names = "(-h --help)'{-h,--help}'" if option.name == "--help" else option.name
    row = f"{names}[{zsh_text(option.text)}]"
    if not option.value:
        return f"'{row}'" if option.name == "--help" else in_zsh(row)
    values = f"({' '.join(option.words)})" if option.words else "_files" if option.is_file else " "
    return in_zsh(f"{row}:{zsh_text(option.value)}:{values}")


def zsh(manual):
    def case(command):
        last = "'*::program:_normal'" if command.name in BEFORE_A_PROGRAM else "'*:file:_files'"
        rows = " \\\n        ".join([*(zsh_row(option) for option in options_in(command)), last])
        return f"    {command.name})\n      _arguments -s \\\n        {rows} ;;"
    return ZSH.format(
        commands="\n".join("    " + in_zsh(f"{name}:{zsh_text(text)}") for name, text in manual.summaries),
        topics=" ".join(["options", *(name for name, _ in manual.summaries), *(v.name for v in manual.variables)]),
        cases="\n".join(map(case, manual.commands)))


def fish(manual):
    lines = ["# Completes the arguments of hpe in fish. Made by cmake/manual.py.", "complete -c hpe -f -n __fish_use_subcommand",
             "complete -c hpe -n __fish_use_subcommand -l version -d 'the version'"]
    lines += [f"complete -c hpe -n __fish_use_subcommand -a {name} -d {in_fish(text)}" for name, text in manual.summaries]
    for command in manual.commands:
        seen = f"'__fish_seen_subcommand_from {command.name}'"
        for option in options_in(command):
            words = [f"complete -c hpe -n {seen} -l {option.name.removeprefix('--')} -d {in_fish(option.text)}"]
            if option.words:
                words += ["-x -a", in_fish(" ".join(option.words))]
            elif option.value:
                words.append("-r" if option.is_file else "-x")
            lines.append(" ".join(words))
        if command.name in BEFORE_A_PROGRAM:
            lines.append(f"complete -c hpe -n {seen} -a '(__fish_complete_command)'")
    topics = " ".join(["options", *(name for name, _ in manual.summaries), *(v.name for v in manual.variables)])
    lines.append(f"complete -c hpe -f -n '__fish_seen_subcommand_from help' -a '{topics}'")
    return "\n".join(lines) + "\n"


def completion(manual):
    yield "bash/hpe", bash(manual)
    yield "zsh/_hpe", zsh(manual)
    yield "fish/hpe.fish", fish(manual)


# ---- pages of the manual

def markdown(manual):
    lines = ["# The command line", "", "This page contains the output of `hpe help` and `hpe COMMAND --help`, as do the man pages hpe(1) and "
             "hpe-COMMAND(1). The folder docs/schemas describes the JSON that `--json` writes.", "", "| command | |", "|---|---|"]
    pages = {command.name for command in manual.commands}
    lines += [f"| {f'[{name}](#hpe-{name})' if name in pages else name} | {summary} |" for name, summary in manual.summaries]
    for command in manual.commands:
        lines += ["", f"## hpe {command.name}", "", "```", command.usage, "```"]
        for text in command.prose:
            lines += ["", text.replace("<", "&lt;")]
        if command.options:
            lines += ["", "| option | |", "|---|---|"]
            for option in command.options:
                name = " ".join(filter(None, option[:2])).replace("|", "\\|")
                lines.append(f"| `{name}` | {option.text} |")
        if command.examples:
            lines += ["", "```", *command.examples, "```"]
        lines += ["", f"Exit status: {exit_statuses(command.name)}"]
    yield "command-line.md", "\n".join(lines) + "\n"
    lines = ["# Options", "", f"{manual.about_variables} `hpe help options` prints this list, and the man page hpe-options(7) has it."]
    for variable in manual.variables:
        lines += ["", f"## {variable.name}", "", *([f"Values: {variable.values}", ""] if variable.values else []),
                  f"Default: {variable.initial}", "", variable.text]
    yield "options.md", "\n".join(lines) + "\n"


def main():
    forms = {"man": man_pages, "completion": completion, "markdown": markdown}
    if len(sys.argv) != 4 or sys.argv[2] not in forms:
        sys.exit(__doc__)
    for name, text in forms[sys.argv[2]](Manual(sys.argv[1])):
        file = Path(sys.argv[3]) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main()
