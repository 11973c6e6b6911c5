#!/usr/bin/env python3
"""An input filter for Doxygen: prints a header of hpe and converts its ordinary comments to comments that Doxygen reads.

    header_filter.py FILE

- A comment before a declaration documents this declaration, and the declarations that follow without an empty line.
- A comment after a member or an enumerator, on the same line, documents this member or enumerator.
- "/* ---- name ---- */" begins a group.
- The first comment of a file documents the file.
"""

import re
import sys
from pathlib import Path

SECTION = re.compile(r"/\* -+ (.*?) -+ \*/$")
DECLARATION = re.compile(r"HPE_API\b.*?\b(\w+)\(")


def filtered(text):
    lines = []
    in_group = in_comment = False
    seen_comment = False
    copied = ""  # the function whose comment also documents the next declaration; empty: none
    for line in text.splitlines():
        section = SECTION.match(line)
        if section:
            if in_group:
                lines.append("/** @} */")
            lines.append(f"/** @name {section[1].capitalize()}")
            lines.append(" * @{ */")
            in_group, copied = True, ""
            continue
        starts = not in_comment and "/* " in line
        if starts and line.lstrip().startswith("/* "):
            indentation = line[:len(line) - len(line.lstrip())]
            line = line.replace("/* ", "/** " if seen_comment else "/** @file\n * ", 1)
            seen_comment, copied = True, "" if not indentation else copied
        elif starts:
            line = line.replace("/* ", "/**< ", 1)
        elif line.startswith("///") and not seen_comment:
            line, seen_comment = "/// @file\n" + line, True
        if starts or in_comment or line.lstrip().startswith("///"):
            line = re.sub(r"<(hpe/\w+\.h\w*)>", r"\1", line).replace("__global__", "`__global__`")
            line = re.sub(r"^(///| \*)   (?=\S| )", r"\1     ", line)  # Markdown needs deeper indentation for code
        in_comment = (starts or in_comment) and "*/" not in line
        declared = DECLARATION.match(line)
        if declared and copied:
            lines.append(f"/** @copydoc {copied} */")
        elif declared:
            copied = declared[1]
        if not line.strip():
            copied = ""
        lines.append(line)
    if in_group:  # the last group ends before the end of extern "C"
        last = len(lines) - 1 - lines[::-1].index("#ifdef __cplusplus")
        lines.insert(last, "/** @} */")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(filtered(Path(sys.argv[1]).read_text()))
