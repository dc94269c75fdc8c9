"""The tests have the tree of the package: a module's name says where it is tested, and vice versa."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "fedwave"

# Folders by topic: whole runs, wrong use of everything, what is written about it.
TOPICS = {"docs", "examples", "golden", "misuse", "release", "whole_runs"}
# What concerns the package as a whole, or a part of it together with all that it stands on.
CROSS_CUTTING = {
    "test_imports.py": "what may import what",
    "test_mirror.py": "this file",
    "cli/test_base_install.py": "every command without any extra",
    "explore/test_browser.py": "the page in a real browser",
    "flower/test_extra.py": "what holds without Flower",
    "flower/test_flower_docs.py": "the page on Flower, with the pins of Flower",
    "flower/test_processes.py": "a federation of real processes",
    "reproduce/test_committed.py": "the reproduction that is published",
    "selection/test_policies.py": "one contract for all policies",
    "server/test_planners.py": "one contract for all planners",
    "server/test_standalone.py": "a server without the rest of the package",
    "wireless/test_cell_docs.py": "the page on cells",
    "wireless/test_light_imports.py": "a cell without the rest of the package",
}
# Parts of one kind are tested side by side, in the test of their room, where they need the same oracle.
ROOMS_OF_PARTS = {
    "data/sources",
    "learning/models",
    "learning/rules",
    "learning/server_steps",
    "learning/tasks",
}
# A step on the way is tested at its end, where there is something to compare it with.
TESTED_THROUGH = {
    "__main__.py": "cli/test_guard.py",
    "allocation/access/alike.py": "allocation/access/test_band.py",
    "allocation/access/block_options.py": "allocation/access/test_block_search.py",
    "allocation/access/checks.py": "allocation/access/test_solve.py",
    "allocation/access/delay_range.py": "allocation/access/test_best_delay.py",
    "allocation/problem_fields.py": "allocation/test_problem.py",
    "cli/allocate_tables.py": "cli/test_allocate.py",
    "cli/reproduce.py": "reproduce/test_reproduction.py",
    "data/dealing.py": "data/partitions/test_partitions.py",
    "data/formats/idx.py": "data/sources/test_fashion_mnist.py",
    "data/formats/images.py": "data/sources/test_tiny_imagenet.py",
    "data/formats/npz.py": "data/sources/test_user_data.py",
    "devices/ray/tasks.py": "devices/ray/test_executor.py",
    "flower/messages.py": "flower/test_message_log.py",
    "flower/parameters.py": "flower/test_strategy.py",
    "learning/batch.py": "learning/test_meta_gradient.py",
    "learning/models/fast_cnn/convolution_products.py": "learning/models/fast_cnn/test_layer.py",
    "learning/models/fast_cnn/patches.py": "learning/models/fast_cnn/test_compiled.py",
    "learning/models/fast_cnn/pooling.py": "learning/models/fast_cnn/test_compiled.py",
    "native_library.py": "learning/models/fast_cnn/test_compiled_cache.py",
    "learning/objective.py": "learning/test_meta_gradient.py",
    "reproduce/cell_charts.py": "reproduce/test_reproduction.py",
    "reproduce/figure_point.py": "reproduce/test_items.py",
    "reproduce/learning_charts.py": "reproduce/test_reproduction.py",
    "reproduce/outputs.py": "reproduce/test_reproduction.py",
    "reproduce/panels.py": "reproduce/test_reproduction.py",
    "reproduce/profile.py": "reproduce/test_items.py",
    "reproduce/report_pages.py": "reproduce/test_reproduction.py",
    "reproduce/report_texts.py": "reproduce/test_reproduction.py",
    "reproduce/scheme_styles.py": "reproduce/test_reproduction.py",
    "reproduce/scale_charts.py": "reproduce/test_reproduction.py",
    "runs/measures.py": "runs/test_comparison.py",
    "selection/policy.py": "selection/test_policies.py",
    "server/exclusion.py": "server/test_real_devices.py",
    "simulation/device_columns.py": "simulation/test_columns.py",
    "simulation/facts.py": "simulation/test_columns.py",
    "simulation/round_columns.py": "simulation/test_columns.py",
}

MODULES = sorted(
    file.relative_to(SOURCE).as_posix() for file in SOURCE.rglob("*.py") if file.name != "__init__.py"
)
TEST_FILES = sorted(
    file.relative_to(TESTS).as_posix()
    for file in TESTS.rglob("test_*.py")
    if file.relative_to(TESTS).parts[0] not in TOPICS
)


def computes(module: str) -> bool:
    """Whether any function has a body: a module of values, columns or protocols has nothing to test."""
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(not isinstance(line, ast.Expr) for node in functions for line in node.body)


def twin_of(module: str) -> str:
    """Return the test file of a module."""
    return Path(module).with_name(f"test_{Path(module).name}").as_posix()


def where(module: str) -> str:
    """Return where a module is tested: in its twin, with the parts of its kind, or through another module."""
    twin, room = twin_of(module), module.rpartition("/")[0]
    if room in ROOMS_OF_PARTS and not (TESTS / twin).exists():
        return f"{room}/test_{Path(room).name}.py"
    return TESTED_THROUGH.get(module, twin)


def is_beside_its_source(test: str) -> bool:
    """Whether its name is that of a module or folder there, or of the room, also with an aspect after it."""
    room = SOURCE / Path(test).parent
    words = Path(test).stem.removeprefix("test_").split("_")
    names = ["_".join(words[:count]) for count in range(len(words), 0, -1)]
    return any(
        (room / f"{name}.py").exists() or (room / name).is_dir() or (room.is_dir() and name == room.name)
        for name in names
    )


@pytest.mark.parametrize("module", [module for module in MODULES if computes(module)])
def test_a_module_is_tested_where_one_looks_for_it(module: str) -> None:
    assert (TESTS / where(module)).is_file(), f"no tests/{where(module)}"


@pytest.mark.parametrize("test", [test for test in TEST_FILES if test not in CROSS_CUTTING])
def test_a_test_stands_beside_what_it_tests(test: str) -> None:
    assert is_beside_its_source(test), "call it after its module, or move it to a folder by topic"


def test_exceptions_are_needed_and_there() -> None:
    for module, test in TESTED_THROUGH.items():
        assert (SOURCE / module).is_file(), module
        assert (TESTS / test).is_file(), test
        assert not (TESTS / twin_of(module)).exists(), f"{module} has a twin of its own now"
    for room in ROOMS_OF_PARTS:
        assert (TESTS / room / f"test_{Path(room).name}.py").is_file(), room
    for test in CROSS_CUTTING:
        assert (TESTS / test).is_file(), test
    assert all((TESTS / topic).is_dir() for topic in TOPICS)
