"""Datasets, and how their samples are shared out among devices."""

from __future__ import annotations

from fedwave.data.catalogue import DATASETS, dataset_options, load_dataset
from fedwave.data.dataset import Dataset, dataset_from_arrays
from fedwave.data.download import download_dataset
from fedwave.data.own_split import OwnSplit, own_split, split_of_dataset
from fedwave.data.partition import PARTITIONS, DeviceData, partition, partition_options, split_heldout
from fedwave.data.split_devices import devices_of_split, heldout_of_split
from fedwave.data.split_file import read_split
from fedwave.data.standardisation import pixel_statistics, standardise, standardise_warnings

__all__ = [
    "DATASETS",
    "PARTITIONS",
    "Dataset",
    "DeviceData",
    "OwnSplit",
    "dataset_from_arrays",
    "dataset_options",
    "devices_of_split",
    "download_dataset",
    "heldout_of_split",
    "load_dataset",
    "own_split",
    "partition",
    "partition_options",
    "pixel_statistics",
    "read_split",
    "split_heldout",
    "split_of_dataset",
    "standardise",
    "standardise_warnings",
]
