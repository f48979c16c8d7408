/** ModelService: models of an organization, pushed, listed, read and deleted. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type ImportModelRequest,
  type ModelSchema,
  type ModelService,
  ModelState,
  type ModelVersion,
  ModelVersionSchema,
} from "../../../gen/tessera/v1/model_pb.js";
import { ArtifactError } from "../../artifacts/artifact-error.ts";
import {
  type CheckedModelIndex,
  verifyModelIndex,
  warningsOf,
} from "../../artifacts/model-index.ts";
import { mayUseSecrets } from "../../auth/grants.ts";
import { deploymentSecretContext, type KeyRing, modelTokenContext } from "../../auth/keys.ts";
import { SharedBound } from "../../collections/shared-bound.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { Ceilings } from "../../deployments/ceilings.ts";
import { type Problem, problem } from "../../errors.ts";
import { type ModelSource, pinSource, sourceUnavailable } from "../../hosting/models/source.ts";
import { deed, type Member, memberOf, type Sources } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { BlobStore } from "../../storage/blobs.ts";
import type { ArtifactFiles } from "../../storage/hosting/files.ts";
import type {
  ModelRecord,
  ModelStorage,
  ModelVersionKey,
  ModelVersionRecord,
} from "../../storage/hosting/models.ts";
import type { Revisions } from "../../storage/hosting/revisions.ts";
import type { SecretStorage } from "../../storage/hosting/secrets.ts";
import { durationFromMs, timestampFromMs } from "../../time/messages.ts";
import { deploymentNotFound, isName } from "../deployment/refusals.ts";
import { Followers, type ShownById, shownById } from "../follow.ts";
import { PageTokens } from "../page.ts";
import { artifactInvalid } from "../upload.ts";

/** Models of an organization, so that a list of them stays readable. */
const MAX_MODELS = 1_000;
/** Versions of a model: older ones are deleted by people, who know what still needs them. */
const MAX_MODEL_VERSIONS = 1_000;
/** Versions of each model in a list of models. */
const MAX_LISTED_MODEL_VERSIONS = 10;
/** Sources that are asked at a time what they have; each answer may take some memory. */
const MAX_PINS = 20;
/** How long a source may take to say what it has. */
const PIN_TIMEOUT_MS = 120_000;
/** Bytes of one message of ReadModel. */
const MAX_READ_CHUNK_BYTES = 256 * 1024;

/** Bounds of what the storage takes. */
const modelBounds = { maxModels: MAX_MODELS, maxVersions: MAX_MODEL_VERSIONS } as const;

interface ModelServiceOptions extends Sources {
  readonly hosting: ModelStorage &
    Pick<Revisions, "getIndex"> &
    Pick<ArtifactFiles, "listArtifactFiles"> &
    Pick<SecretStorage, "getSecrets">;
  readonly blobs: Pick<BlobStore, "read">;
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly keys: Pick<KeyRing, "seal" | "unseal">;
  readonly ceilings: Ceilings;
  /** Where models are imported from. */
  readonly modelSources: readonly ModelSource[];
}

