"""Settings that cannot be: one line each, before anything is written."""

from __future__ import annotations

import pytest

from tests.misuse.conftest import Fedwave

# setting: words of the message
SETTINGS = [
    ("num_rounds=0", "num_rounds must be greater than or equal to 1, got 0"),
    ("num_rounds=-1", "num_rounds must be greater than or equal to 1, got -1"),
    ("num_rounds=1.5", "num_rounds must be a valid integer, got 1.5"),
    ("num_rounds=true", "num_rounds must be a valid integer, got True"),
    ("num_rounds=1" + "0" * 30, "num_rounds must be less than or equal to 1000000000, got 1000"),
    ("num_rounds=1e30", "num_rounds must be a valid integer, got 1e+30"),
    ("num_rounds=nan", "num_rounds must be a valid integer, got nan"),
    ("num_rounds=", "num_rounds must be a valid integer, got ''"),
    ("num_rounds=" + "1" * 5000, "num_rounds must be a valid integer, got '1111"),
    ("num_rounds=0x" + "f" * 5000, "num_rounds must be less than or equal to 1000000000, got a int"),
    ("num_rounds=1979-05-27", "num_rounds must be a valid integer, got datetime.date"),
    ("seed=-1", "seed must be greater than or equal to 0"),
    ("seed=0.5", "seed must be a valid integer"),
    ("seed=" + "9" * 25, "seed must be less than or equal to 9223372036854775807"),
    ("seed=abc", "seed must be a valid integer, got 'abc'"),
    ("seed=[1]", "seed must be a valid integer, got [1]"),
    ("seed={a=1}", "seed must be a valid integer, got a table"),
    ("seed", '-s takes KEY=VALUE, got "seed"'),
    ("=3", '-s takes KEY=VALUE, got "=3"'),
    ("a.b.c.d=1", 'unknown key "a"'),
    ("name=3", "name must be a valid string, got 3"),
    ("name.x=3", "name must be a valid string, got a table"),
    ('name="a\\nb"', "name: it must be one line of printable text"),
    ('name="\\u001b[31mred"', "name: it must be one line of printable text"),
    ("name[0]=3", 'unknown key "name[0]". Did you mean "name"?'),
    ("partition.num_devices=1000000000000", "1000000000000 devices need at least 2000000000000 samples"),
    ("partition.num_devices=900", "900 devices need at least 1800 samples"),
    ("partition.num_devices=1", "the number of training devices (1), got 10"),
    ("partition.num_devices=0", "num_devices must be a whole number >= 1, got 0"),
    ("partition.heldout_fraction=1.0", "partition.heldout_fraction must be less than 1"),
    ("partition.heldout_fraction=-0.1", "partition.heldout_fraction must be greater than or equal to 0"),
    ("partition.shots=1000000000", "Use fewer devices, fewer samples per class, or a larger dataset"),
    ("partition.classes_per_device=99", "classes_per_device is 99 but the dataset has samples of 10"),
    ("partition.mean_samples_per_class=1e300", "std_samples_per_class are too large, got 1e+300"),
    ("partition.std_samples_per_class=1e300", "std_samples_per_class are too large"),
    ("partition.kind=given", "digits does not say which device owns which sample"),
    ("partition.path=x", "It is an option of given"),
    ("model.channels=[]", "model.channels must have at least 1 item, got []"),
    ("model.channels=[1000000000]", "(3, 3, 1, 1000000000) would need 201 GiB of memory, but there are"),
    ("model.channels=[0]", "model.channels[0] must be greater than or equal to 1"),
    ("model.channels=5", "model.channels must be a valid list, got 5"),
    ("model.kind=meta", 'model: there is no model "meta"'),
    ("model.kind=", 'model: there is no model ""'),
    ("model.kind=:", "cannot import"),
    ("model.kind=:b", "cannot import"),
    ("model.hidden=[3]", 'model.hidden". It is an option of mlp, not of "cnn"'),
    ("model.path=.", "cannot be read as safetensors"),
    ("model.path=a\0b", "a file's name must not be empty or hold a zero byte"),
    ("model=3", "model must be a name, or a table with a kind, got 3"),
    ("model={}x", 'model: there is no model "{}x"'),
    ("execution.device=meta", 'torch cannot use "meta" (a meta device holds no values)'),
    ("execution.device=", 'torch cannot use ""'),
    ("execution.device=[/red]", 'torch cannot use "[/red]"'),
    ("execution.device=cuda:99", 'torch cannot use "cuda:99"'),
    ("execution.workers=-1", "execution.workers must be greater than or equal to 0"),
    ("execution.checkpoint_every=0", "execution.checkpoint_every must be greater than or equal to 1"),
    ("execution.tensorboard=1", "execution.tensorboard must be a valid boolean, got 1"),
    ("algorithm.inner_lr=nan", "algorithm.inner_lr must be a finite number, got nan"),
    ("algorithm.inner_lr=inf", "algorithm.inner_lr must be a finite number, got inf"),
    ("algorithm.inner_lr=-1", "algorithm.inner_lr must be greater than or equal to 0"),
    ("algorithm.meta_lr=0", "algorithm.meta_lr must be greater than 0"),
    ("algorithm.meta_lr=true", "algorithm.meta_lr must be a valid number, got True"),
    ("algorithm.num_local_steps=1000000000000", "1,000,000,000,000 local steps of 30 devices would need"),
    ("algorithm.query_batch_size=0", "algorithm.query_batch_size must be greater than or equal to 1"),
    ("algorithm.server_step={momentum=2}", 'It is an option of momentum, not of "mean"'),
    ('algorithm.server_step={kind="clip-norm",max_norm="mean"}', "algorithm.server_step.max_norm must be"),
    (
        'algorithm.server_step={kind="clip-norm",max_norm=0}',
        'max_norm must be positive and finite, or "median"',
    ),
    (
        'algorithm.server_step={kind="trimmed-mean",num_trimmed=0.2}',
        "algorithm.server_step.num_trimmed must be",
    ),
    ("algorithm.server_step=3", "algorithm.server_step must be a name, or a table with a kind, got 3"),
    ("selection.num_selected=0", "selection.num_selected must be greater than or equal to 1 or 'auto'"),
    ("selection.num_selected=many", "selection.num_selected must be a valid integer or 'auto'"),
    ("selection.num_selected=31", "number of training devices (30), got 31"),
    ("selection.policy.x=1", 'unknown key "selection.policy.x". Choose one of: num_candidates, '),
    ("selection.similarity_penalty=-1", "selection.similarity_penalty must be greater than or equal to 0"),
    ("evaluation.every=0", "evaluation.every must be greater than or equal to 1"),
    ("evaluation.num_steps=-1", "evaluation.num_steps must be greater than or equal to 0"),
    ("evaluation.inner_lr=nan", "evaluation.inner_lr must be a finite number"),
    ("data.dataset=arrays", "Dataset arrays needs the option path"),
    ("data.dataset=image-folder", "Dataset image-folder needs the option path"),
    ("data.dataset=passed-from-python", "stands for arrays that only the Python program has"),
    ("data.dataset.path=x", "It is an option of arrays and image-folder"),
    ("data.split=none", "data.split must be 'all', 'train' or 'test'"),
    ("data.num_samples=5", "it is data.dataset.num_samples now"),
    ("data.standardise=x", "data.standardise must be 'pixel' or 'none'"),
    ("data=[]", "data must be a table, got []"),
    ("cell=paper", "cell must be a table, got 'paper'"),
    ("cell.preset=paper-", 'there is no cell preset "paper-". Did you mean "paper"?'),
    ("cell.preset=[]", 'there is no cell preset "[]"'),
    ("cell={}", "cell needs a preset or a channel of its own"),
    ("scheme=nope", 'There is no scheme "nope"'),
    ("scheme=3", 'There is no scheme "3"'),
    ("extends=x", 'unknown key "extends"'),
]


