"""Makes files that no client should send: craft.py FOLDER FOLDER-OF-DRAWN-IMAGES.

Small files that ask for much, files that are not what they say, and drawn images cut short or changed. The name says
what each one is about.
"""

import io
import random
import struct
import sys
import zipfile
import zlib
from pathlib import Path

from PIL import Image

# Fixed, so that every run sends the same bytes.
SEED = 20261121


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, data, *more, depth=8, colour=2):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = [png_chunk(b"IHDR", header), *more, png_chunk(b"IDAT", data), png_chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def giant_png():
    """95 bytes that ask for 935 820 × 854 554 pixels."""
    return png(935_820, 854_554, bytes(38))


def gif_head(width, height):
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes((0, 0, 0, 255, 255, 255))


def gif_frame(width, height):
    control = b"\x21\xf9\x04\0\x0a\0\0\0"
    # Clear, one pixel of colour 0, end: three codes of three bits each, and a pixel too few for anything larger.
    return control + b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02\x44\x01\0"


def giant_gif():
    """65 535 × 65 535: 17 GB once decoded to four bytes a pixel."""
    return gif_head(65_535, 65_535) + gif_frame(65_535, 65_535) + b";"


def long_gif():
    return gif_head(1, 1) + gif_frame(1, 1) * 200_000 + b";"


def giant_jpeg(side=20_000, scans=1):
    """A progressive JPEG of 400 megapixels in a few kilobytes a scan (ITU-T T.81, annex G)."""
    blocks = (side + 7) // 8
    quantisation = b"\xff\xdb" + struct.pack(">HB", 67, 0) + b"\x01" * 64
    frame = b"\xff\xc2" + struct.pack(">HBHHBBBB", 11, 8, side, side, 1, 1, 0x11, 0)
    # One code of one bit each: difference 0; and the longest run of empty blocks there is.
    tables = b"\xff\xc4" + struct.pack(">HB", 20, 0x00) + bytes((1,)) + bytes(15) + b"\0"
    tables += b"\xff\xc4" + struct.pack(">HB", 20, 0x10) + bytes((1,)) + bytes(15) + b"\xe0"
    data = quantisation + frame + tables
    data += b"\xff\xda" + struct.pack(">HBBBBBB", 8, 1, 1, 0, 0, 0, 0) + bytes((blocks * blocks + 7) // 8)
    for _ in range(scans):
        # 15 bits each: the code, then 14 bits of run length, all zero (2^14 blocks).
        runs = (blocks * blocks + 16_383) // 16_384
        data += b"\xff\xda" + struct.pack(">HBBBBBB", 8, 1, 1, 0, 1, 63, 0) + bytes((runs * 15 + 7) // 8)
    return b"\xff\xd8" + data + b"\xff\xd9"


def text_bomb_png():
    """A profile and a comment that unpack to 200 MB each."""
    zeros = zlib.compress(bytes(200_000_000), 9)
    profile = png_chunk(b"iCCP", b"x\0\0" + zeros)
    comment = png_chunk(b"zTXt", b"Comment\0\0" + zeros)
    return png(8, 8, zlib.compress(bytes((8 * 3 + 1) * 8)), profile, comment)


def data_bomb_png():
    """10 900 × 10 900, all of it there: under the limit of pixels, 340 kB sent, 356 MB unpacked."""
    packer, side = zlib.compressobj(9), 10_900
    rows = bytes((side * 3 + 1) * 100)
    return png(side, side, b"".join(packer.compress(rows) for _ in range(side // 100)) + packer.flush())


SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="100" height="100"'


def nested_use(depth=14, fan=10):
    groups = ['<rect id="g0" width="9" height="9"/>']
    for level in range(1, depth):
        uses = f'<use xlink:href="#g{level - 1}" x="1"/>' * fan
        groups.append(f'<g id="g{level}">{uses}</g>')
    return f'{SVG}><defs>{"".join(groups)}</defs><use xlink:href="#g{depth - 1}"/></svg>'


def heavy_filter():
    blurs = '<feGaussianBlur stdDeviation="4000"/><feTurbulence baseFrequency="0.9" numOctaves="9"/>' * 400
    return (
        f'{SVG.replace("100", "20000")}><filter id="f" x="-9" y="-9" width="20" height="20">{blurs}</filter>'
        '<rect width="20000" height="20000" filter="url(#f)"/></svg>'
    )


def heavy_pattern():
    pattern = '<pattern id="p" width="0.0001" height="0.0001"><rect width="1" height="1"/></pattern>'
    return f'{SVG}>{pattern}<rect width="1e9" height="1e9" fill="url(#p)"/></svg>'


def nested_pattern(depth=9):
    patterns = "".join(
        f'<pattern id="p{n}" width="0.01" height="0.01"><rect width="9" height="9" fill="url(#p{n + 1})"/></pattern>'
        for n in range(depth)
    )
    return f'{SVG}>{patterns}<pattern id="p{depth}" width="1" height="1"/><rect width="9" height="9" fill="url(#p0)"/></svg>'


def laughs(levels=12):
    entities = '<!ENTITY a0 "ha ha ha ha ha ha ha ha">'
    for level in range(1, levels):
        entities += f'<!ENTITY a{level} "{f"&a{level - 1};" * 10}">'
    return f"<!DOCTYPE svg [{entities}]>{SVG}><text y='20'>&a{levels - 1};</text></svg>"


def drawings():
    yield "nested-use", nested_use()
    yield "filter", heavy_filter()
    yield "pattern", heavy_pattern()
    yield "nested-pattern", nested_pattern()
    yield "laughs", laughs()
    yield "deep", SVG + ">" + "<g>" * 200_000 + "</g>" * 200_000 + "</svg>"
    yield "giant", SVG.replace("100", "999999999") + '><rect width="9" height="9"/></svg>'
    yield "endless-path", SVG + '><path d="M0 0' + "L9 9" * 2_000_000 + '"/></svg>'
    yield "not-a-number", SVG.replace("100", "NaN") + ' viewBox="0 0 -1 1e999"/>'


def archives(drawn):
    def packed(members):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, data in members:
                archive.writestr(name, data)
        return file.getvalue()

    image = (drawn / "plain.png").read_bytes()
    yield "zeros", packed([("a.png", bytes(3_000_000_000))])
    yield "many", packed([(f"{n}.png", b"x") for n in range(70_000)])
    yield "paths", packed([("../../../../tmp/sluice-was-here.png", image), ("/etc/sluice.png", image)])
    inner = packed([("b.png", bytes(500_000_000))])
    yield "nested", packed([("a.zip", inner)] * 20)
    # The directory says one byte, the member holds 50 million.
    lying = bytearray(packed([("a.png", bytes(50_000_000))]))
    entry = lying.rindex(b"PK\x01\x02")
    lying[entry + 24 : entry + 28] = struct.pack("<I", 1)
    yield "lying", bytes(lying)
    yield "cut", packed([("a.png", image)])[:-30]
    yield "empty", packed([])


def others():
    yield "giant.bmp", b"BM" + struct.pack("<IHHI", 70, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 60_000, 60_000, 1, 24, 0, 0, 0, 0, 0, 0)
    yield "negative.bmp", b"BM" + struct.pack("<IHHI", 70, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, -5, -(2**31), 1, 24, 0, 0, 0, 0, 0, 0)
    yield "giant.tga", struct.pack("<BBBHHBHHHHBB", 0, 0, 10, 0, 0, 0, 0, 0, 65_535, 65_535, 24, 0) + b"\xff\0\0\0" * 20
    yield "giant.ico", b"\0\0\x01\0\xff\xff" + (b"\0\0\0\0\x01\0\x20\0" + struct.pack("<II", 2**31, 22)) * 20
    yield "loop.tiff", b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", 1) + struct.pack("<HHII", 256, 4, 1, 9) + struct.pack("<I", 8)
    tags = [(256, 4, 1, 60_000), (257, 4, 1, 60_000), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 8), (278, 4, 1, 60_000), (279, 4, 1, 4_000_000_000)]
    entries = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    yield "giant.tiff", b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)
    # VP8L: 14 bits of width and height less one, and nothing else.
    bits = (16_383 | 16_383 << 14).to_bytes(4, "little")
    lossless = b"VP8L" + struct.pack("<I", 6) + b"\x2f" + bits + b"\0"
    yield "giant.webp", b"RIFF" + struct.pack("<I", 4 + len(lossless)) + b"WEBP" + lossless
    page = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[2 0 R]/Count 999999999>>endobj\n"
    yield "loop.pdf", page + b"trailer<</Root 1 0 R>>\n%%EOF"
    box = b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9999999 9999999]>>endobj\n"
    yield "giant.pdf", page.replace(b"[2 0 R]/Count 999999999", b"[3 0 R]/Count 1") + box + b"trailer<</Root 1 0 R>>\n%%EOF"
    yield "list.png", b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
    yield "list.jpg", b"#EXTM3U\n#EXTINF:9,\nhttp://127.0.0.1:9/x.ts\n"
    yield "concat.png", b"ffconcat version 1.0\nfile /etc/passwd\n"
    yield "magick.png", b"push graphic-context\nimage over 0,0 0,0 'label:@/etc/passwd'\npop graphic-context\n"
    yield "page.png", b"<!doctype html><script>alert(1)</script>"
    yield "script.jpg", b"%!PS\n(/etc/passwd) (r) file\n"
    yield "empty.png", b""
    yield "byte.jpg", b"\xff"
    yield "head.jpg", b"\xff\xd8\xff"
    yield "zeros.png", bytes(100_000)
    yield "noise.webp", random.Random(SEED).randbytes(100_000)


def spoilt(drawn):
    """Each drawn image cut short, and with bytes changed in its first and in any part."""
    dice = random.Random(SEED)
    for path in sorted(drawn.iterdir()):
        if path.stat().st_size > 500_000:
            continue
        whole = path.read_bytes()
        for share in (20, 95):
            yield f"cut-{share}-{path.name}", whole[: len(whole) * share // 100]
        for number, within in enumerate((256, len(whole))):
            changed = bytearray(whole)
            for _ in range(12):
                changed[dice.randrange(min(within, len(whole)))] = dice.randrange(256)
            yield f"changed-{number}-{path.name}", bytes(changed)


def main(folder, drawn):
    for name, data in (
        ("giant.png", giant_png()),
        ("giant.gif", giant_gif()),
        ("frames.gif", long_gif()),
        ("giant.jpg", giant_jpeg()),
        ("scans.jpg", giant_jpeg(side=8_000, scans=900)),
        ("profile-bomb.png", text_bomb_png()),
        ("data-bomb.png", data_bomb_png()),
    ):
        (folder / name).write_bytes(data)
    for name, data in drawings():
        (folder / f"svg-{name}.svg").write_text(data)
    for name, data in archives(drawn):
        (folder / f"zip-{name}.zip").write_bytes(data)
    for name, data in others():
        (folder / name).write_bytes(data)
    (folder / "spoilt").mkdir()
    for name, data in spoilt(drawn):
        (folder / "spoilt" / name).write_bytes(data)
    # An image under another format's name is read by its bytes.
    jpeg = Image.open(drawn / "plain.jpg")
    jpeg.save(folder / "really-a-jpeg.png", "JPEG")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