/** ModelService over the hosting storage. */
export function modelService(
  options: ModelServiceOptions,
): Partial<ServiceImpl<typeof ModelService>> {
  const { hosting, keys, ceilings, modelSources } = options;
  const pins = new SharedBound(MAX_PINS);
  return {
    async pushModel({ model, index }, ctx) {
      const { organizationId, organization, by } = memberOf(ctx);
      const { text, digest, paths, warnings, index: checked } = readIndex(index);
      const files = checked.files.map(({ sha256, size }) => ({ sha256, sizeBytes: size }));
      checkSize(
        files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
        ceilings,
      );
      const pushed = await hosting.pushModel({
        ...deed(by, options),
        ...{ organizationId, model, warnings, ...modelBounds },
        artifact: { digest, index: text, endpoints: [], files },
        files: paths.length,
      });
      switch (pushed.outcome) {
        case "pushed":
          return toVersionMessage(pushed.version);
        case "files_missing":
          throw problem(
            "FILES_MISSING",
            `${pushed.files.length} files of the model are not here, or not any more: ask with FindMissingFiles, upload those, and try again`,
          );
        case "sizes_differ":
          throw problem(
            "ARTIFACT_INVALID",
            `${pushed.files.length} files have another size than the index says, such as ${pushed.files[0]}`,
          );
        case "limit":
          throw tooMany(organization, model);
      }
    },

    async importModel(req, ctx) {
      const { source, model: asked, tokenSecret } = req;
      const { organizationId, organization, by } = memberOf(ctx);
      const token = await tokenOf(req, memberOf(ctx), options);
      if (!pins.take(organizationId)) {
        const message = `no more sources can be asked here at a time (${pins.refusal(organizationId)}): try again`;
        throw problem("SERVER_BUSY", message, { retryAfterMs: 2_000 });
      }
      const signal = AbortSignal.any([ctx.signal, AbortSignal.timeout(PIN_TIMEOUT_MS)]);
      const found = await pinSource(modelSources, source, { organization, token, signal })
        .catch((err) => {
          ctx.signal.throwIfAborted();
          throw signal.aborted
            ? sourceUnavailable("the source takes too long to answer", err)
            : err;
        })
        .finally(() => pins.give(organizationId));
      const { pinned, repository, commit, files } = found;
      const model = asked || found.name;
      const sizeBytes = files.reduce((sum, { size }) => sum + size, 0);
      checkSize(sizeBytes, ceilings);
      const imported = await hosting.importModel({
        ...deed(by, options),
        ...{ organizationId, model, source, pinned, repository, commit, sizeBytes },
        ...modelBounds,
        files: files.length,
        warnings: warningsOf(files.map(({ path }) => path)),
        ...(tokenSecret && { tokenSecret: `${tokenSecret.deployment}/${tokenSecret.name}` }),
        sealedToken:
          token === ""
            ? undefined
            : keys.seal(token, modelTokenContext(organizationId, model, pinned)),
      });
      if (imported.outcome === "limit") {
        throw tooMany(organization, model);
      }
      return toVersionMessage(imported.version);
    },

    async listModels(req, ctx) {
      const { organizationId, organization } = memberOf(ctx);
      const tokens = new PageTokens({ method: "ListModels", filter: [organizationId] });
      const page = await hosting.listModels({
        ...tokens.query(req),
        organizationId,
        versions: MAX_LISTED_MODEL_VERSIONS,
      });
      return {
        models: page.items.map((record) => toModelMessage(organization, record)),
        nextPageToken: tokens.after(page.next),
      };
    },

    async getModel({ model }, ctx) {
      const { organizationId, organization } = memberOf(ctx);
      const versions = MAX_MODEL_VERSIONS;
      const found = await hosting.getModel({ organizationId, model, versions });
      if (found === undefined) {
        throw modelNotFound(model);
      }
      return toModelMessage(organization, found);
    },

    async deleteModel({ model, version }, ctx) {
      const { organizationId, by } = memberOf(ctx);
      const deleted = await hosting.deleteModel({
        ...deed(by, options),
        ...{ organizationId, model, ...(version > 0 && { version }) },
      });
      switch (deleted.outcome) {
        case "deleted":
          return {};
        case "not_found":
          throw modelNotFound(model, version);
        case "in_use": {
          const names = deleted.deployments.join(", ");
          throw problem(
            "MODEL_IN_USE",
            `${nameOf(model, version)} is used by revisions of ${names}: deploy them with another version, which pushes the old revisions out, or delete them`,
            { metadata: { deployments: names } },
          );
        }
      }
    },

    watchModel: watchModel(hosting),
    readModel: readModel(options),
  };
}

/**
 * The token for the source: the one that is given, or a secret of a deployment. Only the Hub is
 * sent one. Throws REQUEST_INVALID, ACCESS_DENIED or DEPLOYMENT_NOT_FOUND.
 */
async function tokenOf(
  { source, token, tokenSecret }: ImportModelRequest,
  { principal, organizationId }: Member,
  { accounts, hosting, keys }: Pick<ModelServiceOptions, "accounts" | "hosting" | "keys">,
): Promise<string> {
  if (tokenSecret === undefined) {
    return token;
  }
  const { deployment, name } = tokenSecret;
  if (token !== "" || !source.startsWith("hf://")) {
    const description = "goes with a source hf://OWNER/NAME, and in place of token";
    throw problem("REQUEST_INVALID", `token_secret ${description}`, {
      violations: [{ field: "token_secret", description }],
    });
  }
  if (!mayUseSecrets(principal, organizationId)) {
    throw problem(
      "ACCESS_DENIED",
      `the secret ${name} of deployment ${deployment} is for those who may use secrets: an admin, or a token of the organization. Or give the token of Hugging Face with this call (tessera deploy --secret ${name}=@FILE)`,
    );
  }
  const found = isName(deployment)
    ? await accounts.findDeployment({ organizationId, name: deployment })
    : undefined;
  if (found === undefined) {
    throw deploymentNotFound(deployment);
  }
  const { deploymentId } = found;
  const secrets = await hosting.getSecrets({ organizationId, deploymentId });
  const secret = secrets.find((each) => each.name === name);
  if (secret === undefined) {
    const description = `names ${name}, which deployment ${deployment} has not: set it first (tessera deployment update ${deployment} --secret ${name}=@FILE)`;
    throw problem("REQUEST_INVALID", `token_secret ${description}`, {
      violations: [{ field: "token_secret.name", description }],
    });
  }
  return keys.unseal(secret.sealed, deploymentSecretContext(secret));
}

