"""Images that anyone may send: decoded within limits, shown small, and drawings as numbers."""

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from imparo.engine import Array
from imparo.extras import require
from imparo.service.image_files import BadImage, ImageFile, image_file

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["N_PIXELS", "BadImage", "decode", "pixels", "thumbnail"]

N_PIXELS = 784
# Twice what the network sees: photographs are decoded at a half, a quarter or an eighth of
# their size as long as their shorter side keeps this; 12 megapixels take half the time.
_ENOUGH = 448
# A drawing as MNIST has them: 20 pixels in 28.
_SIDE, _INK_SIDE = 28, 20
_LARGEST_DRAWING = 256
# Ink stands out from the paper by this share of the range, and by so many times its noise.
_LEAST_CONTRAST, _NOISES = 0.1, 6.0
# Of the contrast: where ink begins, and what is no ink at all.
_INK, _PAPER = 0.3, 0.1


def decode(content: bytes, *, max_pixels: int = 16_000_000) -> "Image":
    """Return the picture in a JPEG, PNG or WebP file, upright and on white.

    Its size is known, and refused, before anything of it is decoded. Large photographs are
    decoded smaller than they are, to not less than 448 pixels at their shorter side; of a
    film the first picture is taken.

    Parameters
    ----------
    content : bytes
        The file.
    max_pixels : int, default 16 million
        Largest product of width and height.

    Returns
    -------
    PIL image
        Of mode "RGB".

    Raises
    ------
    BadImage
        If it is no such file, too large, damaged or cut off.

    Examples
    --------
    >>> import io
    >>> from PIL import Image
    >>> from imparo.service.images import decode
    >>> file = io.BytesIO()
    >>> Image.new("L", (30, 20)).save(file, "png")
    >>> image = decode(file.getvalue())
    >>> image.mode, image.size
    ('RGB', (30, 20))
    """
    file = image_file(content)
    if not file.width or not file.height:
        raise BadImage("the image has no pixels; send one with at least one")
    if file.width * file.height > max_pixels:
        raise BadImage(
            f"the image has {file.width} × {file.height} pixels, and {max_pixels} are allowed; "
            "send it smaller"
        )
    try:
        return _upright(_on_white(_opened(file)), file.orientation)
    except MemoryError as error:
        raise BadImage("there is no memory to decode this image; send it smaller") from error
    # Decoders fail in many ways on damaged files, and speak of their own affairs.
    except Exception as error:
        raise BadImage(
            f"the {_name(file)} image is damaged, cut off or of a rare kind; save it anew"
        ) from error


def _name(file: ImageFile) -> str:
    return {"WEBP": "WebP"}.get(file.format, file.format)


def _opened(file: ImageFile) -> "Image":
    """Decode a file; its size is the one that was checked."""
    image = require("PIL.Image", "service").open(
        io.BytesIO(file.content), formats=[file.format]
    )
    if image.size != (file.width, file.height):
        raise ValueError("its size is not the one in its header")
    image.draft(None, (_ENOUGH, _ENOUGH))
    image.load()
    return image


def _on_white(image: "Image") -> "Image":
    """Return an image as RGB, and white where it is transparent."""
    pil = require("PIL.Image", "service")
    if image.mode.startswith("I"):  # 16 bits, which convert() would cut off at 255.
        grey = np.asarray(image).astype(np.uint32)
        transparent = image.info.get("transparency")
        if transparent is not None:
            grey[grey == transparent] = 0xFFFF
        return pil.fromarray((grey >> 8).astype(np.uint8)).convert("RGB")
    if (
        image.mode not in ("LA", "PA", "RGBA", "La", "RGBa")
        and "transparency" not in image.info
    ):
        return image.convert("RGB")
    # Composed by Pillow: of a pixel that is not opaque, only its share remains.
    image = image.convert("RGBA")
    white = pil.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def _upright(image: "Image", orientation: int) -> "Image":
    turns = require("PIL.Image", "service").Transpose
    turn = {
        2: turns.FLIP_LEFT_RIGHT,
        3: turns.ROTATE_180,
        4: turns.FLIP_TOP_BOTTOM,
        5: turns.TRANSPOSE,
        6: turns.ROTATE_270,
        7: turns.TRANSVERSE,
        8: turns.ROTATE_90,
    }.get(orientation)
    return image if turn is None else image.transpose(turn)


