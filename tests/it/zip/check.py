"""Checks an archive against what should be in it: check.py ARCHIVE MANIFEST, a JSON object of contents by path."""
import json
import sys
import zipfile

archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
expected = json.load(open(sys.argv[2], encoding="utf-8"))
found = {info.filename: archive.read(info).decode() for info in archive.infolist()}
assert len(found) == len(archive.infolist()), "a name occurs twice"
assert found == expected, f"{found} instead of {expected}"
