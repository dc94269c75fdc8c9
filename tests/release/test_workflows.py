"""GitHub's files name what there is: targets, files, interpreters, fields. actionlint was run by hand."""

from __future__ import annotations

import re
import shlex
import tomllib
from typing import Any

import pytest
import yaml

from tools.docs.pages import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FIELDS = {"input", "textarea", "dropdown", "checkboxes", "markdown"}


def loaded(path: Any) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)  # "on" stays a word


def jobs() -> list[Any]:
    return [
        pytest.param(job, id=f"{path.stem}-{name}")
        for path in WORKFLOWS
        for name, job in loaded(path)["jobs"].items()
    ]


def test_there_are_tests_docs_and_releases():
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "test"]
    assert loaded(WORKFLOWS[1])["on"] == {"push": {"tags": ["v*"]}}


@pytest.mark.parametrize("job", jobs())
def test_a_step_calls_a_target_or_a_module_that_exists(job):
    assert int(job.get("timeout-minutes", "10")) <= 120
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for step in job["steps"]:
        assert ("run" in step) != ("uses" in step)
        if "uses" in step:
            assert re.search(r"(@|:)[\w./]+$", step["uses"]), "an action or image without a version"
            continue
        words = shlex.split(step["run"])
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), words[1]
        elif words[:2] == ["python", "-m"]:
            assert (ROOT / words[2].replace(".", "/")).with_suffix(".py").is_file()
        else:
            assert words[:2] == ["sudo", "apt-get"]


def test_the_matrix_has_the_interpreters_that_the_package_claims():
    claimed = [
        line.rpartition(" ")[2]
        for line in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
    ]
    matrix = loaded(WORKFLOWS[2])["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"


def test_what_publishes_runs_after_what_tests_and_keeps_no_password():
    parts = loaded(WORKFLOWS[1])["jobs"]
    assert parts["publish"]["needs"] == "build"
    assert parts["publish"]["permissions"] == {"id-token": "write"}
    assert loaded(WORKFLOWS[1])["permissions"] == {"contents": "read"}
    steps = [step.get("run", "") for step in parts["build"]["steps"]]
    ordered = [step for step in steps if step]
    assert ordered[0].startswith("python -m tools.release --tag")
    assert ordered[1:] == ["make test", "make dist", "make test-wheel"]
    assert "secrets." not in WORKFLOWS[1].read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_has_fields_that_github_knows(path):
    form = loaded(path)
    assert {"name", "description", "body"} <= set(form) <= {"name", "description", "body", "labels", "title"}
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    for field in form["body"]:
        assert field["type"] in FIELDS
        assert field["attributes"]["label"]
        assert ("options" in field["attributes"]) == (field["type"] in ("dropdown", "checkboxes"))
    assert any(field.get("validations", {}).get("required") == "true" for field in form["body"])


def test_the_forms_are_those_of_bugs_features_and_methods_with_their_paper():
    assert [path.stem for path in FORMS] == ["bug", "feature", "method"]
    first = loaded(FORMS[2])["body"][0]
    assert (first["id"], first["validations"]["required"]) == ("paper", "true")
