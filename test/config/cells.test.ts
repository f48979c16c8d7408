import { describe, expect, it } from "vitest";
import { readCellsConfig } from "../../src/config/start.ts";

const HOME = "postgres://tessera:secret@home:5432/tessera";
const A = "postgres://tessera:secret@a/tessera";
const B = "postgres://tessera:secret@b1:5432,b2:5432/tessera?target_session_attrs=read-write";

const read = (cells: string, database: string | undefined = HOME) =>
  readCellsConfig({}, { TESSERA_CELLS: cells, ...(database && { DATABASE_URL: database }) });

describe("TESSERA_CELLS", () => {
  it("names databases, of which each may have several hosts", () => {
    expect(read(`a=${A}, b-2=${B}`).cells).toEqual([
      { name: "a", database: A },
      { name: "b-2", database: B },
    ]);
    expect(readCellsConfig({}, { DATABASE_URL: HOME }).cells).toEqual([]);
  });

  it.each([
    ["a=./tasks.db", "must be cells such as"],
    [A, "must be cells such as"],
    [`home=${A}`, "none is home: home is not one"],
    [`Ä=${A}`, "must be cells such as"],
    [`a=${A},a=${B}`, "names cell a twice"],
    [`a=${A},b=${A}?sslmode=require`, "gives the cells a and b one database"],
    [`b=${B},c=postgres://other@b2/tessera`, "gives the cells b and c one database"],
    [`a=${HOME}`, "gives cell a the database of DATABASE_URL"],
    ["a=postgres://[/x", "TESSERA_CELLS, cell a: it is not a valid address"],
  ])("refuses %s", (cells, message) => {
    expect(() => read(cells)).toThrow(message);
  });

  it("needs a Postgres as home, and says no password", () => {
    expect(() => read(`a=${A}`, "./tasks.db")).toThrow("whose home is a Postgres, too");
    expect(() => read(`A=${A}`)).toThrow(/^(?!.*secret)/);
  });
});
