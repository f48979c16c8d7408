/**
 * Source: a repository at Hugging Face or a mirror of it, `hf://OWNER/NAME[@REVISION]`. Two calls of
 * the Hub's API tell the commit of a revision and the files of the commit; a file's content is at
 * `resolve`. Large files are in Git LFS or Xet, and both prove them by SHA-256; small ones by Git.
 *
 * (Hugging Face, "Hub API Endpoints", and the answers of huggingface.co.)
 */
import type { IncomingMessage } from "node:http";
import { MAX_MODEL_FILES } from "../../artifacts/model-index.ts";
import type { EgressPolicy } from "../../pool/egress/policy.ts";
import { get, readJson } from "./http-get.ts";
import { openRemote, refusal } from "./remote-file.ts";
import {
  invalidSource,
  type ModelSource,
  nameFrom,
  type PinOptions,
  type SourceFile,
  sourceRefused,
} from "./source.ts";

const SOURCE = /^hf:\/\/((?:[\w-][\w.-]{0,95}\/)?[\w-][\w.-]{0,95})(?:@([\w-][\w./-]{0,254}))?$/;
const COMMIT = /^[0-9a-f]{40}$/;
/** Pages of a list of files, of a thousand each: more than a model may have. */
const MAX_TREE_PAGES = 100;

interface HuggingFaceOptions {
  /** Of the Hub or the mirror, without a slash at the end. */
  readonly hubUrl: string;
  readonly policy: EgressPolicy;
}

export function huggingFace({ hubUrl, policy }: HuggingFaceOptions): ModelSource {
  return {
    takes: (source) => source.startsWith("hf://"),
    async pin(source, options) {
      const [, repository, revision = "main"] = SOURCE.exec(source) ?? [];
      if (repository === undefined || revision.includes("..")) {
        throw invalidSource("is not hf://OWNER/NAME or hf://OWNER/NAME@REVISION");
      }
      const api = `${hubUrl}/api/models/${repository}`;
      const asked: Asked = { repository, policy, ...options };
      const commit = await commitOf(
        new URL(`${api}/revision/${encodeURIComponent(revision)}`),
        asked,
      );
      const content = (path: string): URL =>
        new URL(
          `${hubUrl}/${repository}/resolve/${commit}/${path.split("/").map(encodeURIComponent).join("/")}`,
        );
      return {
        pinned: `hf://${repository}@${commit}`,
        name: nameFrom(repository.split("/").at(-1) ?? ""),
        ...{ repository, commit },
        files: await filesOf(new URL(`${api}/tree/${commit}?recursive=true`), asked),
        open: ({ path }, start, signal) =>
          openRemote(content(path), start, { policy, token: options.token, signal }),
      };
    },
  };
}

interface Asked extends PinOptions {
  readonly repository: string;
  readonly policy: EgressPolicy;
}

async function commitOf(url: URL, asked: Asked): Promise<string> {
  const answer = await ask(url, asked);
  const { sha } = ((await readJson(answer, url.host)) ?? {}) as { readonly sha?: unknown };
  if (typeof sha !== "string" || !COMMIT.test(sha)) {
    throw sourceRefused(`${url.host} does not say which commit of ${asked.repository} this is`);
  }
  return sha;
}

/** All files of a commit, page by page. */
async function filesOf(first: URL, asked: Asked): Promise<SourceFile[]> {
  const files: SourceFile[] = [];
  let next: URL | undefined = first;
  for (let pages = 0; next !== undefined; pages += 1) {
    const url: URL = next;
    const answer = await ask(url, asked);
    const page = await readJson(answer, url.host);
    if (!Array.isArray(page) || pages === MAX_TREE_PAGES) {
      throw sourceRefused(`the list of files of ${asked.repository} is not valid, or has no end`);
    }
    files.push(...page.flatMap((entry) => fileOf(entry, asked.repository)));
    if (files.length > MAX_MODEL_FILES) {
      throw sourceRefused(`${asked.repository} has more than ${MAX_MODEL_FILES} files`);
    }
    next = nextPage(answer, url);
  }
  return files;
}

function nextPage({ headers }: IncomingMessage, url: URL): URL | undefined {
  const [, link] = /<([^>]+)>;\s*rel="next"/.exec(headers.link?.toString() ?? "") ?? [];
  const next = link === undefined ? undefined : URL.parse(link, url.href);
  if (next === null || (next !== undefined && next.origin !== url.origin)) {
    throw sourceRefused(`the next page of the list of files is not at ${url.host}`);
  }
  return next;
}

interface TreeEntry {
  readonly type?: unknown;
  readonly path?: unknown;
  readonly size?: unknown;
  readonly oid?: unknown;
  readonly lfs?: { readonly oid?: unknown; readonly size?: unknown };
}

function fileOf(entry: TreeEntry | null, repository: string): SourceFile[] {
  const { type, path, size, oid, lfs } = entry ?? {};
  if (type === "directory") {
    return [];
  }
  const digest = lfs?.oid ?? oid;
  const bytes = lfs?.size ?? size;
  const isLarge = lfs !== undefined;
  if (
    type !== "file" ||
    typeof path !== "string" ||
    !Number.isSafeInteger(bytes) ||
    Number(bytes) < 0 ||
    typeof digest !== "string" ||
    !(isLarge ? /^[0-9a-f]{64}$/ : COMMIT).test(digest)
  ) {
    throw sourceRefused(`the list of files of ${repository} has an entry that is no file`);
  }
  return [{ path, size: Number(bytes), proof: { kind: isLarge ? "sha256" : "git", digest } }];
}

async function ask(url: URL, { repository, policy, token, signal }: Asked) {
  const answer = await get(url, { policy, token, signal });
  const { statusCode = 0 } = answer;
  if (statusCode === 200) {
    return answer;
  }
  answer.destroy();
  if (statusCode === 401 || statusCode === 403) {
    throw sourceRefused(
      token === ""
        ? `${repository} at ${url.host} is gated, private or not there: give a token of an account that may read it (HF_TOKEN, or tessera model import --token-file)`
        : `the token may not read ${repository} at ${url.host}: accept its conditions there with the account of the token, or use another`,
    );
  }
  if (statusCode === 404) {
    throw sourceRefused(`${url.host} has no such repository or revision: ${repository}`);
  }
  throw refusal(answer, url);
}
