/**
 * Asks the mounted servers of a deployment for their OpenAPI documents, by a request like those of
 * callers, once in each revision. A deployment whose workers are stopped is not woken for it, and
 * what has failed is asked again a while later.
 */

import { type IncomingMessage, request } from "node:http";
import { readAtMost } from "../../collections/bytes.ts";
import type { Deployment } from "../../deployments/deployment.ts";
import { parseJson } from "../../pool/checks/untrusted.ts";
import {
  DEFAULT_OPENAPI_PATH,
  type MountManifest,
  type ServiceManifest,
} from "../../protocol/manifest.ts";
import { mountEndpoint } from "../../service/mounts.ts";
import type { MountDocument } from "../../service/openapi/mounted.ts";

/** The documents of all servers of a deployment together. */
const MAX_DOCUMENTS_BYTES = 1024 ** 2;
/** Values in one of them, which are parsed at once. */
const MAX_DOCUMENT_VALUES = 50_000;
/** How long a server may take to answer with its document, the wait for a slot included. */
const DOCUMENT_TIMEOUT_MS = 3_000;
/** How long the answer stands where a server has given none. */
const ASK_AGAIN_MS = 10_000;

const NO_WORKER = "no worker is running that could be asked";
const TOO_LARGE = `the documents of its service have more than ${MAX_DOCUMENTS_BYTES / 1024 ** 2} MiB together`;

interface Described {
  readonly documents: Promise<readonly MountDocument[]>;
  /** When they are asked for again, by `performance.now`. */
  againAtMs: number;
}

const known = new WeakMap<ServiceManifest, Described>();

/**
 * What the servers of a deployment say of themselves; undefined where it has none. The list is the
 * same until they were asked again.
 */
export function mountDocuments(
  deployment: Pick<Deployment, "calls">,
  manifest: ServiceManifest,
): Promise<readonly MountDocument[]> | undefined {
  const { mounts } = manifest;
  if (mounts === undefined || mounts.length === 0) {
    return undefined;
  }
  const before = known.get(manifest);
  if (before !== undefined && performance.now() < before.againAtMs) {
    return before.documents;
  }
  const documents = askAll(deployment, mounts);
  const described: Described = { documents, againAtMs: Number.POSITIVE_INFINITY };
  void documents.then((all) => {
    described.againAtMs = againAt(all);
    known.set(manifest, described);
  });
  if (before === undefined || before.againAtMs === 0) {
    known.set(manifest, described);
    return documents;
  }
  // Nobody waits a second time for what does not answer.
  before.againAtMs = Number.POSITIVE_INFINITY;
  return before.documents;
}

/** When servers are asked again that have answered so; 0: at the next occasion. */
function againAt(documents: readonly MountDocument[]): number {
  const faults = documents.flatMap(({ found }) => ("fault" in found ? [found.fault] : []));
  if (faults.includes(NO_WORKER)) {
    return 0;
  }
  return faults.length === 0 ? Number.POSITIVE_INFINITY : performance.now() + ASK_AGAIN_MS;
}

async function askAll(
  deployment: Pick<Deployment, "calls">,
  mounts: readonly MountManifest[],
): Promise<readonly MountDocument[]> {
  const all = await Promise.all(mounts.map((mount) => askOne(deployment, mount)));
  let room = MAX_DOCUMENTS_BYTES;
  return all.map(({ mount, found }) => {
    room -= "text" in found ? found.text.length : 0;
    return { mount, found: room < 0 && "text" in found ? { fault: TOO_LARGE } : found };
  });
}

async function askOne(
  deployment: Pick<Deployment, "calls">,
  mount: MountManifest,
): Promise<MountDocument> {
  try {
    const bytes = await documentOf(deployment, mount);
    // Only looked at here: the text is kept, which is smaller.
    return parseJson(bytes, MAX_DOCUMENT_VALUES) === undefined
      ? fault(`its document is no JSON of at most ${MAX_DOCUMENT_VALUES} values`, mount)
      : { mount, found: { text: bytes.toString() } };
  } catch (err) {
    return fault((err as Error).message, mount);
  }
}

function fault(said: string, mount: MountManifest): MountDocument {
  return { mount, found: { fault: said } };
}

/** The path of the document of a server. */
function documentPath({ path, openapi = DEFAULT_OPENAPI_PATH }: MountManifest): string {
  return `${path === "/" ? "" : encodeURI(path)}${openapi}`;
}

/** Rejects where the server gives none, with a message that follows `Its operations are not here:`. */
async function documentOf(
  { calls }: Pick<Deployment, "calls">,
  mount: MountManifest,
): Promise<Buffer> {
  if (mount.openapi === "") {
    throw new Error("its author says that it has no document");
  }
  const endpoint = mountEndpoint(mount);
  if (!calls.isServed(endpoint)) {
    throw new Error(NO_WORKER);
  }
  const signal = AbortSignal.timeout(DOCUMENT_TIMEOUT_MS);
  const path = documentPath(mount);
  const said = `GET ${path}`;
  try {
    const slot = await calls.hold(endpoint, { signal });
    const sent = request({
      agent: slot.agent,
      path,
      headers: ["Host", "localhost", "Accept", "application/json"],
      setHost: false,
      signal,
    });
    sent.once("close", () => slot.release());
    const res = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.once("response", resolve);
      sent.on("error", reject);
      // Of an answer that changes the protocol nothing else is heard.
      sent.once("close", () => reject(new NoDocument(`${said} was not answered in HTTP`)));
      sent.end();
    });
    try {
      return await readWhole(res, said);
    } finally {
      sent.destroy();
    }
  } catch (err) {
    if (err instanceof NoDocument) {
      throw err;
    }
    throw new NoDocument(
      signal.aborted
        ? `${said} was not answered within ${DOCUMENT_TIMEOUT_MS / 1_000} s`
        : `${said} was not answered`,
      { cause: err },
    );
  }
}

class NoDocument extends Error {}

async function readWhole(res: IncomingMessage, said: string): Promise<Buffer> {
  if (res.statusCode !== 200) {
    throw new NoDocument(`${said} answered with ${res.statusCode}`);
  }
  const body = await readAtMost(res, MAX_DOCUMENTS_BYTES);
  if (body === undefined) {
    throw new NoDocument(TOO_LARGE);
  }
  return body;
}
