/** The shape of an index by JSON Schema; what its parts mean is checked by `index-file.ts`. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { MAX_SERVICE_MODELS, MODEL_NAME } from "../protocol/manifest.ts";

const FILES = {
  type: "array",
  minItems: 1,
  items: {
    type: "object",
    additionalProperties: false,
    required: ["path", "size", "sha256", "executable"],
    properties: {
      path: { type: "string" },
      size: { type: "integer", minimum: 0 },
      sha256: { type: "string", pattern: "^[0-9a-f]{64}$" },
      executable: { type: "boolean" },
    },
  },
};

/** The name, or the version, of a model in BentoML's store. */
const TAG_NAME = "[a-z0-9](?:[-._a-z0-9]{0,61}[a-z0-9])?";

const MODELS = {
  type: "array",
  minItems: 1,
  maxItems: MAX_SERVICE_MODELS,
  items: {
    type: "object",
    additionalProperties: false,
    required: ["name", "model", "version", "digest", "size"],
    properties: {
      name: { type: "string", pattern: MODEL_NAME.source },
      model: { type: "string", pattern: "^[a-z0-9]+([._-][a-z0-9]+)*$", maxLength: 63 },
      version: { type: "integer", minimum: 1, maximum: 2 ** 31 - 1 },
      digest: { type: "string", pattern: "^[0-9a-f]{64}$" },
      size: { type: "integer", minimum: 0 },
      // They are parts of paths.
      repository: {
        type: "string",
        maxLength: 200,
        pattern: "^(?:[A-Za-z0-9_][A-Za-z0-9._-]*/)?[A-Za-z0-9_][A-Za-z0-9._-]*$",
      },
      commit: { type: "string", pattern: "^[0-9a-f]{40,64}$" },
      tag: { type: "string", pattern: `^${TAG_NAME}:(?!latest$)${TAG_NAME}$` },
      revision: {
        type: "string",
        maxLength: 255,
        pattern: "^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$",
      },
    },
  },
};

const COMMON = {
  models: MODELS,
  tessera: { type: "string", pattern: "^[0-9]{1,9}$" },
  name: { type: "string" },
  service: { type: "object" },
  files: FILES,
};

const PLATFORM = { type: "string", pattern: "^[a-z0-9-]{1,64}$" };
const IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*";

const PYTHON = {
  type: "object",
  additionalProperties: false,
  required: ["version"],
  properties: {
    version: { type: "string", pattern: "^3\\.[0-9]{1,3}$" },
    module: { type: "string", maxLength: 256, pattern: `^${IDENTIFIER}(\\.${IDENTIFIER})*$` },
    object: { type: "string", maxLength: 256, pattern: `^${IDENTIFIER}$` },
  },
};

const NODE_INDEX = {
  type: "object",
  additionalProperties: false,
  required: ["format", "tessera", "name", "entry", "service", "files"],
  properties: {
    ...COMMON,
    format: { const: 1 },
    entry: { const: "service.js" },
    platform: PLATFORM,
  },
};

const PYTHON_INDEX = {
  type: "object",
  additionalProperties: false,
  required: ["format", "tessera", "name", "entry", "python", "service", "files"],
  properties: {
    ...COMMON,
    format: { const: 2 },
    entry: { type: "string", pattern: "\\.py$" },
    platform: PLATFORM,
    python: PYTHON,
  },
};

const REMOTE_INDEX = {
  type: "object",
  additionalProperties: false,
  required: ["format", "kind", "tessera", "name", "entry", "service", "files"],
  properties: {
    ...COMMON,
    format: { const: 3 },
    kind: { const: "remote" },
    entry: { const: "" },
    files: { type: "array", maxItems: 0 },
  },
};

const MODEL_INDEX = {
  type: "object",
  additionalProperties: false,
  required: ["format", "kind", "files"],
  properties: { format: { const: 4 }, kind: { const: "model" }, files: FILES },
};

interface Validators {
  readonly node: ValidateFunction;
  readonly python: ValidateFunction;
  readonly remote: ValidateFunction;
  readonly model: ValidateFunction;
}

let compiled: Validators | undefined;

/** What is wrong with a parsed index, from the place of the fault; undefined for a valid shape. */
export function faultOfIndex(index: unknown): string | undefined {
  // Compiled lazily, because most runs of the program read no index.
  if (compiled === undefined) {
    const ajv = new Ajv2020({ logger: false });
    compiled = {
      node: ajv.compile(NODE_INDEX),
      python: ajv.compile(PYTHON_INDEX),
      remote: ajv.compile(REMOTE_INDEX),
      model: ajv.compile(MODEL_INDEX),
    };
  }
  const { format } = (index ?? {}) as { readonly format?: unknown };
  const { node, python, remote, model } = compiled;
  const matches =
    new Map<unknown, ValidateFunction>([
      [2, python],
      [3, remote],
      [4, model],
    ]).get(format) ?? node;
  if (matches(index)) {
    return undefined;
  }
  const [fault] = matches.errors ?? [];
  return `${fault?.instancePath ?? ""} ${fault?.message}`;
}
