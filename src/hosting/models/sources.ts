/** The sources of models that a platform has. */
import { EgressPolicy } from "../../pool/egress/policy.ts";
import { type BucketGrant, type BucketReader, bucketSource } from "./bucket.ts";
import { huggingFace } from "./hugging-face.ts";
import type { ModelSource } from "./source.ts";
import { webFile } from "./web-file.ts";

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
