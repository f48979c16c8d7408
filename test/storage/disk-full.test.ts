import pg from "pg";
import { describe, expect, it } from "vitest";
import { blobsUnavailable } from "../../src/storage/blobs.ts";
import { toStorageError } from "../../src/storage/postgres/errors.ts";
import { DiskFull, unavailable } from "../../src/storage/unavailable.ts";

const outOfSpace = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
const diskFull = Object.assign(new pg.DatabaseError("could not extend file", 0, "error"), {
  code: "53100",
});

describe("an error for a full disk", () => {
  it.each([
    ["of SQLite", unavailable(new DiskFull("database or disk is full"))],
    ["of Postgres", toStorageError(diskFull)],
    ["of large files", blobsUnavailable(outOfSpace)],
  ])("%s says so, and that it can be tried again", (_, found) => {
    expect(found).toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
    expect(found.message).toMatch(/the disk of the .* is full/);
  });

  it("is not what others are called", () => {
    expect(unavailable(new Error("timeout")).message).not.toContain("full");
    expect(blobsUnavailable(undefined).message).not.toContain("full");
  });
});