/** WatchModel: one version, read once a second for all who follow it. */
function watchModel(
  hosting: Pick<ModelStorage, "getModelVersion">,
): ServiceImpl<typeof ModelService>["watchModel"] {
  const followers = new Followers<ShownById<ModelVersion>>("models");
  return async function* ({ model, version, followFor }, { values, signal }) {
    const { organizationId } = memberOf({ values });
    const key: ModelVersionKey = { organizationId, model, version };
    const read = async (before?: ShownById<ModelVersion>) => {
      const found = await hosting.getModelVersion(key);
      if (found === undefined) {
        throw modelNotFound(model, version);
      }
      const message = create(ModelVersionSchema, toVersionMessage(found));
      return shownById(ModelVersionSchema, [["", message]], before);
    };
    const only = (state: ShownById<ModelVersion>) => state.get("")?.message ?? {};
    yield* followers.follow(
      {
        organizationId,
        key: JSON.stringify(key),
        read,
        forMs: followFor && durationMs(followFor),
        signal,
      },
      {
        changeOf: (sent, next) => (sent?.get("") === next.get("") ? undefined : only(next)),
        unchanged: only,
        isOver: (state) => state.get("")?.message.state !== ModelState.IMPORTING,
      },
    );
  };
}

/** ReadModel: the index, or one of its files, in messages of a bounded size. */
function readModel({
  hosting,
  blobs,
}: Pick<ModelServiceOptions, "hosting" | "blobs">): ServiceImpl<typeof ModelService>["readModel"] {
  return async function* ({ model, version, sha256 }, { values }) {
    const { organizationId } = memberOf({ values });
    const found = await hosting.getModelVersion({ organizationId, model, version });
    if (found === undefined) {
      throw modelNotFound(model, version);
    }
    const { digest } = found;
    if (digest === undefined) {
      throw problem("MODEL_NOT_READY", `${nameOf(model, version)} is ${found.state}: wait for it`);
    }
    const key = { organizationId, digest };
    if (sha256 === "") {
      yield* inChunks([Buffer.from((await hosting.getIndex(key)) ?? "")]);
      return;
    }
    const [file] = await hosting.listArtifactFiles({ ...key, sha256 });
    if (file === undefined) {
      throw problem("MODEL_NOT_FOUND", `${nameOf(model, version)} has no file ${sha256}`);
    }
    yield* inChunks(blobs.read(file.blobId));
  };
}

async function* inChunks(parts: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) {
  for await (const part of parts) {
    for (let at = 0; at < part.length; at += MAX_READ_CHUNK_BYTES) {
      yield { chunk: part.subarray(at, at + MAX_READ_CHUNK_BYTES) };
    }
  }
}

function readIndex(bytes: Uint8Array): CheckedModelIndex {
  try {
    return verifyModelIndex(
      new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes),
    );
  } catch (err) {
    throw err instanceof ArtifactError
      ? artifactInvalid(err)
      : problem("ARTIFACT_INVALID", "tessera.json is not UTF-8", { cause: err });
  }
}

/** Throws LIMIT_REACHED for more than an organization may store. */
function checkSize(bytes: number, { storageBytes }: Ceilings): void {
  if (bytes > storageBytes) {
    throw problem(
      "LIMIT_REACHED",
      `the files of the model have ${inUnits(bytes)} together, and the operator of this platform allows an organization ${inUnits(storageBytes)} (tessera start --max-organization-storage)`,
    );
  }
}

/** The error for a version more than the organization or the model may have. */
function tooMany(organization: string, model: string): Problem {
  return problem(
    "LIMIT_REACHED",
    `organization ${organization} has ${MAX_MODELS} models, or ${model} has ${MAX_MODEL_VERSIONS} versions: delete some first`,
  );
}

function nameOf(model: string, version: number): string {
  return version === 0 ? `model ${model}` : `version ${version} of model ${model}`;
}

function modelNotFound(model: string, version = 0): Problem {
  return problem("MODEL_NOT_FOUND", `${nameOf(JSON.stringify(model), version)} does not exist`);
}

// Models and their versions as messages.

const STATES = {
  importing: ModelState.IMPORTING,
  ready: ModelState.READY,
  failed: ModelState.FAILED,
} as const;

function toModelMessage(
  organization: string,
  { name, createdAtMs, versionCount, versions }: ModelRecord,
): MessageInitShape<typeof ModelSchema> {
  const createdAt = timestampFromMs(createdAtMs);
  return { organization, name, createdAt, versionCount, versions: versions.map(toVersionMessage) };
}

function toVersionMessage(record: ModelVersionRecord): MessageInitShape<typeof ModelVersionSchema> {
  const { model, version, source, repository, commit, createdBy, warnings, reason } = record;
  const { sizeBytes, bytesDone, bytesPerSecond } = record;
  const isImporting = record.state === "importing";
  const leftMs = ((sizeBytes - bytesDone) / bytesPerSecond) * 1_000;
  return {
    ...{ model, version, source, repository, commit, createdBy, reason },
    state: STATES[record.state],
    digest: record.digest ?? "",
    sizeBytes: BigInt(sizeBytes),
    fileCount: record.files,
    createdAt: timestampFromMs(record.createdAtMs),
    warnings: [...warnings],
    deployments: [...record.deployments],
    ...(isImporting && {
      bytesDone: BigInt(bytesDone),
      bytesPerSecond: BigInt(bytesPerSecond),
      ...(Number.isFinite(leftMs) && { timeLeft: durationFromMs(Math.max(0, leftMs)) }),
    }),
  };
}
