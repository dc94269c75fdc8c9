"""A checkpoint as bytes: the state's tensors, whose run and round they are, and a checksum over all of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from fedwave.learning import Parameters


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """All that a run goes on from. ``tables`` says of each table how much of it the state counts on."""

    identity: str  # of the run
    next_round: int
    tables: Mapping[str, tuple[int, str]]  # bytes and their SHA-256, by name
    tensors: Parameters

    def to_bytes(self) -> bytes:
        """Return a safetensors file."""
        # One entry: safetensors writes several in any order, and equal checkpoints have equal bytes.
        about = json.dumps({**self._about(), "sha256": self._sha256()})
        return tensor_bytes(self.tensors, {"run": about})

    @classmethod
    def from_bytes(cls, content: bytes) -> Checkpoint:
        """Return what ``to_bytes`` gave away; raise a ``ValueError`` if anything of it has changed."""
        try:
            tensors = load(content)
            about = json.loads(_metadata(content)["run"])
            found = cls(about["identity"], about["next_round"], _tables(about.get("tables")), tensors)
        except SafetensorError as error:
            raise ValueError(str(error)) from error
        except (KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError("it does not say which run and round it is of") from error
        if not isinstance(found.identity, str) or type(found.next_round) is not int:
            raise ValueError("it does not say which run and round it is of")
        if "sha256" not in about:
            raise ValueError("it has no checksum, so an older version of fedwave wrote it")
        if about["sha256"] != found._sha256():
            raise ValueError("its content does not have the checksum that it was written with")
        return found

    def _about(self) -> dict[str, Any]:
        return {"identity": self.identity, "next_round": self.next_round, "tables": dict(self.tables)}

    def _sha256(self) -> str:
        """Return the checksum of everything: names, types, shapes and values of the tensors, and the rest."""
        digest = hashlib.sha256()
        forms = {name: [str(one.dtype), list(one.shape)] for name, one in self.tensors.items()}
        digest.update(json.dumps([self._about(), forms], sort_keys=True).encode())
        for name in sorted(self.tensors):
            values = self.tensors[name].cpu().contiguous().reshape(-1)
            digest.update(values.view(torch.uint8).numpy().data)
        return digest.hexdigest()


def tensor_bytes(tensors: Parameters, metadata: dict[str, str]) -> bytes:
    """Return tensors as a safetensors file."""
    return save({name: value.cpu().contiguous() for name, value in tensors.items()}, metadata)


def _metadata(content: bytes) -> Mapping[str, str]:
    """Return what a safetensors file says beside its tensors: eight bytes of length, then JSON."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return dict(header.get("__metadata__", {}))


def _tables(given: Any) -> dict[str, tuple[int, str]]:
    return {str(name): (size, sha256) for name, (size, sha256) in (given or {}).items()}