@pytest.mark.parametrize(("setting", "said"), SETTINGS, ids=[setting[:40] for setting, _ in SETTINGS])
def test_a_setting_that_cannot_be_is_one_line(fedwave: Fedwave, setting: str, said: str) -> None:
    fedwave.refuses(["run", "digits/nufm", "-q", "-o", "out", "-s", setting], said)


SIZES = [
    (
        "digits/nufm",
        ["data.dataset=synthetic", "data.dataset.num_samples=1000000000000"],
        "would need 720 TiB",
    ),
    (
        "digits/nufm",
        ["data.dataset=synthetic", "data.dataset.shape=[100000,100000,100000]"],
        "would need 8.68 EiB",
    ),
    (
        "digits/nufm",
        ["data.dataset=synthetic", "data.dataset.shape=[]"],
        "shape must have at least one number",
    ),
    (
        "digits/nufm",
        ["data.dataset=sinusoids", "data.dataset.num_devices=1000000000000", "partition.kind=given"],
        "1,000,000,000,000 waves of 20 points would need 728 TiB of memory",
    ),
    ("digits/nufm", ["model.kind=mlp", "model.hidden=[1000000000000]"], "would need 1.36 PiB of memory"),
    ("digits/ural", ["cell.num_blocks=100000000000"], "30 devices and 100,000,000,000 blocks would need"),
]


