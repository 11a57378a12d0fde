"""Makes many folders in one: folders.py DATABASE FOLDER COUNT LENGTH, with the id in hexadecimal and the length of their
names."""
import sqlite3
import sys
import uuid

database, parent, count, length = sys.argv[1], bytes.fromhex(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
with sqlite3.connect(database, timeout=30) as db:
    (account,) = db.execute("SELECT account_id FROM folders WHERE id = ?", (parent,)).fetchone()
    row = "INSERT INTO folders (id, account_id, name, parent_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?, 0)"
    for number in range(count):
        db.execute(row, (uuid.uuid4().bytes, account, f"{number:05}" + "x" * length, parent, number))
