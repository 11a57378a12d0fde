"""Fills a folder past the old limits: large.py DATABASE BLOBS FOLDER, with the id in hexadecimal. One file of 4 GiB and a
byte that takes no room on the disk, and 70 000 small ones that share a blob which is there."""
import hashlib
import os
import sqlite3
import sys
import uuid
import zlib

database, blobs, folder = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3])
size, piece = (4 << 30) + 1, bytes(1 << 24)
crc, left = 0, size
while left:
    crc = zlib.crc32(piece[:left], crc)
    left -= min(left, len(piece))
# Named by what it is, not by its bytes: hashing them would take longer than all else.
name = hashlib.sha256(b"sparse").digest()
with open(os.path.join(blobs, name.hex()[:2], name.hex()[2:]), "wb") as blob:
    blob.truncate(size)

with sqlite3.connect(database, timeout=30) as db:
    account, small, small_size = db.execute("SELECT account_id, blob_hash, size_bytes FROM files LIMIT 1").fetchone()
    db.execute("INSERT INTO blobs (hash, size_bytes, crc32, created_at) VALUES (?, ?, ?, 0)", (name, size, crc))
    row = "INSERT INTO files (id, account_id, folder_id, filename, search_name, mime_type, size_bytes, blob_hash, role, created_at, updated_at) VALUES (?, ?, ?, ?, ?, 'text/plain', ?, ?, 'uploaded', ?, 0)"
    files = [(f"IMG_{number:05}.jpg", small_size, small, number + 1) for number in range(70_000)]
    for title, length, blob, at in [("large.bin", size, name, 0), *files]:
        db.execute(row, (uuid.uuid4().bytes, account, folder, title, title.lower(), length, blob, at))
