/** The methods of DeploymentService about revisions. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  CreateRevisionRequest,
  DeploymentSchema,
  DeploymentService,
  RevisionSource,
} from "../../../gen/tessera/v1/deployment_pb.js";
import type { DeclaredSchedules } from "../../../gen/tessera/v1/schedule_pb.js";
import { ArtifactError } from "../../artifacts/artifact-error.ts";
import { EnvironmentError, PYTHON_UNAVAILABLE } from "../../artifacts/environments/environment.ts";
import { IMAGES_UNAVAILABLE, type Images } from "../../artifacts/images/images.ts";
import {
  type ArtifactIndex,
  digestOf,
  IMAGE_LOCK_NAME,
  type PythonFacts,
  SYSTEM_LOCK_NAME,
  verifyIndex,
} from "../../artifacts/index-file.ts";
import { LAYERS_UNAVAILABLE, type Layers } from "../../artifacts/layers/layers.ts";
import { mayUseSecrets, openableBy } from "../../auth/grants.ts";
import type { KeyRing } from "../../auth/keys.ts";
import { faultOfName } from "../../auth/names.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { Ceilings } from "../../deployments/ceilings.ts";
import {
  gpuNeedOf,
  type Placement,
  placementOf,
  runsOnNodes,
} from "../../deployments/placement.ts";
import { problem } from "../../errors.ts";
import type { SandboxLevel } from "../../pool/sandbox/sandbox.ts";
import { formatRate } from "../../protocol/duration.ts";
import { faultOfImage } from "../../protocol/image.ts";
import type { ByKeyManifest, EndpointManifest, ServiceManifest } from "../../protocol/manifest.ts";
import { deed, type Member, memberOf, type Sources } from "../../server/rpc/engine/caller.ts";
import { ArgumentsReader } from "../../service/input/arguments.ts";
import { isMountName, takersOf } from "../../service/mounts.ts";
import type { DeploymentRecord, Organizations } from "../../storage/accounts/organizations.ts";
import { DEFAULT_SETTINGS } from "../../storage/deployment-settings.ts";
import type { ArtifactFiles } from "../../storage/hosting/files.ts";
import type { NodeStorage } from "../../storage/hosting/nodes.ts";
import type {
  EndpointSummary,
  NewArtifact,
  Revisions,
  RevisionSource as StoredSource,
} from "../../storage/hosting/revisions.ts";
import type { DeclaredSchedule } from "../../storage/hosting/schedules.ts";
import type { SecretStorage } from "../../storage/hosting/secrets.ts";
import { PageTokens } from "../page.ts";
import { artifactInvalid, UPLOADED_FILE_TTL_MS } from "../upload.ts";
import { invalidField, refuse, violationsOf } from "../violations.ts";
import { checkEnvironment, checkGpus, checkSandbox, settingsWithin } from "./ceilings.ts";
import { toRevisionMessage } from "./messages.ts";
import {
  deploymentNotFound,
  findDeployment,
  isName,
  notOpenable,
  tooManyDeployments,
  workersContradict,
} from "./refusals.ts";
import { MAX_SCHEDULES, tooManySchedules, toSchedule } from "./schedules.ts";
import { MAX_DEPLOYMENT_SECRETS, sealedSecrets, tooManySecrets } from "./secrets.ts";
import { faultsOfEnvironment, settingsOf } from "./settings.ts";

/** Revisions of a deployment that can be gone back to. */
const MAX_KEPT_REVISIONS = 20;

/**
 * Attempts to create a deployment that is made and deleted under the same name again and again
 * meanwhile.
 */
const MAX_CREATE_ATTEMPTS = 5;

export interface RevisionOptions extends Sources {
  readonly accounts: Pick<Organizations, "findDeployment">;
  readonly hosting: Pick<
    Revisions & ArtifactFiles & SecretStorage & NodeStorage,
    | "listNodes"
    | "createRevision"
    | "rollBack"
    | "listRevisions"
    | "findMissingFiles"
    | "getSecrets"
  >;
  readonly keys: KeyRing;
  /** The platform that native code has to be built for; see `ArtifactIndex`. */
  readonly platform: string;
  /** Whether workers may run native code, which bypasses Node's permissions. */
  readonly allowsNativeCode: boolean;
  readonly ceilings: Ceilings;
  /** What holds the workers of this node. Default: the permission model. */
  readonly sandbox?: SandboxLevel | undefined;
  /** Tells the interpreters of this node; undefined where services in Python do not run. */
  readonly python?:
    | {
        interpreters(): Promise<readonly { readonly version: string }[]>;
        /** Undefined where there are no system packages. */
        readonly layers?: Pick<Layers, "lock"> | undefined;
        /** Undefined where there are no container images. */
        readonly images?: Pick<Images, "lock"> | undefined;
      }
    | undefined;
}

