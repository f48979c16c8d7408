import { expect, it } from "vitest";
import { ModelFiles } from "../../../src/api/worker/model-files.ts";
import { BlobMissing } from "../../../src/storage/blobs.ts";

const MODEL = { organizationId: "acme-id", digest: "d".repeat(64) };

it("finds the files of a model that was deleted and is here again", async () => {
  let blobId = "first";
  const files = new ModelFiles({
    hosting: {
      getIndex: async () => "{}",
      listArtifactFiles: async () => [{ sha256: "s", sizeBytes: 3, blobId }],
    },
    blobs: {
      async *read(id) {
        if (id !== blobId) {
          throw new BlobMissing(id);
        }
        yield Buffer.from(id);
      },
    },
  });
  const read = async () => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of files.read({ ...MODEL, sha256: "s" }, { start: 0 })) {
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString();
  };
  expect(await read()).toBe("first");
  blobId = "second";
  await expect(read()).rejects.toThrow(BlobMissing);
  expect(await read()).toBe("second");
});
