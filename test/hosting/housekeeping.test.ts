import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { keepHouse } from "../../src/hosting/housekeeping.ts";
import { FolderBlobStore } from "../../src/storage/blobs/folder.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import { Folder } from "../e2e/start/platform.ts";
import { artifactOf, HOUR_MS, HostingPlatform } from "../storage/hosting/fixtures.ts";

it("deletes uploads that were cut off, files that no revision has, and those of deleted deployments", async () => {
  using folder = new Folder();
  await using storage = new SqliteStorage(":memory:");
  await storage.start();
  const platform = await HostingPlatform.on(storage);
  const { organizationId, keptUntilMs, hosting } = platform;
  const blobs = new FolderBlobStore(join(folder.path, "blobs"));
  await blobs.start();
  const newId = createIdSource();
  const upload = async (content: string, isCut: boolean): Promise<string> => {
    const blobId = newId();
    await platform.register(content, blobId);
    await blobs.write(
      blobId,
      (async function* () {
        yield Buffer.from(content);
      })(),
    );
    if (!isCut) {
      await hosting.finishFile({ organizationId, blobId, keptUntilMs });
    }
    return blobId;
  };
  await upload("cut off", true);
  await upload("of no revision", false);
  const used = await upload("of a revision", false);
  await hosting.createRevision(platform.newRevision(artifactOf("of a revision")));
  const later = (ms: number) => keepHouse({ hosting, blobs, now: () => platform.nowMs + ms });
  const there = () => readdirSync(join(folder.path, "blobs"));
  await later(0);
  expect(there()).toHaveLength(3);
  await later(2 * HOUR_MS);
  expect(there()).toEqual([used]);
  await platform.remove();
  await later(4 * HOUR_MS);
  await later(6 * HOUR_MS);
  expect(there()).toEqual([]);
});
