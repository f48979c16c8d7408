/**
 * The models of a service, pinned when it is deployed: each source is a version that the platform
 * has, or fetches first.
 */
import type { PinnedModel } from "../../artifacts/index-file.ts";
import { ModelState, type ModelVersion } from "../../client/index.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { CommandRun } from "../command.ts";
import { CliError, usageError } from "../failure.ts";
import { plain } from "../plain.ts";
import { type ProgressLine, rateText } from "../progress.ts";
import { pushFolder } from "../push-model.ts";
import type { GivenModels } from "./tessera-yaml.ts";

/** A version of a model of the platform, such as `model://reader@3`; without one, the newest that is ready. */
const OWN_MODEL = /^model:\/\/([a-z0-9]+(?:[._-][a-z0-9]+)*)(?:@(\d{1,9}))?$/;
/** Where those who use Hugging Face keep their token. */
const TOKEN_VARIABLES = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"];

interface Pinning {
  readonly env: NodeJS.ProcessEnv;
  /** The deployment that has the secrets. */
  readonly deployment: string;
  /** What this deploy sets, by name. */
  readonly secrets: { readonly [name: string]: string };
  /** Shows how far a model is. */
  readonly progress: ProgressLine;
  readonly onWarning: (text: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Pins models by the names that the service has for them: `given` by the deployment, which go before
 * those `declared` in the code. Waits until the platform has all of them.
 */
export async function pinModels(
  call: CommandRun,
  { declared, given }: { readonly declared: NamedSources; readonly given: GivenModels },
  pinning: Pinning,
): Promise<PinnedModel[]> {
  const pinned: PinnedModel[] = [];
  for (const name of new Set([...Object.keys(declared), ...Object.keys(given)])) {
    const { source = declared[name], token } = given[name] ?? {};
    if (source === undefined) {
      throw usageError(
        `models: ${name} has a token and no source, and the code names no model ${name}`,
        `add source: hf://OWNER/NAME to ${name} in tessera.yaml`,
      );
    }
    const found = await versionOf(call, { name, source, token }, pinning);
    for (const warning of found.warnings) {
      pinning.onWarning(`model ${name}: ${plain(warning)}`);
    }
    const { model, version, digest, sizeBytes } = found;
    const known = await libraryNames(found, { declared: declared[name], source });
    pinned.push({ name, model, version, digest, size: Number(sizeBytes), ...known });
  }
  return pinned;
}

/** A version of a model, with the name that it has in BentoML's store here. */
interface FoundVersion extends ModelVersion {
  readonly tag?: string;
}

/**
 * What libraries find a model by: its repository, or its tag in BentoML's store, as the code names
 * them, wherever the files are from.
 */
async function libraryNames(
  { version, tag: known, repository, commit, source: importedFrom }: FoundVersion,
  { declared = "", source }: { readonly declared: string | undefined; readonly source: string },
): Promise<Pick<PinnedModel, "repository" | "commit" | "tag" | "revision">> {
  const { parseBentoSource } = await import("../../artifacts/bento-models.ts");
  const named = parseBentoSource(declared) ?? parseBentoSource(source);
  if (named !== undefined) {
    const isLatest = named.version === "latest";
    const tag = `${named.name}:${isLatest ? version : named.version}`;
    // The code may have named the beginning of a version.
    const whole = known?.startsWith(isLatest ? `${named.name}:` : tag) ? known : tag;
    return { tag: whole, ...(isLatest && { revision: "latest" }) };
  }
  if (repository === "" || commit === "") {
    return {};
  }
  const [revision] = [declared, source, importedFrom].flatMap((each) => {
    const [, of, revision = "main"] = /^hf:\/\/([^@]+)(?:@(.+))?$/.exec(each) ?? [];
    return of === repository ? [revision] : [];
  });
  return { repository, commit, ...(revision !== undefined && revision !== "main" && { revision }) };
}

interface NamedSources {
  readonly [name: string]: string;
}

interface Named {
  readonly name: string;
  readonly source: string;
  readonly token: string | undefined;
}

async function versionOf(
  call: CommandRun,
  { name, source, token }: Named,
  pinning: Pinning,
): Promise<FoundVersion> {
  const { client, organization } = call;
  if (source.startsWith("bentoml://")) {
    return await pushed(call, { name, source }, pinning);
  }
  if (source.startsWith("model://")) {
    const [, model, wanted] = OWN_MODEL.exec(source) ?? [];
    if (model === undefined) {
      throw usageError(
        `the model ${name} is ${JSON.stringify(source)}, which names none of the platform`,
        "give it as model://NAME@VERSION: tessera model list shows what there is",
      );
    }
    const { versions } = await client.models.getModel({ organization, model });
    const found = versions.find(({ state, version }) =>
      wanted === undefined ? state === ModelState.READY : version === Number(wanted),
    );
    if (found === undefined) {
      throw new CliError(`model ${model} has no version ${wanted ?? "that is ready"}`, {
        hint: `tessera model get ${model} shows those that there are`,
      });
    }
    return await untilReady(call, found, { name, ...pinning });
  }
  pinning.progress.step(`model ${name}: asking for ${source}`);
  const asked = { organization, source, ...tokenFor({ source, token }, pinning) };
  const begun = await client.models.importModel(asked, { signal: pinning.signal });
  return await untilReady(call, begun, { name, ...pinning });
}

/** A model of BentoML's store on this machine, as a version of the platform. */
async function pushed(
  call: CommandRun,
  { name, source }: Pick<Named, "name" | "source">,
  { env, progress, signal }: Pinning,
): Promise<FoundVersion> {
  const { ArtifactError } = await import("../../artifacts/artifact-error.ts");
  const { findBentoModel, parseBentoSource } = await import("../../artifacts/bento-models.ts");
  const named = parseBentoSource(source);
  if (named === undefined) {
    throw usageError(
      `the model ${name} is ${JSON.stringify(source)}, which is no tag of BentoML`,
      "give it as bentoml://NAME:VERSION: bentoml models list shows what there is",
    );
  }
  try {
    const found = await findBentoModel(named, env);
    const tag = `${found.name}:${found.version}`;
    progress.step(`model ${name}: ${tag} of BentoML's store`);
    // A name on the platform has one of these characters at a time.
    const model = found.name.replace(/[._-]+(?=[._-])/g, "");
    return { ...(await pushFolder(call, { model, folder: found.folder, progress, signal })), tag };
  } catch (err) {
    throw err instanceof ArtifactError
      ? new CliError(`model ${name}: ${err.message}`, {
          hint: `nothing was deployed; bentoml models list shows what is there, bentoml models pull brings one, and models: { ${name}: model://NAME@VERSION } in tessera.yaml takes one that the platform has`,
          cause: err,
        })
      : err;
  }
}

/** The token of Hugging Face in the environment, for a source there; empty without one. */
export function hubToken(source: string, env: NodeJS.ProcessEnv): string {
  const named = TOKEN_VARIABLES.map((variable) => env[variable]).find(Boolean);
  return (source.startsWith("hf://") && named) || "";
}

/** The token for a repository, or the secret of the deployment that is one. */
function tokenFor(
  { source, token }: Pick<Named, "source" | "token">,
  { env, deployment, secrets }: Pinning,
) {
  if (token === undefined || !source.startsWith("hf://")) {
    return { token: hubToken(source, env) };
  }
  const value = secrets[token];
  return value === undefined ? { tokenSecret: { deployment, name: token } } : { token: value };
}

async function untilReady(
  { client, organization }: CommandRun,
  begun: ModelVersion,
  { name, progress, signal }: Pinning & { readonly name: string },
): Promise<ModelVersion> {
  let last = begun;
  while (last.state === ModelState.IMPORTING) {
    const { model, version } = last;
    const asked = { organization, model, version };
    for await (const now of client.models.watchModel(asked, { signal, timeoutMs: 0 })) {
      last = now;
      progress.step(`model ${name}: ${progressText(now)}`);
    }
  }
  if (last.state !== ModelState.READY) {
    throw new CliError(`model ${name} could not be fetched: ${plain(last.reason)}`, {
      hint: "nothing was deployed; what has been fetched is kept, and the same command goes on from there",
    });
  }
  return last;
}

/** Such as `41 % of 15.2 GiB, 12.0 MiB/s, 2m left`. */
function progressText({ bytesDone, sizeBytes, bytesPerSecond }: ModelVersion): string {
  const [done, total] = [Number(bytesDone), Number(sizeBytes)];
  const share = Math.floor((done / Math.max(1, total)) * 100);
  const rate = Number(bytesPerSecond) || undefined;
  return `${share} % of ${inUnits(total)}${rateText(rate, total - done)}`;
}
