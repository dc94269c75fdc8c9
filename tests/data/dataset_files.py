"""Writes small dataset files in their publishers' formats."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def idx_bytes(values: NDArray[np.uint8]) -> bytes:
    return struct.pack(f">{1 + values.ndim}I", 0x0800 + values.ndim, *values.shape) + values.tobytes()


def write_fashion_mnist(
    folder: Path, *, prefix: str = "train", num_images: int = 20, ending: str = ".gz"
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(num_images)
    images = rng.integers(0, 256, size=(num_images, 28, 28), dtype=np.uint8)
    labels = (np.arange(num_images) % 10).astype(np.uint8)
    pack: Callable[[bytes], bytes] = gzip.compress if ending else bytes
    (folder / f"{prefix}-images-idx3-ubyte{ending}").write_bytes(pack(idx_bytes(images)))
    (folder / f"{prefix}-labels-idx1-ubyte{ending}").write_bytes(pack(idx_bytes(labels)))


def write_cifar_10(folder: Path, *names: str, num_images: int = 20) -> NDArray[np.uint8]:
    """Write batches as the publisher does (protocol 2, bytes as text) and return the images of the last."""
    folder.mkdir(parents=True, exist_ok=True)
    meta = {"label_names": [f"class {index}" for index in range(10)]}
    (folder / "batches.meta").write_bytes(pickle.dumps(meta, protocol=2))
    images = np.empty((0, 3072), dtype=np.uint8)
    for seed, name in enumerate(names):
        images = np.random.default_rng(seed).integers(0, 256, size=(num_images, 3072), dtype=np.uint8)
        batch = {"data": images, "labels": [index % 10 for index in range(num_images)]}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    return images


def picture_bytes(size: tuple[int, int] = (64, 64), *, mode: str = "RGB", grey_level: int = 100) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, grey_level if mode == "L" else (grey_level, 0, 255)).save(buffer, format="JPEG")
    return buffer.getvalue()


def write_tiny_imagenet(root: Path) -> None:
    """Write two classes, two training photos each (one is grey), and two validation photos."""
    root.mkdir(parents=True)
    (root / "wnids.txt").write_text("n02\nn01\n")
    (root / "words.txt").write_text("n01\tcat, kitty\nn02\tdog\nn99\tnot here\n")
    for wnid in ("n01", "n02"):
        folder = root / "train" / wnid / "images"
        folder.mkdir(parents=True)
        (folder / f"{wnid}_0.JPEG").write_bytes(picture_bytes(mode="L"))
        (folder / f"{wnid}_10.JPEG").write_bytes(picture_bytes(grey_level=200))
    (root / "val" / "images").mkdir(parents=True)
    for index in range(2):
        (root / "val" / "images" / f"val_{index}.JPEG").write_bytes(picture_bytes(grey_level=10))
    (root / "val" / "val_annotations.txt").write_text(
        "val_0.JPEG\tn01\t0\t0\t9\t9\nval_1.JPEG\tn02\t0\t0\t9\t9\n"
    )
