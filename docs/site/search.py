"""A hook of MkDocs that completes the search index, and also writes the index as a script, because pages that a browser opens as
files can only load scripts.

The hook adds the names that the headers declare, from Doxygen's tag file. It removes the pages that show source files, and the
pages of docs/history.
"""

import json
from pathlib import Path
from xml.etree import ElementTree

API = "reference/api"


def declarations(tags):
    """Yields an entry of the index for each page of the reference, and for each declaration on these pages."""
    pages = set()
    for compound in ElementTree.parse(tags).getroot():
        inside = compound.findtext("name")
        for member in compound.iter("member"):
            name, page, anchor = (member.findtext(tag) for tag in ("name", "anchorfile", "anchor"))
            if not page:
                continue
            if page not in pages:  # the theme expects the entry of a page before the entries of its anchors
                pages.add(page)
                yield {"location": f"{API}/{page}", "title": inside, "text": ""}
            yield {"location": f"{API}/{page}#{anchor}", "title": name,
                   "text": f"{member.findtext('type') or member.get('kind')} {name}{member.findtext('arglist') or ''}"}


def on_post_build(config):
    index = Path(config["site_dir"]) / "search" / "search_index.json"
    search = json.loads(index.read_text())
    search["docs"] = [entry for entry in search["docs"] if not entry["location"].startswith(("source/", "history/"))]
    search["docs"] += declarations(Path(config["config_file_path"]).with_name("api.tags"))
    text = json.dumps(search, separators=(",", ":"))
    index.write_text(text)
    index.with_suffix(".js").write_text(f"__search = {{ index: Promise.resolve({text}) }};\n")
