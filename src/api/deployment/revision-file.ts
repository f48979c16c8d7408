/** GetRevisionFile: a file of a revision as text, within a bound. */
import type { ServiceImpl } from "@connectrpc/connect";
import type { DeploymentService } from "../../../gen/tessera/v1/deployment_pb.js";
import type { IndexedFile } from "../../artifacts/index-file.ts";
import { problem } from "../../errors.ts";
import { memberOf } from "../../server/rpc/engine/caller.ts";
import { type BlobStore, blobsUnavailable } from "../../storage/blobs.ts";
import type { ArtifactFiles } from "../../storage/hosting/files.ts";
import { type CompareOptions, revisionReader } from "./compare.ts";

/** Bytes of a file that is shown: more than people write into one. */
const MAX_SHOWN_FILE_BYTES = 512 * 1024;

export interface RevisionFileOptions extends CompareOptions {
  readonly hosting: CompareOptions["hosting"] & Pick<ArtifactFiles, "listArtifactFiles">;
  readonly blobs: Pick<BlobStore, "read">;
}

type GetRevisionFile = ServiceImpl<typeof DeploymentService>["getRevisionFile"];

/** The implementation of GetRevisionFile. */
export function getRevisionFile(options: RevisionFileOptions): GetRevisionFile {
  return async ({ deployment, revision: wanted, path }, ctx) => {
    const member = memberOf(ctx);
    const reader = await revisionReader(options, member, deployment);
    const revision = reader.find(wanted);
    const { files } = await reader.index(revision);
    const file = files.find((one) => one.path === path);
    if (file === undefined) {
      throw problem(
        "REVISION_NOT_FOUND",
        `revision ${wanted} of ${deployment} has no file ${JSON.stringify(path)}`,
      );
    }
    const text = await readText(file, { ...options, ...member, digest: revision.digest });
    return {
      path,
      sizeBytes: BigInt(file.size),
      ...(text !== undefined && { text }),
    };
  };
}

/** The text of a file; undefined for a file that is binary, or too large to be shown. */
async function readText(
  { sha256, size }: IndexedFile,
  {
    hosting,
    blobs,
    organizationId,
    digest,
  }: RevisionFileOptions & { readonly organizationId: string; readonly digest: string },
): Promise<string | undefined> {
  if (size > MAX_SHOWN_FILE_BYTES) {
    return undefined;
  }
  const [stored] = await hosting.listArtifactFiles({ organizationId, digest, sha256 });
  const chunks: Uint8Array[] = [];
  try {
    if (stored === undefined) {
      throw new Error(`the file ${sha256} of artifact ${digest} is not in the blob store`);
    }
    for await (const chunk of blobs.read(stored.blobId, { start: 0, end: size })) {
      chunks.push(chunk);
    }
  } catch (err) {
    throw blobsUnavailable(err);
  }
  const bytes = Buffer.concat(chunks);
  if (bytes.includes(0)) {
    return undefined;
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
