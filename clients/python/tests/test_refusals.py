"""What cannot work is refused when the service is loaded, in one line that says what to do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tessera.sdk.executable import ServiceError
from tessera.sdk.loading import load_service

HEAD = """
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal
from pydantic import BaseModel, Field, HttpUrl
from tessera import (
    Batch, BatchContext, Context, File, FileType, api, counter, gauge, histogram, service, task,
)

class Page(BaseModel):
    text: str

@service(name="s")
class S:
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.setattr("sys.path", [*sys.path])

    def loaded(method: str) -> None:
        path = tmp_path / "refused.py"
        path.write_text(HEAD + "".join(f"    {line}\n" for line in method.splitlines()))
        load_service(str(path))

    return loaded


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("@task(retry=3)", "@task read has no option retry; did you mean retries?"),
        ("@api(time_out=3)", "@api read has no option time_out; did you mean timeout?"),
        ("@api(retries=3)", "@api read: retries is an option of @task, not of @api"),
        ("@task(idempotent=True)", "@task read: idempotent is an option of @api, not of @task"),
        ("@task(cache=True)", "@task read has no option cache; there are: name, description, "),
    ],
)
def test_an_option_that_is_not_known(load: Callable[[str], None], option: str, said: str) -> None:
    with pytest.raises(ServiceError) as refused:
        load(f"{option}\ndef read(self, text: str) -> str: ...")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("service(nam='a')", "@service has no option nam; did you mean name?"),
        ("Batch(maxsize=3)", "Batch has no option maxsize; did you mean max_size?"),
        ("FileType('a/b', max_byte=3)", "FileType has no option max_byte; did you mean max_bytes?"),
        ("counter('refused', label=['a'])", "counter() has no option label; did you mean labels?"),
        ("gauge('refused', aggregate='max')", "; did you mean aggregator?"),
        ("histogram('refused', bucket=[1])", "; did you mean buckets?"),
    ],
)
def test_an_option_that_is_not_known_of_what_a_service_is_made_of(
    load: Callable[[str], None], made: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ServiceError) as refused:
        load(f"made = {made}")
    path = tmp_path / "refused.py"
    assert str(refused.value).startswith(f"{path}:")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("batch=32", "batch must be a Batch, such as Batch(max_size=32), not 32"),
        ("batch={'max_size': 32}", "batch must be a Batch, such as Batch(max_size=32), not {"),
        ("batch=Batch(max_size='3')", "batch.max_size must be a whole number from 1 to 1,000"),
        ("batch=Batch(max_bytes=1.5)", "batch.max_bytes must be a whole number from 1 to"),
        ("batch=Batch(key=3)", "batch.key must be the dotted path of an argument"),
        ("name=3", "the name must be a text, not 3"),
        ("description=3", "the description must be a text"),
    ],
)
def test_an_option_of_another_type(load: Callable[[str], None], option: str, said: str) -> None:
    with pytest.raises(ServiceError) as refused:
        load(f"@api({option})\ndef read(self, texts: list[str]) -> list[str]: ...")
    assert said in str(refused.value)


def test_a_batch_without_lists(load: Callable[[str], None]) -> None:
    with pytest.raises(ServiceError, match="with batch the function takes lists, and this takes"):
        load("@api(batch=Batch())\ndef read(self) -> list[str]: ...")
    load("@api(batch=Batch())\ndef read(self, ctx: BatchContext) -> list[str]: ...")


@pytest.mark.parametrize("kind", ["staticmethod", "classmethod"])
def test_a_method_that_is_not_called_on_the_instance(
    load: Callable[[str], None], kind: str
) -> None:
    for decorators in (f"@{kind}\n@api", f"@api\n@{kind}"):
        with pytest.raises(ServiceError, match=f"remove @{kind} and make self its first"):
            load(f"{decorators}\ndef read(text: str) -> str: ...")