type Handlers = Pick<
  ServiceImpl<typeof DeploymentService>,
  | "findMissingFiles"
  | "lockSystemPackages"
  | "lockImage"
  | "createRevision"
  | "listRevisions"
  | "rollBackDeployment"
>;

/** The handlers of revisions; `describe` returns the deployment as callers see it. */
export function revisionHandlers(
  options: RevisionOptions,
  describe: (
    member: Member,
    record: DeploymentRecord,
  ) => Promise<MessageInitShape<typeof DeploymentSchema>>,
): Handlers {
  const { accounts, hosting, now } = options;
  return {
    async findMissingFiles({ sha256 }, ctx) {
      const { organizationId } = memberOf(ctx);
      const keptUntilMs = now() + UPLOADED_FILE_TTL_MS;
      return { sha256: await hosting.findMissingFiles({ organizationId, sha256, keptUntilMs }) };
    },

    async lockSystemPackages({ packages }, ctx) {
      const { organizationId } = memberOf(ctx);
      const { layers } = options.python ?? {};
      if (layers === undefined) {
        throw problem("SANDBOX_UNAVAILABLE", LAYERS_UNAVAILABLE);
      }
      return { lock: await told(layers.lock(packages, { organizationId, signal: ctx.signal })) };
    },

    async lockImage({ image }, ctx) {
      const { organizationId } = memberOf(ctx);
      const { images } = options.python ?? {};
      if (images === undefined) {
        throw problem("SANDBOX_UNAVAILABLE", IMAGES_UNAVAILABLE);
      }
      refuse(violationsOf({ image: faultOfImage(image) }));
      return { lock: await told(images.lock(image, { organizationId, signal: ctx.signal })) };
    },

    async createRevision(req, ctx) {
      const member = memberOf(ctx);
      return describe(member, await createRevision(options, member, req));
    },

    async listRevisions(req, ctx) {
      const member = memberOf(ctx);
      const { organizationId, deploymentId } = await findDeployment(
        accounts,
        member,
        req.deployment,
      );
      const tokens = new PageTokens({
        method: "ListRevisions",
        filter: [organizationId, deploymentId],
        isEnd: (text) => /^\d{1,9}$/.test(text),
      });
      const page = await hosting.listRevisions({
        ...tokens.query(req),
        organizationId,
        deploymentId,
      });
      return {
        revisions: page.items.map(toRevisionMessage),
        nextPageToken: tokens.after(page.next),
      };
    },

    async rollBackDeployment({ deployment: name, revision }, ctx) {
      const member = memberOf(ctx);
      const { organizationId, by } = member;
      const rolled = isName(name)
        ? await hosting.rollBack({
            ...deed(by, options),
            organizationId,
            name,
            ...(revision !== 0 && { revision }),
            keptRevisions: MAX_KEPT_REVISIONS,
          })
        : ({ outcome: "not_found" } as const);
      switch (rolled.outcome) {
        case "created":
          return describe(member, rolled.deployment);
        case "not_found":
          throw deploymentNotFound(name);
        case "revision_not_found":
          throw problem(
            "REVISION_NOT_FOUND",
            revision === 0
              ? `deployment ${name} has no revision before its last one`
              : `deployment ${name} has no revision ${revision}, or has it no longer: the newest ${MAX_KEPT_REVISIONS} are kept`,
          );
      }
    },
  };
}

/** A lock, or the reason why it could not be made, as callers see it. */
async function told(locking: Promise<string>): Promise<string> {
  try {
    return await locking;
  } catch (err) {
    throw err instanceof EnvironmentError ? problem(err.reason, err.message, { cause: err }) : err;
  }
}

