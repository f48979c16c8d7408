/** The sources of models that a platform has. */
import { EgressPolicy } from "../../pool/egress/policy.ts";
import { type BucketGrant, type BucketReader, bucketSource } from "./bucket.ts";
import { huggingFace } from "./hugging-face.ts";
import { openRemote } from "./remote-file.ts";
import { invalidSource, type ModelSource, nameFrom, sourceRefused } from "./source.ts";

interface ModelSourcesOptions {
  /** The origin of Hugging Face or a mirror. */
  readonly modelHub: string;
  /** Host rules of the operator: what is reached although it is not public. */
  readonly allowedEgress: readonly string[];
  /** What organizations may read of S3. */
  readonly modelBuckets: readonly BucketGrant[];
}

/**
 * All sources: they reach public addresses, the named mirror, and what the operator allows.
 * `buckets` reads S3, where anybody may.
 */
export function modelSources(
  { modelHub, allowedEgress, modelBuckets }: ModelSourcesOptions,
  buckets: BucketReader | undefined,
): ModelSource[] {
  const { host, protocol, port } = new URL(modelHub);
  const mirror = port === "" ? `${host}:${protocol === "https:" ? 443 : 80}` : host;
  const policy = EgressPolicy.ofPlatform([...allowedEgress, mirror]);
  return [
    huggingFace({ hubUrl: modelHub, policy }),
    webFile(policy),
    bucketSource({ grants: modelBuckets, reader: buckets }),
  ];
}

// One file on the web, `https://HOST/PATH#sha256=DIGEST`.

const FRAGMENT = /^#sha256=([0-9a-f]{64})$/;

/** A file is what its digest says, wherever it comes from: no token is sent. */
function webFile(policy: EgressPolicy): ModelSource {
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
