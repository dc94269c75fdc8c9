"""Datasets, and how their samples are shared out among devices."""

from __future__ import annotations

from fedwave.data.dataset import Dataset, dataset_from_arrays
from fedwave.data.dealing import DeviceData, deal, split_heldout
from fedwave.data.partitions import PARTITION, PARTITIONS, divide, partition, partition_options
from fedwave.data.sources import DATASET, DATASETS, dataset_options, load_dataset
from fedwave.data.sources.download import download_dataset
from fedwave.data.standardisation import pixel_statistics, standardise, standardise_warnings
from fedwave.data.user_split import (
    UserSplit,
    devices_of_split,
    heldout_of_split,
    split_of_dataset,
    user_split,
)
from fedwave.data.user_split_file import read_split

__all__ = [
    "DATASET",
    "DATASETS",
    "PARTITION",
    "PARTITIONS",
    "Dataset",
    "DeviceData",
    "UserSplit",
    "dataset_from_arrays",
    "dataset_options",
    "deal",
    "devices_of_split",
    "divide",
    "download_dataset",
    "heldout_of_split",
    "load_dataset",
    "partition",
    "partition_options",
    "pixel_statistics",
    "read_split",
    "split_heldout",
    "split_of_dataset",
    "standardise",
    "standardise_warnings",
    "user_split",
]