async function createRevision(
  options: RevisionOptions,
  { principal, organizationId, organization, by }: Member,
  req: CreateRevisionRequest,
): Promise<DeploymentRecord> {
  const { accounts, hosting, keys, newId, ceilings, sandbox } = options;
  const { deployment: name, secrets, removeSecrets, authorization, source } = req;
  refuse(violationsOf({ deployment: faultOfName(name) }));
  refuse(faultsOfEnvironment("secrets", secrets));
  const requested = settingsOf(req.settings);
  checkSandbox(requested, sandbox);
  const found = await accounts.findDeployment({ organizationId, name });
  const placement = { ...DEFAULT_SETTINGS, ...found?.settings, ...requested };
  const { artifact, index } = await readArtifact(req.index, { ...options, placement });
  const { service } = index;
  checkSize(artifact, ceilings);
  if (runsOnNodes(service, placement)) {
    checkSandbox({ processes: placement.processes || (service.processes ?? 0) }, sandbox);
    await checkGpus(hosting, gpuNeedOf(placement, service), {
      place:
        index.kind === "remote"
          ? "remote"
          : placement.place === "any"
            ? (service.place ?? "any")
            : placement.place,
      nowMs: options.now(),
    });
  }
  const settings = settingsWithin(requested, { before: found, service, ceilings });
  await checkEnvironment(hosting, found, { env: settings.env, secrets, removeSecrets });
  const schedules = req.schedules && declaredOf(req.schedules, service, options.now());
  let deploymentId = found?.deploymentId ?? newId();
  for (let tries = 0; tries < MAX_CREATE_ATTEMPTS; tries += 1) {
    const created = await hosting.createRevision({
      ...deed(by, options),
      organizationId,
      name,
      deploymentId,
      artifact,
      settings,
      removeSecrets,
      ...(schedules && { schedules, maxSchedules: MAX_SCHEDULES }),
      ...(source && { source: sourceOf(source) }),
      ...(authorization !== undefined && { authorization }),
      openable: openableBy(principal),
      usesSecrets: mayUseSecrets(principal, organizationId),
      secrets: sealedSecrets(secrets, { keys, organizationId, deploymentId }),
      limit: ceilings.deployments,
      maxSecrets: MAX_DEPLOYMENT_SECRETS,
      keptRevisions: MAX_KEPT_REVISIONS,
    });
    switch (created.outcome) {
      case "created":
        return created.deployment;
      case "conflict":
        deploymentId = created.deploymentId ?? newId();
        break;
      case "files_missing":
        throw problem(
          "FILES_MISSING",
          `${created.files.length} files of the artifact are not here, or not any more: ask with FindMissingFiles, upload those, and try again`,
        );
      case "models_missing": {
        const missing = index.models?.filter(({ digest }) => created.models.includes(digest)) ?? [];
        const names = missing.map(({ model, version }) => `${model}@${version}`).join(", ");
        throw problem(
          "MODEL_NOT_FOUND",
          `the organization has no such version, or it is not ready: ${names}: deploy again with tessera deploy, which brings the models of a service`,
        );
      }
      case "sizes_differ":
        throw problem(
          "ARTIFACT_INVALID",
          `${created.files.length} files have another size than the index says, such as ${created.files[0]}`,
        );
      case "limit":
        throw tooManyDeployments(organization, ceilings.deployments);
      case "too_many_secrets":
        throw tooManySecrets(name);
      case "too_many_schedules":
        throw tooManySchedules(name);
      case "not_openable":
        throw notOpenable(name);
      case "workers_contradict":
        throw workersContradict();
    }
  }
  throw problem("VERSION_CONFLICT", `deployment ${name} is made and deleted by others: try again`);
}

/** The schedules that a deploy declares, each of its own name. Throws REQUEST_INVALID and others. */
function declaredOf(
  { schedules }: DeclaredSchedules,
  service: ServiceManifest,
  nowMs: number,
): DeclaredSchedule[] {
  const names = schedules.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) {
    throw invalidField("schedules", `has ${JSON.stringify(twice)} twice`);
  }
  return schedules.map((message, at) => {
    const field = `schedules.schedules[${at}]`;
    const { paused: _paused, ...schedule } = toSchedule(message, { service, nowMs, field });
    return { ...schedule, ...(message.paused !== undefined && { paused: message.paused }) };
  });
}

function sourceOf({ commit, branch, message, dirty }: RevisionSource): StoredSource {
  return { commit, branch, message, dirty };
}

interface ReadOptions
  extends Pick<RevisionOptions, "platform" | "allowsNativeCode" | "python" | "sandbox"> {
  /** Where all workers are on other machines, those say themselves what they can run. */
  readonly placement: Placement;
}

