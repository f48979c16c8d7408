import { readdir, rename, rm, writeFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { FolderBlobStore } from "../../../src/storage/blobs/folder.ts";
import { TestFolder } from "../sqlite/databases.ts";
import { blobsContract } from "./contract.ts";

blobsContract("a folder", async () => {
  const parent = new TestFolder();
  const folder = parent.file("blobs");
  const store = new FolderBlobStore(folder);
  await store.start();
  return {
    store,
    count: async () => (await readdir(folder)).length,
    // Root may write everywhere, so permissions would not do.
    async breakDown() {
      await rename(folder, `${folder}-away`);
      await writeFile(folder, "in the way");
      return async () => {
        await rm(folder);
        await rename(`${folder}-away`, folder);
      };
    },
    async [Symbol.asyncDispose]() {
      parent[Symbol.dispose]();
    },
  };
});

it("a folder that cannot be made is refused with a message that says what to do", async () => {
  using parent = new TestFolder();
  await writeFile(parent.file("taken"), "");
  const refused = new FolderBlobStore(parent.file("taken/blobs")).start();
  await expect(refused).rejects.toThrow(/cannot keep large files in .*choose another folder/);
});
