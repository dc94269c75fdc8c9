"""Datasets, and how their samples are shared out among devices."""

from __future__ import annotations

from fedwave.data.catalogue import DATASETS, load_dataset
from fedwave.data.dataset import Dataset, dataset_from_arrays, pixel_statistics, standardise
from fedwave.data.download import download_dataset
from fedwave.data.partition import PARTITIONS, DeviceData, partition, split_heldout

__all__ = [
    "DATASETS",
    "PARTITIONS",
    "Dataset",
    "DeviceData",
    "dataset_from_arrays",
    "download_dataset",
    "load_dataset",
    "partition",
    "pixel_statistics",
    "split_heldout",
    "standardise",
]
