"""Cuts photographs: crops.py FOLDER COUNT WIDTH HEIGHT SOURCE…

COUNT crops of Debian's wallpapers, as JPEG (quality 90, 4:2:0, as cameras and editors export) and as PNG. Larger
photographs are scaled down first, so that a crop shows a scene and not a patch of sky. The same sources give the same crops.
"""

import random
import sys
from pathlib import Path

from PIL import Image


def crops(sources, count, width, height):
    dice = random.Random(20261121)
    number = 0
    while number < count:
        path = sources[number % len(sources)]
        with Image.open(path) as image:
            image = image.convert("RGB")
            scale = max(width / image.width, height / image.height) * dice.uniform(1.0, 1.25)
            if scale < 1:
                image = image.resize((round(image.width * scale), round(image.height * scale)), Image.Resampling.LANCZOS)
            left = dice.randrange(image.width - width + 1)
            top = dice.randrange(image.height - height + 1)
            yield number, image.crop((left, top, left + width, top + height))
        number += 1


def main(folder, count, width, height, *sources):
    count, width, height = int(count), int(width), int(height)
    usable = []
    for source in sorted(sources):
        with Image.open(source) as image:
            if image.width >= width and image.height >= height:
                usable.append(source)
    for number, crop in crops(usable, count, width, height):
        crop.save(Path(folder) / f"crop-{number:03}.jpg", quality=90, subsampling=2)
        if number < 25:
            crop.save(Path(folder) / f"crop-{number:03}.png", compress_level=6)


if __name__ == "__main__":
    main(*sys.argv[1:])