/** Reads the index of an artifact. Throws ARTIFACT_INVALID if it is invalid, or if the artifact cannot run here. */
async function readArtifact(
  bytes: Uint8Array,
  options: ReadOptions,
): Promise<{ readonly artifact: NewArtifact; readonly index: ArtifactIndex }> {
  let text: string;
  let index: ArtifactIndex;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    index = verifyIndex(text);
  } catch (err) {
    throw err instanceof ArtifactError
      ? artifactInvalid(err)
      : problem("ARTIFACT_INVALID", "tessera.json is not UTF-8", { cause: err });
  }
  const unpinned = Object.keys(index.service.models ?? {}).filter(
    (name) => !index.models?.some((one) => one.name === name),
  );
  if (unpinned.length > 0) {
    throw problem(
      "ARTIFACT_INVALID",
      `the artifact does not say which versions its models have: ${unpinned.join(", ")}: deploy it with tessera deploy, which pins them`,
    );
  }
  const isPinned = index.files.some(({ path }) => path === IMAGE_LOCK_NAME);
  if (index.service.image !== undefined && index.kind !== "remote" && !isPinned) {
    throw problem(
      "ARTIFACT_INVALID",
      `the artifact does not say which digest its image has: ${index.service.image}: deploy it with tessera deploy, which pins it`,
    );
  }
  if (index.kind === "remote") {
    checkSchemas(index.service);
  } else if (runsOnNodes(index.service, options.placement)) {
    await checkRunsHere(index, options);
  }
  const { service, files } = index;
  const artifact = {
    digest: digestOf(text),
    index: text,
    endpoints: takersOf(service).map((endpoint) => summaryOf(endpoint, service)),
    files: files.map(({ sha256, size }) => ({ sha256, sizeBytes: size })),
    ...(index.models && { models: index.models.map(({ digest }) => digest) }),
  };
  return { artifact, index };
}

/** Equal files take their space once in the blob store, and each of them where they are unpacked. */
function checkSize({ files }: NewArtifact, { storageBytes }: Ceilings): void {
  const total = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (total > storageBytes) {
    throw problem(
      "LIMIT_REACHED",
      `the files of the artifact have ${inUnits(total)} together, and the operator of this platform allows an organization ${inUnits(storageBytes)} (tessera start --max-organization-storage): leave out what the service does not need`,
    );
  }
}

/** What is shown of an endpoint, with what its service says for all of them. */
function summaryOf(endpoint: EndpointManifest, service: ServiceManifest): EndpointSummary {
  const { name } = endpoint;
  const kind = isMountName(name) ? "server" : endpoint.kind;
  const { requires, place } = placementOf(service, endpoint, DEFAULT_SETTINGS);
  return {
    ...{ name, kind },
    ...(Object.keys(requires).length > 0 && { requires }),
    ...(place !== "any" && { place }),
    ...(endpoint.byKey && { byKey: limitsOf(endpoint.byKey) }),
  };
}

function limitsOf({ concurrency, rate, fair }: ByKeyManifest) {
  return { concurrency, ...(rate && { rate: formatRate(rate) }), ...(fair && { fair }) };
}

/** Throws ARTIFACT_INVALID for a schema that nodes cannot compile: no worker proves this service. */
function checkSchemas({ endpoints }: ServiceManifest): void {
  for (const endpoint of endpoints) {
    try {
      new ArgumentsReader(endpoint).compile();
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      const message = `the input schema of endpoint ${endpoint.name} is not valid: ${why}`;
      throw problem("ARTIFACT_INVALID", message, { cause });
    }
  }
}

async function checkRunsHere(index: ArtifactIndex, options: ReadOptions): Promise<void> {
  const { platform, allowsNativeCode, sandbox } = options;
  if (sandbox !== "kernel" && index.files.some(({ path }) => path === SYSTEM_LOCK_NAME)) {
    throw problem("SANDBOX_UNAVAILABLE", LAYERS_UNAVAILABLE);
  }
  if (sandbox !== "kernel" && index.files.some(({ path }) => path === IMAGE_LOCK_NAME)) {
    throw problem("SANDBOX_UNAVAILABLE", IMAGES_UNAVAILABLE);
  }
  if (index.platform !== undefined && index.platform !== platform) {
    throw problem(
      "ARTIFACT_INVALID",
      `the artifact has native code for ${index.platform}, and the platform runs on ${platform}: build it on a machine of that kind, or run it in workers that join (tessera deploy --place remote)`,
    );
  }
  if (index.python !== undefined) {
    await checkPython(index.python, options);
  } else if (index.platform !== undefined && !allowsNativeCode) {
    throw problem(
      "ARTIFACT_INVALID",
      "the artifact has native code, which this platform does not run: ask its operator (tessera start --native-code allow), or do without",
    );
  }
}

/** Throws if this node does not run services in Python, or in another version. */
async function checkPython(
  { version }: PythonFacts,
  { python }: Pick<RevisionOptions, "python">,
): Promise<void> {
  if (python === undefined) {
    throw problem("SANDBOX_UNAVAILABLE", PYTHON_UNAVAILABLE);
  }
  const versions = (await python.interpreters()).map((each) => each.version);
  if (!versions.includes(version)) {
    throw problem(
      "ENVIRONMENT_UNAVAILABLE",
      `the service is for Python ${version}, and the platform has ${versions.join(", ") || "no Python"}: deploy it for one of these (tessera deploy --python PATH), or ask the operator to install it`,
    );
  }
}
