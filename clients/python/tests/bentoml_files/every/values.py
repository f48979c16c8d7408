"""Values: those of Python and of pydantic, alone and in collections."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import IPv4Address
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union
from uuid import UUID

import bentoml
from pydantic import (
    AfterValidator,
    AwareDatetime,
    Base64Bytes,
    BeforeValidator,
    ByteSize,
    Field,
    FiniteFloat,
    HttpUrl,
    Json,
    NonNegativeInt,
    PastDate,
    PositiveFloat,
    SecretStr,
    StrictBool,
    StrictInt,
    StrictStr,
    StringConstraints,
    WrapValidator,
)
from typing_extensions import TypedDict


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Corner(NamedTuple):
    x: int
    y: int = 0


class Movie(TypedDict, total=False):
    title: str
    year: int


@dataclass
class Box:
    width: int
    label: str = "box"


def _whole(value: Any, handler: Any) -> int:
    if value == "none":
        return 0
    number: int = handler(value)
    return number


class Values:
    @bentoml.api
    def integer(self, value: int) -> int:
        return value

    @bentoml.api
    def number(self, value: float) -> float:
        return value

    @bentoml.api
    def flag(self, value: bool) -> bool:
        return value

    @bentoml.api
    def text(self, value: str) -> str:
        return value

    @bentoml.api
    def nothing(self, value: None) -> None:
        return value

    @bentoml.api
    async def optional(self, value: Optional[int] = None) -> Optional[int]:  # noqa: UP045
        return value

    @bentoml.api
    def either(self, value: Union[int, str]) -> Union[int, str]:  # noqa: UP007
        return value

    @bentoml.api
    def choice(self, value: Literal["a", "b", 3]) -> Any:
        return value

    @bentoml.api
    def color(self, value: Color) -> Color:
        return value

    @bentoml.api
    def level(self, value: Level = Level.LOW) -> Level:
        return value

    @bentoml.api
    def moment(self, value: datetime) -> datetime:
        return value

    @bentoml.api
    def instant(self, value: AwareDatetime) -> list[datetime]:
        return [value]

    @bentoml.api
    def day(self, value: date) -> date:
        return value

    @bentoml.api
    def hour(self, value: time) -> time:
        return value

    @bentoml.api
    def span(self, value: timedelta) -> timedelta:
        return value

    @bentoml.api
    def identity(self, value: UUID) -> UUID:
        return value

    @bentoml.api
    def amount(self, value: Decimal) -> Decimal:
        return value

    @bentoml.api
    def price(self, value: Annotated[Decimal, Field(max_digits=5, decimal_places=2)]) -> str:
        return str(value)

    @bentoml.api
    def octets(self, value: bytes) -> bytes:
        return value

    @bentoml.api
    def anything(self, value: Any) -> Any:
        return value

    @bentoml.api
    def untyped(self, value):
        return value

    @bentoml.api
    def numbers(self, value: list[int]) -> list[int]:
        return value

    @bentoml.api
    def grid(self, value: list[list[float]]) -> list[list[float]]:
        return value

    @bentoml.api
    def pair(self, value: tuple[int, str]) -> tuple[int, str]:
        return value

    @bentoml.api
    def many(self, value: tuple[int, ...]) -> tuple[int, ...]:
        return value

    @bentoml.api
    def members(self, value: set[int]) -> list[int]:
        return sorted(value)

    @bentoml.api
    def letters(self, value: frozenset[str]) -> list[str]:
        return sorted(value)

    @bentoml.api
    def line(self, value: deque[int]) -> deque[int]:
        return value

    @bentoml.api
    def sequence(self, value: Sequence[str]) -> Sequence[str]:
        return value

    @bentoml.api
    def table_of(self, value: dict[str, int]) -> dict[str, int]:
        return value

    @bentoml.api
    def keyed(self, value: dict[int, str]) -> Mapping[int, str]:
        return value

    @bentoml.api
    def movie(self, value: Movie) -> Movie:
        return value

    @bentoml.api
    def corner(self, value: Corner) -> Corner:
        return value

    @bentoml.api
    def box(self, value: Box) -> Box:
        return value

    @bentoml.api
    def link(self, value: HttpUrl) -> str:
        return str(value)

    @bentoml.api
    def address(self, value: IPv4Address) -> IPv4Address:
        return value

    @bentoml.api
    def secret(self, value: SecretStr) -> str:
        return value.get_secret_value()

    @bentoml.api
    def inner(self, value: Json[list[int]]) -> list[int]:
        return value

    @bentoml.api
    def encoded(self, value: Base64Bytes) -> int:
        return len(value)

    @bentoml.api
    def size(self, value: ByteSize) -> int:
        return value

    @bentoml.api
    def small(self, value: Annotated[int, Field(gt=0, lt=10, multiple_of=2)]) -> int:
        return value

    @bentoml.api
    def word(
        self, value: Annotated[str, StringConstraints(min_length=2, max_length=4, pattern=r"^\w+$")]
    ) -> str:
        return value

    @bentoml.api
    def trimmed(
        self, value: Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)]
    ) -> str:
        return value

    @bentoml.api
    def few(self, value: Annotated[list[int], Field(min_length=1, max_length=3)]) -> int:
        return len(value)

    @bentoml.api
    def earlier(self, value: PastDate) -> date:
        return value

    @bentoml.api
    def strict(self, value: StrictInt, flag: StrictBool = False, text: StrictStr = "") -> list[Any]:
        return [value, flag, text]

    @bentoml.api
    def finite(self, value: FiniteFloat) -> float:
        return value

    @bentoml.api
    def bounded(self, value: NonNegativeInt, by: PositiveFloat = 1.0) -> float:
        return value * by

    @bentoml.api
    def before(
        self, value: Annotated[list[str], BeforeValidator(lambda v: v.split(","))]
    ) -> list[str]:
        return value

    @bentoml.api
    def after(self, value: Annotated[int, AfterValidator(lambda v: v * 2)]) -> int:
        return value

    @bentoml.api
    def wrapped(self, value: Annotated[int, WrapValidator(_whole)]) -> int:
        return value

    @bentoml.api
    def defaults(
        self, a: int, b: str = "b", c: list[int] | None = None, d: float = 0.5, e: bool = True
    ) -> list[Any]:
        return [a, b, c, d, e]

    @bentoml.api
    def described(self, value: int = Field(3, ge=1, description="How many.")) -> int:
        return value

    @bentoml.api
    def no_arguments(self) -> str:
        return "nothing was asked"

    @bentoml.api
    def named(self, first: int = 0, **others: int) -> dict[str, int]:
        return {"first": first, **others}
