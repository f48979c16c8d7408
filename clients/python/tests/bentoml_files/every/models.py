"""Models of pydantic: nested, with aliases, validators, and other configurations."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar

import bentoml
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    computed_field,
    field_serializer,
    field_validator,
    model_validator,
)

T = TypeVar("T")


class Street(BaseModel):
    name: str = Field(min_length=1)
    number: int | None = None


class Person(BaseModel):
    name: str
    born: datetime | None = None
    streets: list[Street] = []
    balance: Decimal = Decimal("1.50")


class Aliased(BaseModel):
    given: str = Field(alias="givenName")
    family: str = Field("", alias="familyName")


class ByName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    given: str = Field(alias="givenName")


class Choices(BaseModel):
    name: str = Field(validation_alias=AliasChoices("name", "label", AliasPath("names", 0)))


class Serialized(BaseModel):
    name: str = Field(serialization_alias="theName")


class Checked(BaseModel):
    low: int
    high: int

    @field_validator("low", mode="before")
    @classmethod
    def _low(cls, value: Any) -> Any:
        return 0 if value == "least" else value

    @field_validator("high")
    @classmethod
    def _high(cls, value: int) -> int:
        if value == 13:
            raise ValueError("13 is no height")
        return value

    @model_validator(mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        return {"low": value[0], "high": value[1]} if isinstance(value, list) else value

    @model_validator(mode="after")
    def _order(self) -> Checked:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    a: int
    at: datetime | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool = True


class Tree(BaseModel):
    value: int
    children: list[Tree] = []


class Page(BaseModel, Generic[T]):
    items: list[T]
    total: int = 0


class Square(BaseModel):
    side: float

    @computed_field
    @property
    def area(self) -> float:
        return self.side**2


class Shown(BaseModel):
    at: datetime

    @field_serializer("at")
    def _at(self, at: datetime) -> str:
        return at.strftime("%d.%m.%Y")


class Tags(RootModel[list[str]]):
    pass


class Sample(BaseModel):
    text: str = Field(examples=["hello"])
    times: int = Field(1, ge=1, le=3)


class Models:
    @bentoml.api
    def person(self, value: Person) -> Person:
        return value

    @bentoml.api
    async def people(self, value: list[Person]) -> dict[str, Person]:
        return {each.name: each for each in value}

    @bentoml.api
    def aliased(self, value: Aliased) -> Aliased:
        return value

    @bentoml.api
    def by_name(self, value: ByName) -> str:
        return value.given

    @bentoml.api
    def choices(self, value: Choices) -> str:
        return value.name

    @bentoml.api
    def serialized(self, value: Serialized) -> Serialized:
        return value

    @bentoml.api
    def checked(self, value: Checked) -> Checked:
        return value

    @bentoml.api
    def closed(self, value: Closed) -> Closed:
        return value

    @bentoml.api
    def opened(self, value: Open) -> Open:
        return value

    @bentoml.api
    def strictly(self, value: Strict) -> Strict:
        return value

    @bentoml.api
    def pet(self, value: Annotated[Cat | Dog, Field(discriminator="kind")]) -> Cat | Dog:
        return value

    @bentoml.api
    def cat_or_text(self, value: Cat | str) -> Any:
        return value

    @bentoml.api
    def tree(self, value: Tree) -> Tree:
        return value

    @bentoml.api
    def page_of(self, value: Page[Street]) -> Page[Street]:
        return value

    @bentoml.api
    def square(self, value: Square) -> Square:
        return value

    @bentoml.api
    def shown(self, value: Shown) -> Shown:
        return value

    @bentoml.api
    def tags(self, value: Tags) -> Tags:
        return value

    @bentoml.api
    def maybe_person(self, value: Person | None = None) -> Person | None:
        return value

    @bentoml.api(input_spec=Sample)
    def specified(self, **params: Any) -> str:
        return str(params["text"]) * int(params["times"])

    @bentoml.api(output_spec=Square)
    def output_specified(self, side: float) -> Any:
        return Square(side=side)
