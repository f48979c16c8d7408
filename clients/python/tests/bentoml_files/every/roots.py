"""One value as the body: a parameter before ``/``, from BentoML 1.4."""

from datetime import date
from pathlib import Path
from typing import Any

import bentoml
import numpy as np
import pandas as pd
from PIL.Image import Image

from .models import Checked, Person, Tags


class Roots:
    @bentoml.api
    def root_text(self, value: str, /) -> str:
        return value

    @bentoml.api
    def root_integer(self, value: int, /) -> int:
        return value

    @bentoml.api
    def root_flag(self, value: bool = True, /) -> bool:
        return value

    @bentoml.api
    def root_numbers(self, value: list[float], /) -> list[float]:
        return value

    @bentoml.api
    def root_mapping(self, value: dict[str, Any], /) -> dict[str, Any]:
        return value

    @bentoml.api
    def root_optional(self, value: int | None = None, /) -> int | None:
        return value

    @bentoml.api
    def root_person(self, value: Person, /) -> Person:
        return value

    @bentoml.api
    def root_checked(self, value: Checked, /) -> int:
        return value.high - value.low

    @bentoml.api
    def root_tags(self, value: Tags, /) -> list[str]:
        return value.root

    @bentoml.api
    def root_day(self, value: date, /) -> date:
        return value

    @bentoml.api
    def root_file(self, value: Path, /) -> str:
        return value.read_text()

    @bentoml.api
    def root_picture(self, value: Image, /) -> list[int]:
        return list(value.size)

    @bentoml.api
    def root_bytes(self, value: bytes, /) -> int:
        return len(value)

    @bentoml.api
    def root_array(self, value: np.ndarray, /) -> np.ndarray:
        return value

    @bentoml.api
    def root_table(self, value: pd.DataFrame, /) -> pd.DataFrame:
        return value
