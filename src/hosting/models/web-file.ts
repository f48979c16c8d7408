/** Source: one file on the web, `https://HOST/PATH#sha256=DIGEST`. */
import type { EgressPolicy } from "../../pool/egress/policy.ts";
import { openRemote } from "./remote-file.ts";
import { invalidSource, type ModelSource, nameFrom, sourceRefused } from "./source.ts";

const FRAGMENT = /^#sha256=([0-9a-f]{64})$/;

/** A file is what its digest says, wherever it comes from: no token is sent. */
export function webFile(policy: EgressPolicy): ModelSource {
  return {
    takes: (source) => /^https:\/\//i.test(source),
    async pin(source, { signal }) {
      const url = URL.parse(source);
      const [, digest] = FRAGMENT.exec(url?.hash ?? "") ?? [];
      if (url === null || digest === undefined) {
        throw invalidSource("lacks the digest of the file: https://HOST/PATH#sha256=DIGEST");
      }
      if (url.username !== "" || url.password !== "") {
        throw invalidSource("may have no password");
      }
      const options = { policy, token: "", signal };
      const path = fileName(url);
      const { size, chunks } = await openRemote(url, 0, options);
      await chunks[Symbol.asyncIterator]().return?.();
      if (size === undefined) {
        throw sourceRefused(`${url.host} does not say how large the file is`);
      }
      return {
        ...{ pinned: url.href, repository: "", commit: "" },
        name: nameFrom(path.replace(/\.[^.]*$/, "")),
        files: [{ path, size, proof: { kind: "sha256", digest } }],
        open: (_file, start, signal) => openRemote(url, start, { ...options, signal }),
      };
    },
  };
}

function fileName({ pathname }: URL): string {
  const last = pathname.split("/").at(-1) ?? "";
  try {
    return decodeURIComponent(last) || "file";
  } catch {
    return last;
  }
}