def thumbnail(image: "Image", size: int = 112) -> bytes:
    """Return a small JPEG of an image.

    Parameters
    ----------
    image : PIL image
        As :func:`decode` returns it.
    size : int, default 112
        Pixels of the longer side; smaller images keep their size.

    Returns
    -------
    bytes
    """
    file = io.BytesIO()
    _within(image.convert("RGB"), size).save(file, "JPEG", quality=80)
    return file.getvalue()


def pixels(image: "Image") -> Array:
    """Return a drawing as 784 numbers, as MNIST has digits.

    Ink is what differs from the border, be it darker or lighter, whichever there is more of.
    It is scaled to 20 pixels, its proportions kept, and put into 28 × 28 with its center of
    mass in the middle: where and how large something was drawn does not count.

    Parameters
    ----------
    image : PIL image
        As :func:`decode` returns it.

    Returns
    -------
    array of shape (784,)
        0 for paper and 1 for ink; zeros if there is none.

    Examples
    --------
    >>> from PIL import Image, ImageDraw
    >>> from imparo.service.images import pixels
    >>> drawing = Image.new("RGB", (300, 200), "white")
    >>> ImageDraw.Draw(drawing).rectangle((40, 30, 80, 70), fill="black")
    >>> ink = pixels(drawing).reshape(28, 28)
    >>> int(ink.sum()), float(ink[4:24, 4:24].min())
    (400, 1.0)
    """
    ink = _ink(_within(image.convert("L"), _LARGEST_DRAWING))
    field = np.zeros((_SIDE, _SIDE))
    if ink.any():
        rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
        box = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        shape = _resized(box)
        top, left = (
            int(np.clip(round(_SIDE / 2 - center), 0, _SIDE - length))
            for center, length in zip(_center(shape), shape.shape, strict=True)
        )
        field[top : top + shape.shape[0], left : left + shape.shape[1]] = shape / shape.max()
    return field.ravel()


def _ink(grey: "Image") -> Array:
    """Return how much ink there is, relative to the most; zeros if all is paper."""
    light = np.asarray(grey) / 255
    border = np.concatenate([light[0], light[-1], light[1:-1, 0], light[1:-1, -1]])
    paper = np.median(border)
    noise = 1.4826 * np.median(np.abs(border - paper))
    difference = light - paper
    darker, lighter = np.maximum(-difference, 0), np.maximum(difference, 0)
    ink = darker if (darker**2).sum() >= (lighter**2).sum() else lighter
    contrast = ink.max()
    if contrast < max(_LEAST_CONTRAST, _NOISES * noise):
        return np.zeros_like(ink)
    ink = ink / contrast
    # The edges of strokes are paler than what is surely ink, and belong to it.
    rows, columns = (np.flatnonzero((ink > _INK).any(axis=axis)) for axis in (1, 0))
    inside = np.zeros_like(ink)
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    inside[box] = np.where(ink[box] > _PAPER, ink[box], 0)
    return inside


def _resized(ink: Array) -> Array:
    """Return ink with 20 pixels at its longer side."""
    pil: Any = require("PIL.Image", "service")
    height, width = ink.shape
    scale = _INK_SIDE / max(height, width)
    size = max(1, round(scale * width)), max(1, round(scale * height))
    image = pil.fromarray(ink.astype(np.float32)).resize(size, pil.Resampling.BILINEAR)
    return np.asarray(image, dtype=float)


def _center(ink: Array) -> tuple[float, float]:
    """Return the row and the column of the center of mass."""
    rows, columns = (np.arange(length) for length in ink.shape)
    total = ink.sum()
    return float(ink.sum(axis=1) @ rows / total), float(ink.sum(axis=0) @ columns / total)


def _within(image: "Image", size: int) -> "Image":
    """Return an image reduced to a longer side of ``size``, if it is larger."""
    scale = size / max(image.size)
    if scale >= 1:
        return image
    width, height = (max(1, round(scale * side)) for side in image.size)
    return image.resize((width, height), require("PIL.Image", "service").Resampling.BOX)
