/**
 * What a service says of itself: computed in the worker that loaded it, sent
 * to the node, and all that the node ever knows of user code.
 */

/** A JSON Schema (2020-12), as data. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** How a task that threw is tried again. */
export interface RetryPolicy {
  /** Attempts after the first; 0 is none. */
  readonly max: number;
  /** Wait before the first retry, doubled for each further one. */
  readonly backoffMs: number;
}

/** An argument or result that is a file. */
export interface FileSpec {
  /** Media type or range accepted, such as `image/png` or `image/*`; absent: any. */
  readonly contentType?: string;
  /** Size limit of one file in bytes; absent: the limit of the body. */
  readonly maxBytes?: number;
}

/** A file argument: one file, or a list of them. */
export interface FileArgument extends FileSpec {
  readonly required: boolean;
  /** True when the argument is a list of files. */
  readonly array: boolean;
  readonly minItems?: number;
  readonly maxItems?: number;
}

export interface EndpointManifest {
  readonly name: string;
  readonly kind: "api" | "task";
  readonly description?: string;
  /**
   * JSON Schema of the arguments, always of `type: "object"` with
   * `properties`. File arguments stand in it as
   * `{type: "string", format: "binary", contentMediaType?}`, or arrays of
   * such; `files` says which they are.
   */
  readonly input: JsonSchema;
  /** The arguments that are files, by name. */
  readonly files: { readonly [argument: string]: FileArgument };
  /** JSON Schema of the result; `{}` when the service declares none. */
  readonly output: JsonSchema;
  /** Present when the result is a file. */
  readonly outputFile?: FileSpec;
  /** How long one execution may take before it is aborted. */
  readonly timeoutMs: number;
  /** How many calls of this endpoint one worker executes at a time. */
  readonly concurrency: number;
  /** How long a task is kept after it has ended (tasks only). */
  readonly retentionMs: number;
  readonly retries: RetryPolicy;
  /** How many tasks of this endpoint may wait before submits are refused. */
  readonly queueLimit: number;
  /** Higher runs first. */
  readonly priority: number;
}

/** A metric that the service counts itself. */
export interface MetricManifest {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Names, in the order in which the values come. */
  readonly labels: readonly string[];
  /** Of a histogram: upper bounds, rising; +Inf comes by itself. */
  readonly buckets?: readonly number[];
  /** Of a gauge: how the values of several workers become one. */
  readonly aggregator?: "sum" | "min" | "max" | "average";
}

export interface ServiceManifest {
  readonly name: string;
  readonly description?: string;
  readonly endpoints: readonly EndpointManifest[];
  /** Absent: none. */
  readonly metrics?: readonly MetricManifest[];
}