@pytest.mark.parametrize(
    "method",
    [
        "def read(self, text) -> str: ...",
        "def read(text: str) -> str: ...",
        "def read(self, count: int = 'one') -> str: ...",
        "def read(self) -> str:\n    yield ''",
    ],
)
def test_the_file_the_line_the_class_and_the_method_are_named(
    load: Callable[[str], None], method: str, tmp_path: Path
) -> None:
    with pytest.raises(ServiceError) as refused:
        load(f"@api\n{method}")
    line = HEAD.count("\n") + 1
    place = f'{tmp_path / "refused.py"}:{line}: in S.read: service "s", endpoint "read"'
    assert str(refused.value).startswith(place)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "parameters",
    ["", "text: str", "text: str, times: int = 1", "*texts: str", "cls, text: str"],
)
def test_a_method_without_self(load: Callable[[str], None], parameters: str) -> None:
    with pytest.raises(ServiceError) as refused:
        load(f"@api\ndef read({parameters}) -> str: ...")
    rest = parameters.removeprefix("cls, ")
    written = f"def read(self{', ' if rest else ''}{rest})"
    assert "the first parameter of a method is its instance" in str(refused.value)
    assert written in str(refused.value)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("def read(self, text) -> str: ...", "parameter text has no type hint"),
        ("def read(self, text: str, ctx) -> str: ...", "write ctx: Context"),
        ("def read(self, text: str): ...", "its result has no type hint"),
        ("async def read(self, text: str): ...", "its result has no type hint"),
        ("def read(self, text: str):\n    yield text", "its result has no type hint"),
    ],
)
def test_a_missing_type_hint(load: Callable[[str], None], method: str, said: str) -> None:
    with pytest.raises(ServiceError, match=said):
        load(f"@api\n{method}")


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("def read(self) -> str:\n    yield ''", r"write -> Iterator\[str\], not -> str"),
        ("def read(self) -> list[str]:\n    yield ''", r"write -> Iterator\["),
        ("def read(self) -> AsyncIterator[str]:\n    yield ''", "its result is an iterator"),
        ("async def read(self) -> str:\n    yield ''", r"write -> AsyncIterator\[str\]"),
        ("async def read(self) -> Iterator[str]:\n    yield ''", r"write -> AsyncIterator\["),
    ],
)
def test_a_generator_that_says_another_result(
    load: Callable[[str], None], method: str, said: str
) -> None:
    with pytest.raises(ServiceError, match=said):
        load(f"@api\n{method}")


@pytest.mark.parametrize(
    ("parameter", "said"),
    [
        ('count: int = "one"', "its default 'one' is not what its type hint says"),
        ('count: int = "1"', "its default '1' is not what its type hint says"),
        ("text: str = None", r"add \| None to its type hint"),
        ("flags: list[int] = {}", "should be a valid list"),
        ('kind: Literal["a", "b"] = "c"', "should be 'a' or 'b'"),
        ('page: Page = {"text": ""}', "its default"),
        ("size: int = Field(default='big')", "its default 'big'"),
        ("file: File = 'scan.png'", "its default 'scan.png'"),
        ("url: HttpUrl = 'http://a'", "the function would get a str, not a HttpUrl"),
    ],
)
def test_a_default_of_another_type(load: Callable[[str], None], parameter: str, said: str) -> None:
    name = parameter.partition(":")[0]
    with pytest.raises(ServiceError, match=said) as refused:
        load(f"@api\ndef read(self, {parameter}) -> str: ...")
    assert f'service "s", endpoint "read", parameter {name}' in str(refused.value)


@pytest.mark.parametrize(
    "parameter",
    [
        "ratio: float = 1",
        "text: str | None = None",
        "anything: Any = None",
        "page: Page = Page(text='')",
        "limit: Annotated[int, Field(ge=1)] = 0",
        "pages: list[Page] = Field(default_factory=list)",
        "scan: File | None = None",
        "folder: Path = Path('scans')",
        "data: bytes = b''",
        "tags: list[str] = ()",
        "kinds: set[str] = frozenset()",
    ],
)
def test_a_default_that_its_type_hint_takes_is_none(
    load: Callable[[str], None], parameter: str
) -> None:
    load(f"@api\ndef read(self, {parameter}) -> str: ...")


def test_a_name_that_the_package_does_not_have_is_found_by_type_checkers(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    path = tmp_path / "wrong.py"
    path.write_text("from tessera import Nope, api\nimport tessera\ntessera.nowhere\n")
    source = Path(__file__).parents[1] / "src"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", "--config-file=", str(path)],
        env={"MYPYPATH": str(source), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert 'Module "tessera" has no attribute "Nope"' in done.stdout
    assert 'Module has no attribute "nowhere"' in done.stdout
    assert '"api"' not in done.stdout
