"""The adapter answers as ``bentoml serve`` does, byte for byte."""

from __future__ import annotations

from pathlib import Path

import bentoml
import httpx
import pytest

from calling import execute, incoming
from cases import EIGHT, ROOTS, Case
from conftest import Hosted
from serving import ask
from tessera.sdk.executable import CallError


@pytest.mark.parametrize("case", EIGHT, ids=str)
def test_answers_what_bentoml_serve_answers(
    case: Case, eight: Hosted, served_eight: httpx.Client, tmp_path: Path
) -> None:
    compare(case, eight, served_eight, tmp_path)


@pytest.mark.parametrize("case", ROOTS, ids=str)
def test_takes_a_value_as_the_body_like_bentoml_serve(
    case: Case, roots: Hosted, served_roots: httpx.Client, tmp_path: Path
) -> None:
    compare(case, roots, served_roots, tmp_path)


@pytest.mark.parametrize("case", [each for each in EIGHT if each.files], ids=str)
def test_reads_large_files_from_disk(case: Case, eight: Hosted, tmp_path: Path) -> None:
    in_memory = eight.run(execute(eight.service, incoming(eight.service, case, tmp_path)))
    on_disk = incoming(eight.service, case, tmp_path, on_disk=True)
    assert eight.run(execute(eight.service, on_disk)) == in_memory


def compare(case: Case, hosted: Hosted, served: httpx.Client, folder: Path) -> None:
    if case.broken_in == bentoml.__version__:
        pytest.skip("BentoML's own server fails with it")
    theirs = ask(served, case)
    call = incoming(hosted.service, case, folder)
    if case.fails:
        assert theirs.is_error
        with pytest.raises((CallError, ValueError)):
            hosted.run(execute(hosted.service, call))
        return
    assert hosted.run(execute(hosted.service, call)) == theirs.content
    said = None if call.response is None else call.response.status
    assert (said or 200) == theirs.status_code
