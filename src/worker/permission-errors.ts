/**
 * Translates errors of Node's permission model into messages that name the option
 * of `tessera serve`, since Node's messages name flags that the reader cannot set.
 */

/** Part of Node's message; native packages often wrap it in an error of their own. */
const NO_ADDONS = "loading addons is disabled";

/** The advice about options of `tessera serve`, which does not apply to deployments. */
const ADVICE = /; tessera serve --.*$/;
const READ_ADVICE = /; tessera serve --allow-read .*$/;
/** What a deployment reads comes with it. */
export const DEPLOY_ADVICE = "; --include takes files of the service's folder along";
let isDeployed = false;

/** From now on, messages are for someone who deployed the service and cannot change permissions. */
export function speakToDeployer(): void {
  isDeployed = true;
}

/** What was denied, and which option of `tessera serve` allows it; undefined for any other error. */
export function deniedMessage(thrown: unknown): string | undefined {
  const message = describe(thrown);
  return isDeployed ? message?.replace(READ_ADVICE, DEPLOY_ADVICE).replace(ADVICE, "") : message;
}

function describe(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) {
    return undefined;
  }
  const { code, permission, resource } = thrown as Error & Record<string, unknown>;
  if (code === "ERR_DLOPEN_DISABLED" || thrown.message.includes(NO_ADDONS)) {
    return "native code is not allowed in a worker; tessera serve --allow-addons allows it";
  }
  if (code !== "ERR_ACCESS_DENIED") {
    return undefined;
  }
  const path = typeof resource === "string" && resource !== "" ? resource : undefined;
  switch (permission) {
    case "FileSystemRead":
      return `reading ${path ?? "this"} is not allowed in a worker; tessera serve --allow-read ${quoted(path)} allows it`;
    case "FileSystemWrite":
      return `writing ${path ?? "this"} is not allowed in a worker, which has a scratch folder of its own: os.tmpdir()`;
    case "WorkerThreads":
      return "threads are not allowed in a worker; tessera serve --allow-workers allows them";
    case "ChildProcess":
      return "a worker starts processes only if its service asks for some, service({ processes: 8 }), or its deployment allows them, deployment update --processes 8; tessera serve --allow-processes allows it";
    default:
      return `access${path === undefined ? "" : ` to ${path}`} is not allowed in a worker`;
  }
}

/** The message for an error or for the first of its causes that was a denied access. */
export function deniedCause(thrown: unknown): string | undefined {
  let current = thrown;
  for (let depth = 0; current instanceof Error && depth < 5; depth++) {
    const found = deniedMessage(current);
    if (found !== undefined) {
      return found;
    }
    current = current.cause;
  }
  return undefined;
}

function quoted(path = "<path>"): string {
  return /\s/.test(path) ? JSON.stringify(path) : path;
}
