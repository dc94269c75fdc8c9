"""What a run was started with, and what may differ when it is resumed."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from fedwave.data import Dataset, UserSplit
from fedwave.errors import RunError
from fedwave.experiments.schema import Experiment
from fedwave.files import open_file, read_bytes
from fedwave.metric import Metric
from fedwave.settings.chosen import chosen

PACKAGES = ("fedwave", "torch", "numpy", "scipy", "safetensors", "pydantic")
# These decide on the bits; another version of one of them is said when a run is resumed.
NUMERIC_PACKAGES = ("fedwave", "torch", "numpy", "scipy")
# One number for all arithmetic of the package: finished runs are reused only where it is the same. Raise it
# with every change that moves a bit of any result, and with a changed default; CHANGELOG says what moved.
NUMERICS_VERSION = 1
# Settings that do not change what a run is: its label, how far it goes, how it is computed and looked at.
RESUMABLE_KEYS = ("name", "num_rounds", "stop", "execution", "evaluation.every")
EXCEPT = ("execution.precision",)  # it moves more than the last bits
# They move no number of a finished run.
_WORDS = ("name", "execution", "evaluation.training_devices", "cell.description", "cell.preset")


def describe_start(
    experiment: Experiment, data: Dataset, split: UserSplit | None, torch_device: str, metric: Metric
) -> dict[str, Any]:
    """Return what environment.json holds: versions, data, and the settings as they were at the start."""
    return {
        "identity": identity(experiment, data, split),
        "seed": experiment.seed,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "torch_device": torch_device,
        "versions": versions(),
        "dataset": data.name,
        "dataset_source": data.source,
        "dataset_fingerprint": data.fingerprint(),
        **({} if split is None else {"split_fingerprint": split.fingerprint()}),
        "metric": asdict(metric),
        "files": dict(_files(experiment)),
        "settings": experiment.model_dump(mode="json", exclude_none=True),
    }


def identity(experiment: Experiment, data: Dataset, split: UserSplit | None) -> str:
    """Return 16 hex digits that name the run: the same for all that compute the same numbers."""
    essential = {
        key: value
        for key, value in flatten(experiment.model_dump(mode="json", exclude_none=True)).items()
        if not _may_change(key)
    }
    return digest([essential, data.fingerprint(), None if split is None else split.fingerprint()])


def run_key(experiment: Experiment, *variant: str) -> str:
    """Return 16 hex digits that are known before any data is read: runs of one key have the same numbers.

    Settings at their defaults are not in it, so that one added later leaves the keys of finished runs.
    ``variant`` names what is done with the settings other than ``fedwave run`` does.
    """
    settings = flatten(chosen(experiment))
    essential = {
        name: value
        for name, value in settings.items()
        if name in EXCEPT or not any(name == word or name.startswith(f"{word}.") for word in _WORDS)
    }
    return digest([NUMERICS_VERSION, essential, *variant])


def digest(content: Any) -> str:
    """Return 16 hex digits that name plain values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def versions() -> dict[str, str | None]:
    """Return the installed versions of the packages that matter."""
    return {name: _version(name) for name in PACKAGES}


def processor(description: Path = Path("/proc/cpuinfo")) -> str:
    """Return what kind of processor computes: another one may round the last bits of a product otherwise."""
    try:
        lines = read_bytes(description).decode(errors="replace").partition("\n\n")[0].splitlines()
    except OSError:
        lines = []
    found = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "model name" not in found:
        return platform.processor() or platform.machine()
    return f"{found['model name']}, family {found.get('cpu family')}, model {found.get('model')}"


def require_same_run(
    folder: Path,
    recorded: Mapping[str, Any],
    experiment: Experiment,
    data: Dataset,
    split: UserSplit | None,
) -> None:
    """Raise if settings, data or files are not those that the run was started with."""
    _require_settings(folder, recorded, experiment)
    if recorded.get("dataset_fingerprint") != data.fingerprint():
        raise RunError(
            f"{folder} was started on other data: fingerprint {recorded.get('dataset_fingerprint')}, "
            f"now {data.fingerprint()} from {data.source}. Point --data-dir or FEDWAVE_DATA to it."
        )
    given = None if split is None else split.fingerprint()
    if recorded.get("split_fingerprint") != given:
        raise RunError(
            f"{folder} was started with another split of the data among devices: fingerprint "
            f"{recorded.get('split_fingerprint')}, now {given}. Restore partition.path, or give resume_run "
            "the same split."
        )
    files = recorded.get("files")
    for key, fingerprint in _files(experiment):
        before = files.get(key) if isinstance(files, dict) else None
        if before != fingerprint:
            raise RunError(
                f"{folder} was started with another file {key}: fingerprint {before}, now {fingerprint}. "
                "Restore the file; two networks in one table would tell nothing."
            )


def differences_of_place(recorded: Mapping[str, Any], torch_device: str) -> tuple[str, ...]:
    """Return what is not as it was at the start and may move the last bits, one line each."""
    then = recorded.get("versions")
    then = then if isinstance(then, dict) else {}
    found = [
        f"the run was started with {name} {then.get(name)}, now {now}: its bits may differ from here on."
        for name, now in versions().items()
        if name in NUMERIC_PACKAGES and then.get(name) != now
    ]
    device = recorded.get("torch_device")
    if device is not None and device != torch_device:
        found.append(
            f"the run was started on {device}, now {torch_device}: its bits may differ from here on."
        )
    kind = recorded.get("processor")
    if kind is not None and kind != processor():
        found.append(
            f"the run was started on a processor {kind}, now {processor()}: its bits may differ from here on."
        )
    return tuple(found)


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as one table of dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def setting_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the keys of two flat settings that differ, with both values; None where a side has none."""
    keys = sorted(set(before) | set(after))
    return {k: (before.get(k), after.get(k)) for k in keys if before.get(k) != after.get(k)}


def _require_settings(folder: Path, recorded: Mapping[str, Any], experiment: Experiment) -> None:
    started = recorded.get("settings")
    if not isinstance(started, Mapping):
        raise RunError(
            f"{folder} does not say what its run was started with: environment.json has no settings. "
            "Restore that file, or start the run anew elsewhere."
        )
    now = flatten(experiment.model_dump(mode="json", exclude_none=True))
    changed = setting_differences(flatten(started), now)
    forbidden = {key: values for key, values in changed.items() if not _may_change(key)}
    if forbidden:
        shown = ", ".join(f"{key} was {old!r}, is {new!r}" for key, (old, new) in list(forbidden.items())[:3])
        more = f" and {len(forbidden) - 3} more" if len(forbidden) > 3 else ""
        raise RunError(
            f"{folder}/config.toml is not what the run was started with: {shown}{more}. Only "
            f"{', '.join(RESUMABLE_KEYS)} may change ({EXCEPT[0]} not); put the rest back, or start another "
            "run."
        )


def _may_change(key: str) -> bool:
    return key not in EXCEPT and any(key == name or key.startswith(f"{name}.") for name in RESUMABLE_KEYS)


def _files(experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Yield the setting and fingerprint of every file that the run reads while it goes on."""
    settings = flatten(experiment.model_dump(mode="json", exclude_none=True))
    for key, value in settings.items():
        # The dataset and a split have fingerprints of their own; a warm start counts once, at the start.
        if key.split(".")[-1] == "path" and key not in ("data.dataset.path", "partition.path", "model.path"):
            yield key, _file_fingerprint(Path(str(value)))


def _file_fingerprint(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with open_file(path) as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise RunError(f"cannot read {path}: {error.strerror}. The run needs it; restore it.") from error
    return digest.hexdigest()[:16]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
