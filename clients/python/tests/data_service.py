"""Arrays and tables as JSON and as files, for the client's tests."""

from typing import Annotated

import numpy
import pandas

from tessera import FileType, api, service, task

NPY = FileType("application/x-npy")
CSV = FileType("text/csv")
ARROW = FileType("application/vnd.apache.arrow.file")
PARQUET = FileType("application/vnd.apache.parquet")


@service(name="data")
class Data:
    @api
    def double(self, array: numpy.ndarray) -> numpy.ndarray:
        return array * 2

    @task
    def total(self, table: pandas.DataFrame) -> pandas.DataFrame:
        return table.sum().to_frame().T

    @api
    def missing(self, table: list[dict[str, str | float | None]]) -> int:
        return sum(cell is None for row in table for cell in row.values())

    @api
    def halve(self, array: Annotated[numpy.ndarray, NPY]) -> Annotated[numpy.ndarray, NPY]:
        return array / 2

    @api
    def csv(self, table: Annotated[pandas.DataFrame, CSV]) -> Annotated[pandas.DataFrame, CSV]:
        return table * 2

    @api
    def arrow(
        self, table: Annotated[pandas.DataFrame, ARROW]
    ) -> Annotated[pandas.DataFrame, ARROW]:
        return table * 2

    @api
    def parquet(
        self, table: Annotated[pandas.DataFrame, PARQUET]
    ) -> Annotated[pandas.DataFrame, PARQUET]:
        return table * 2
