/**
 * A server that speaks the protocol of the Hub of Hugging Face: revisions, the list of files page
 * by page, and contents by `resolve`, with ranges and entity tags. It misbehaves as tests say.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Above this, a file is in Git LFS. */
const LFS_FROM_BYTES = 1_000;

/** What goes wrong, by the path of the file. */
interface Faults {
  /** Ends the connection after so many bytes of an answer, once. */
  readonly cutAfter: Map<string, number>;
  /** Answers with these bytes in place of the content. */
  readonly content: Map<string, Buffer>;
  /** The entity tag of answers from now on. */
  readonly etag: Map<string, string>;
  /** Where to redirect to. */
  readonly redirect: Map<string, string>;
  /** Called before each answer with a content. */
  onContent?: (path: string, start: number) => void | Promise<void>;
  /** Knows no ranges. */
  noRange?: boolean;
  /** Answers that it is busy, so many times. */
  busy?: number;
  /** Answers the next request that it will speak another protocol. */
  upgrades?: boolean;
  /** Ends the connection in the middle of the next answer in JSON. */
  cutsJson?: boolean;
  /** The token that the repository asks for. */
  token?: string;
  /** Entries that the list of files has besides. */
  entries?: readonly unknown[];
}

export class FakeHub implements AsyncDisposable {
  readonly faults: Faults = {
    cutAfter: new Map(),
    content: new Map(),
    etag: new Map(),
    redirect: new Map(),
  };
  /** Bytes of contents that were sent, of all files together. */
  served = 0;
  readonly #server = createServer((req, res) => void this.#answer(req, res));
  readonly #commits = new Map<string, ReadonlyMap<string, Buffer>>();
  readonly #branches = new Map<string, string>();
  #repository = "acme/reader";
  #pageSize = 1_000;

  /** Starts a hub with one repository, `acme/reader`, and these files on its branch `main`. */
  static async start(files: { readonly [path: string]: Uint8Array | string }): Promise<FakeHub> {
    const hub = new FakeHub();
    hub.commit(files);
    hub.#server.listen(0, "127.0.0.1");
    await once(hub.#server, "listening");
    return hub;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  set pageSize(size: number) {
    this.#pageSize = size;
  }

  /** Moves the branch `main` to a commit of these files; returns the commit. */
  commit(files: { readonly [path: string]: Uint8Array | string }): string {
    const contents = new Map(
      Object.entries(files).map(([path, text]) => [path, Buffer.from(text)]),
    );
    const hash = createHash("sha1");
    for (const [path, content] of contents) {
      hash.update(path).update(content);
    }
    const commit = hash.digest("hex");
    this.#commits.set(commit, contents);
    this.#branches.set("main", commit);
    return commit;
  }

  /** Names a commit. */
  tag(name: string, commit: string): void {
    this.#branches.set(name, commit);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url ?? "/", this.url);
    const { token, busy = 0 } = this.faults;
    if (busy > 0) {
      this.faults.busy = busy - 1;
      res.writeHead(503).end();
      return;
    }
    if (this.faults.upgrades) {
      this.faults.upgrades = false;
      req.socket.write("HTTP/1.1 101 Other\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
      return;
    }
    if (token !== undefined && req.headers.authorization !== `Bearer ${token}`) {
      res.writeHead(401, { "x-error-code": "GatedRepo" }).end();
      return;
    }
    const path = decodeURIComponent(url.pathname);
    const api = `/api/models/${this.#repository}`;
    const [, revision] = new RegExp(`^${api}/revision/(.+)$`).exec(path) ?? [];
    const [, tree] = new RegExp(`^${api}/tree/([0-9a-f]{40})$`).exec(path) ?? [];
    const [, commit, file] =
      new RegExp(`^/${this.#repository}/resolve/([0-9a-f]{40})/(.+)$`).exec(path) ?? [];
    if (this.faults.cutsJson && commit === undefined) {
      this.faults.cutsJson = false;
      res.writeHead(200, { "content-length": 100 });
      res.write("{", () => res.destroy());
      return;
    }
    const sha = this.#branches.get(revision ?? "") ?? revision;
    if (sha !== undefined && this.#commits.has(sha)) {
      json(res, { id: this.#repository, sha });
    } else if (tree !== undefined && this.#commits.has(tree)) {
      this.#list(res, tree, url);
    } else if (commit !== undefined && file !== undefined) {
      const content = this.#commits.get(commit)?.get(file);
      await (content === undefined
        ? void res.writeHead(404).end()
        : this.#send(req, res, { file, content }));
    } else {
      res.writeHead(404).end();
    }
  }

  #list(res: ServerResponse, commit: string, url: URL): void {
    const files = [...(this.#commits.get(commit) ?? [])].map(([path, content]) => ({
      ...{ type: "file", path, size: content.length },
      oid: createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex"),
      ...(content.length > LFS_FROM_BYTES && {
        lfs: {
          oid: createHash("sha256").update(content).digest("hex"),
          ...{ size: content.length, pointerSize: 130 },
        },
      }),
    }));
    const all = [{ type: "directory", path: "sub", oid: "0".repeat(40), size: 0 }, ...files];
    const entries = [...all, ...(this.faults.entries ?? [])];
    const from = Number(url.searchParams.get("cursor") ?? 0);
    const to = from + this.#pageSize;
    if (to < entries.length) {
      url.searchParams.set("cursor", String(to));
      res.setHeader("link", `<${url.href}>; rel="next"`);
    }
    json(res, entries.slice(from, to));
  }

  async #send(
    req: IncomingMessage,
    res: ServerResponse,
    { file, content }: { readonly file: string; readonly content: Buffer },
  ): Promise<void> {
    const { faults } = this;
    const [, asked = "0"] = /^bytes=(\d+)-$/.exec(req.headers.range ?? "") ?? [];
    const start = faults.noRange ? 0 : Number(asked);
    await faults.onContent?.(file, start);
    const redirect = faults.redirect.get(file);
    if (redirect !== undefined) {
      res.writeHead(302, { location: redirect }).end();
      return;
    }
    const bytes = faults.content.get(file) ?? content;
    const body = bytes.subarray(start);
    const partial = start > 0 && {
      "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}`,
    };
    res.writeHead(start > 0 ? 206 : 200, {
      etag: faults.etag.get(file) ?? `"${createHash("sha256").update(content).digest("hex")}"`,
      "content-length": body.length,
      ...partial,
    });
    const cut = faults.cutAfter.get(file);
    faults.cutAfter.delete(file);
    if (cut !== undefined) {
      this.served += cut;
      res.write(body.subarray(0, cut), () => res.destroy());
      return;
    }
    this.served += body.length;
    res.end(body);
  }
}

function json(res: ServerResponse, value: unknown): void {
  res.setHeader("content-type", "application/json");
  res.end(JSON.stringify(value));
}
