"""Draws the images that scenarios send: draw.py FOLDER.

One image in many formats: 240×160, four quadrants (red, green / blue, yellow), each a soft gradient so that no codec
may take it for flat colour. What is peculiar to a file is in its name. Everything is made from the same pixels, so
that any two may be compared.
"""

import io
import struct
import sys
import zlib
from pathlib import Path

import pillow_heif
import pillow_jxl  # noqa: F401  registers itself
from PIL import Image, ImageCms, ImageDraw, ImageFilter

pillow_heif.register_heif_opener()

WIDTH, HEIGHT = 240, 160
QUADRANTS = ((205, 50, 45), (40, 165, 60), (45, 70, 200), (225, 200, 50))
ORIENTATION = 0x0112
# Transpositions that store an upright image for each EXIF orientation (EXIF 2.32, tag 274).
STORED = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def quadrants(width=WIDTH, height=HEIGHT, turn=0):
    image = Image.new("RGB", (width, height))
    for index, place in enumerate(((0, 0), (1, 0), (0, 1), (1, 1))):
        colour = QUADRANTS[(index + turn) % 4]
        box = (width // 2, height // 2)
        shade = Image.linear_gradient("L").resize(box).point(lambda value: 225 + value // 9)
        part = Image.merge("RGB", [shade.point(lambda v, c=c: v * c // 255) for c in colour])
        image.paste(part, (place[0] * box[0], place[1] * box[1]))
    return image


def matrix_profile(name, primaries, gamma):
    """An ICC v2 RGB profile: D50-adapted XYZ of red, green and blue, and one gamma (ICC.1:2001-04)."""

    def text(value):
        raw = value.encode() + b"\0"
        return b"desc" + bytes(4) + struct.pack(">I", len(raw)) + raw + bytes(78)

    def xyz(values):
        return b"XYZ " + bytes(4) + b"".join(struct.pack(">i", round(v * 65536)) for v in values)

    curve = b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256))
    white = (0.9642, 1.0, 0.8249)
    tags = [(b"desc", text(name)), (b"cprt", b"text" + bytes(4) + b"none\0"), (b"wtpt", xyz(white))]
    tags += [(tag, xyz(value)) for tag, value in zip((b"rXYZ", b"gXYZ", b"bXYZ"), primaries)]
    tags += [(tag, curve) for tag in (b"rTRC", b"gTRC", b"bTRC")]
    return profile(b"mntr", b"RGB ", b"XYZ ", tags)


def cmyk_profile():
    """An ICC v2 CMYK profile that is a table of sixteen corners: inks darker and bluer than the naive formula's."""
    inks = []
    srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    to_lab = ImageCms.buildTransform(srgb, lab, "RGB", "LAB")
    for corner in range(16):
        c, m, y, k = (corner >> bit & 1 for bit in (3, 2, 1, 0))
        rgb = [round(255 * (1 - ink * 0.9) * (1 - k * 0.92)) for ink in (c, m, y)]
        rgb[2] = min(255, rgb[2] + 30 * (1 - k))
        pixel = ImageCms.applyTransform(Image.new("RGB", (1, 1), tuple(rgb)), to_lab).tobytes()
        # Pillow's LAB keeps a and b as signed bytes, lut8 counts them from 128.
        inks += [pixel[0], pixel[1] ^ 0x80, pixel[2] ^ 0x80]
    identity = bytes(range(256))
    matrix = b"".join(struct.pack(">i", 65536 if at % 4 == 0 else 0) for at in range(9))
    table = b"mft1" + bytes(4) + bytes((4, 3, 2, 0)) + matrix + identity * 4 + bytes(inks) + identity * 3
    name = b"desc" + bytes(4) + struct.pack(">I", 12) + b"corner inks\0" + bytes(78)
    white = b"XYZ " + bytes(4) + struct.pack(">iii", 63190, 65536, 54061)
    tags = [(b"desc", name), (b"cprt", b"text" + bytes(4) + b"none\0"), (b"wtpt", white)]
    tags += [(b"A2B0", table), (b"A2B1", table)]
    return profile(b"prtr", b"CMYK", b"Lab ", tags)


def profile(kind, space, connection, tags):
    body, table, offset = b"", struct.pack(">I", len(tags)), 128 + 4 + 12 * len(tags)
    for tag, data in tags:
        data += bytes(-len(data) % 4)
        table += tag + struct.pack(">II", offset + len(body), len(data))
        body += data
    header = struct.pack(">I4sI4s4s4s", offset + len(body), b"none", 0x02400000, kind, space, connection)
    header += struct.pack(">6H", 2026, 1, 1, 0, 0, 0) + b"acsp" + bytes(28)
    header += struct.pack(">iii", 63190, 65536, 54061)
    return header + bytes(128 - len(header)) + table + body


# D50-adapted primaries as the published profiles hold them.
DISPLAY_P3 = ((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407))
ADOBE_RGB = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))


def into_space(image, icc):
    """The same colours in another space."""
    target = ImageCms.ImageCmsProfile(io.BytesIO(icc))
    return ImageCms.profileToProfile(image, ImageCms.createProfile("sRGB"), target)


def png_16_bits(image):
    rows = b""
    for y in range(image.height):
        line = image.crop((0, y, image.width, y + 1)).tobytes()
        rows += b"\0" + b"".join(bytes((value, value)) for value in line)

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", image.width, image.height, 16, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )


def drawing(width, height):
    half = (width // 2, height // 2)
    rects = "".join(
        f'<rect x="{x * half[0]}" y="{y * half[1]}" width="{half[0]}" height="{half[1]}" fill="rgb{colour}"/>'
        for (x, y), colour in zip(((0, 0), (1, 0), (0, 1), (1, 1)), QUADRANTS)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">{rects}</svg>'


def with_hole(image):
    """The image with a transparent left half."""
    result = image.convert("RGBA")
    alpha = Image.new("L", image.size, 255)
    alpha.paste(0, (0, 0, image.width // 2, image.height))
    result.putalpha(alpha)
    return result


def photograph(width=1600, height=1067):
    """Takes the place of a photograph where the machine has none: gradients, edges and noise of several sizes."""
    image = quadrants(width, height).filter(ImageFilter.GaussianBlur(width // 20))
    for step, opacity in ((64, 0.25), (16, 0.15), (1, 0.06)):
        noise = Image.effect_noise((width // step + 1, height // step + 1), 90).resize((width, height))
        image = Image.blend(image, noise.convert("RGB"), opacity)
    pen = ImageDraw.Draw(image)
    for at in range(0, width, 97):
        pen.line((at, 0, width - at, height), fill=(at % 255, 90, 160), width=2)
    return image


def main(folder):
    image = quadrants()

    def save(name, drawn=image, **options):
        drawn.save(folder / name, **options)

    for name, options in (
        ("plain.jpg", {"quality": 92}),
        ("progressive.jpg", {"quality": 92, "progressive": True}),
        ("full-chroma.jpg", {"quality": 92, "subsampling": 0}),
        ("half-chroma.jpg", {"quality": 92, "subsampling": 1}),
        ("plain.png", {}),
        ("plain.webp", {"quality": 92}),
        ("lossless.webp", {"lossless": True}),
        ("plain.avif", {"quality": 90}),
        ("plain.heic", {"quality": 90}),
        ("plain.jxl", {"quality": 92}),
        ("plain.tiff", {}),
        ("plain.bmp", {}),
        ("plain.tga", {}),
        ("plain.gif", {}),
        ("palette.png", {}),
    ):
        save(name, image.quantize(64) if name == "palette.png" else image, **options)
    save("plain.ico", sizes=[(64, 43)])
    save("grey.jpg", image.convert("L"), quality=92)
    save("odd.jpg", quadrants().resize((239, 157)), quality=92)

    for orientation in range(1, 9):
        stored = image.transpose(STORED[orientation]) if orientation in STORED else image
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        # A camera's name: what strip-metadata must take away.
        exif[0x0110] = "Sluice test camera"
        save(f"orientation-{orientation}.jpg", stored, quality=92, exif=exif)

    cmyk = image.convert("CMYK")
    save("cmyk.jpg", cmyk, quality=95)
    save("cmyk-profile.jpg", cmyk, quality=95, icc_profile=cmyk_profile())
    for name, primaries, gamma in (("display-p3", DISPLAY_P3, 2.2), ("adobe-rgb", ADOBE_RGB, 2.2)):
        icc = matrix_profile(name, primaries, gamma)
        save(f"{name}.jpg", into_space(image, icc), quality=95, icc_profile=icc)
        save(f"{name}.png", into_space(image, icc), icc_profile=icc)
    (folder / "deep.png").write_bytes(png_16_bits(image))

    save("hole.png", with_hole(image))
    save("hole.webp", with_hole(image), lossless=True)
    save("hole.tiff", with_hole(image))
    grey_hole = Image.merge("LA", (image.convert("L"), with_hole(image).getchannel("A")))
    save("grey-hole.png", grey_hole)

    turned = [quadrants(turn=turn) for turn in range(4)]
    delays = [80, 120, 160, 240]
    save("animated.gif", save_all=True, append_images=turned[1:], duration=delays, loop=0)
    save("animated.webp", save_all=True, append_images=turned[1:], duration=delays, loop=0, quality=90)
    save("pages.tiff", save_all=True, append_images=turned[1:])
    save("pages.pdf", save_all=True, append_images=turned[1:], resolution=72)
    (folder / "drawing.svg").write_text(drawing(WIDTH, HEIGHT))
    save("photograph.jpg", photograph(), quality=90)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