@pytest.mark.parametrize(("preset", "settings", "said"), SIZES)
def test_a_size_that_cannot_be_is_refused_with_the_memory_it_needs(
    fedwave: Fedwave, preset: str, settings: list[str], said: str
) -> None:
    words = [word for setting in settings for word in ("-s", setting)]
    fedwave.refuses(["run", preset, "-q", "-o", "out", *words], said)


FILES = [
    (b"\xff\xfe", "the experiment file e.toml is not a text file in UTF-8"),
    (b"a=", "is not valid TOML: Invalid value"),
    (b"[a", "is not valid TOML: Expected ']'"),
    (b"x=1", 'unknown key "x"'),
    (b"seed=1\nseed=2", "is not valid TOML: Cannot overwrite a value"),
    (b"extends='e.toml'", "extends goes in a circle: e.toml -> e.toml"),
    (b"extends=3", "extends must be a preset name or a .toml path, got 3"),
    (b"extends='absent'", '"absent" is neither a preset nor a .toml file'),
    (b"a='''\n", "is not valid TOML"),
    (b"a=" + b"[" * 5000, "is not valid TOML: it is nested too deeply"),
    (b"seed=" + b"1" * 5000, "is not valid TOML: Exceeds the limit (4300 digits)"),
    (b"name='\xe9'", "not a text file in UTF-8"),
    (b'partition={kind="given",path="a\\u0000b"}', "partition.path: a file's name must not be empty or hold"),
    (b'data={dataset={kind="arrays",path="a\\u0000b"}}', "data.dataset.path: a file's name"),
    (b"data = 1", "data must be a table, got 1"),
    (b"[data]\ndataset=1", "data.dataset must be a name, or a table with a kind, got 1"),
    (b"[[data]]\ndataset='digits'", "data must be a table"),
]


@pytest.mark.parametrize(("content", "said"), FILES, ids=[str(content[:30]) for content, _ in FILES])
def test_a_file_that_is_no_experiment_is_one_line(fedwave: Fedwave, content: bytes, said: str) -> None:
    (fedwave.folder / "e.toml").write_bytes(content)
    fedwave.refuses(["run", "e.toml", "-q", "-o", "out"], said)


def test_a_byte_order_mark_is_fine(fedwave: Fedwave) -> None:
    text = "num_rounds = 1\nmodel.kind = 'softmax'\npartition.num_devices = 8\nselection.num_selected = 2\n"
    (fedwave.folder / "bom.toml").write_bytes(b"\xef\xbb\xbf" + text.encode())
    done = fedwave("run", "bom.toml", "-q", "-o", "out")
    assert done.code == 0, done.stderr
    assert (fedwave.folder / "out" / "summary.json").exists()


SMALL = ["-s", "num_rounds=1", "-s", "partition.num_devices=8", "-s", "selection.num_selected=2"]
SMALL += ["-s", "model.kind=softmax"]


@pytest.mark.parametrize(
    "name", ["[/red]", "[bold]x", r"$\frac", "$$", "_hidden", "名前", "a{b}", "%s", "'", '"', " ", "x" * 300]
)
def test_a_name_is_only_a_name(fedwave: Fedwave, name: str) -> None:
    quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    done = fedwave("run", "digits/nufm", "-o", "out", *SMALL, "-s", f"name={quoted}")
    assert done.code == 0, done.stderr
    assert name in done.stdout
    assert (fedwave.folder / "out" / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    compared = fedwave("compare", "out", "--plot", "both.svg")
    assert compared.code == 0, compared.stderr
    assert name in compared.stdout
