/**
 * UploadFile: streams one file of an artifact into the blob store and verifies
 * its digest on the way. A file that does not match its header is swept.
 */
import type { ServiceImpl } from "@connectrpc/connect";
import type { DeploymentService, UploadFileRequest } from "../../gen/tessera/v1/deployment_pb.js";
import { ArtifactError } from "../artifacts/artifact-error.ts";
import { verified } from "../artifacts/verified.ts";
import { SharedBound } from "../collections/shared-bound.ts";
import { inUnits } from "../collections/sizes.ts";
import type { Ceilings } from "../deployments/ceilings.ts";
import { type Problem, problem } from "../errors.ts";
import { memberOf, type Sources } from "../server/rpc/engine/caller.ts";
import type { BlobStore } from "../storage/blobs.ts";
import type { ArtifactFiles } from "../storage/hosting/files.ts";
import { timestampFromMs } from "../time/messages.ts";
import { within } from "../time/race.ts";
import { invalidField } from "./violations.ts";

/**
 * How long an uploaded file may belong to no revision: one that was broken off goes on a day later
 * with what is missing.
 */
export const UPLOADED_FILE_TTL_MS = 36 * 60 * 60_000;

/** Concurrent uploads on this node; each holds a few chunks. */
const MAX_UPLOADS = 200;

/** How long an upload may send nothing before it is ended. */
const UPLOAD_IDLE_TIMEOUT_MS = 60_000;

export interface UploadFileOptions extends Sources {
  readonly hosting: Pick<ArtifactFiles, "registerFile" | "finishFile" | "abandonFile">;
  readonly blobs: Pick<BlobStore, "write">;
  readonly ceilings: Ceilings;
}

type UploadFile = ServiceImpl<typeof DeploymentService>["uploadFile"];

/** The implementation of UploadFile. */
export function uploadFile({
  hosting,
  blobs,
  ceilings,
  now,
  newId,
}: UploadFileOptions): UploadFile {
  const uploads = new SharedBound(MAX_UPLOADS);
  return async (messages, ctx) => {
    const { organizationId, organization } = memberOf(ctx);
    const chunks = new Chunks(messages);
    const { sha256, sizeBytes } = await chunks.header();
    const size = Number(sizeBytes);
    const file = { path: sha256, size, sha256, executable: false };
    const keptUntilMs = now() + UPLOADED_FILE_TTL_MS;
    const kept = { keptUntil: timestampFromMs(keptUntilMs) };
    const key = { organizationId, blobId: newId() };
    if (!uploads.take(organizationId)) {
      const message = `no more files can be uploaded here at a time (${uploads.refusal(organizationId)}): try again`;
      throw problem("SERVER_BUSY", message, { retryAfterMs: 2_000 });
    }
    try {
      const { outcome } = await hosting.registerFile({
        ...key,
        sha256,
        sizeBytes: size,
        keptUntilMs,
        maxBytes: ceilings.storageBytes,
      });
      switch (outcome) {
        case "there":
          // The body is read all the same: a caller that gets the answer while it sends takes it for an error.
          for await (const _ of verified(chunks, file)) {
          }
          return kept;
        case "limit":
          throw problem(
            "LIMIT_REACHED",
            `the files of organization ${organization} would be larger than ${inUnits(ceilings.storageBytes)} together, which is what the operator of this platform allows (tessera start --max-organization-storage): delete deployments and models that are not needed`,
          );
        case "registered":
      }
      try {
        await blobs.write(key.blobId, verified(chunks, file));
        const finished = await hosting.finishFile({ ...key, keptUntilMs });
        if (finished.outcome === "gone") {
          throw problem("FILES_MISSING", "the upload took too long: deploy again");
        }
      } catch (err) {
        // If this fails too, the file is swept when its time is over.
        await hosting.abandonFile({ ...key, nowMs: now() }).catch(() => undefined);
        throw err;
      }
      return kept;
    } catch (err) {
      throw explained(err);
    } finally {
      uploads.give(organizationId);
    }
  };
}

/** The bytes of an upload, after its header. */
class Chunks implements AsyncIterable<Uint8Array> {
  readonly #messages: AsyncIterator<UploadFileRequest>;

  constructor(messages: AsyncIterable<UploadFileRequest>) {
    this.#messages = messages[Symbol.asyncIterator]();
  }

  #next() {
    return within(this.#messages.next(), UPLOAD_IDLE_TIMEOUT_MS, stoodStill);
  }

  async header() {
    const { value: message } = await this.#next();
    if (message?.part.case !== "header") {
      throw invalidField(
        "header",
        "has to be in the first message, with the file's digest and size",
      );
    }
    return message.part.value;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const { done, value: message } = await this.#next();
      if (done) {
        return;
      }
      if (message.part.case !== "chunk") {
        throw invalidField("header", "can be in the first message only");
      }
      yield message.part.value;
    }
  }
}

function stoodStill(): never {
  const message = `the upload stood still for ${UPLOAD_IDLE_TIMEOUT_MS / 1_000} s: try again`;
  throw problem("CALL_TIMEOUT", message);
}

function explained(err: unknown): unknown {
  return err instanceof ArtifactError ? artifactInvalid(err) : err;
}

/** The caller's error for an invalid artifact. */
export function artifactInvalid(err: ArtifactError): Problem {
  return problem("ARTIFACT_INVALID", err.message, { cause: err });
}
