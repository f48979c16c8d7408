/**
 * What mounted servers say of their own operations, merged into the OpenAPI document of their
 * deployment: paths below the path of their server, and the components that those refer to, under
 * names of their own. A document is as hostile as all that a service sends. What it has in common
 * with the deployment's own is left out, and references are followed by their names alone, so that
 * circles end; what leads to no component of the document is left out, too.
 */
import type { JsonSchema, MountManifest, ServiceManifest } from "../../protocol/manifest.ts";
import { endpointAt, mountAt } from "../mounts.ts";

/** What a mounted server answered where its OpenAPI document would be. */
export interface MountDocument {
  readonly mount: MountManifest;
  /** An OpenAPI document as JSON text, or why it has not one. */
  readonly found: { readonly text: string } | { readonly fault: string };
}

/** The parts of a document that grow. */
interface OpenApiParts {
  readonly tags: readonly JsonSchema[];
  readonly paths: { readonly [path: string]: JsonSchema };
  readonly components: { readonly [section: string]: { readonly [name: string]: unknown } };
}

/** The tag of the operations of a mounted server. */
function tagOfMount({ path }: MountManifest): string {
  return `the server at ${path}`;
}

/** The member of a tag that has the path of the mounted server that it is of. */
const MOUNT = "x-tessera-mount";

/** The deployment's own document with those of its servers. */
export function withMounted<Document extends OpenApiParts>(
  own: Document,
  manifest: ServiceManifest,
  documents: readonly MountDocument[],
  authorization: boolean,
): Document {
  const taken = new Taken(own, manifest);
  const tags: JsonSchema[] = [];
  const paths: Record<string, JsonSchema> = {};
  const components: Record<string, Record<string, unknown>> = {};
  for (const { mount, found } of documents) {
    let fault = "fault" in found ? found.fault : undefined;
    let leftOut: readonly string[] = [];
    if ("text" in found) {
      const document: unknown = JSON.parse(found.text);
      fault = faultOfDocument(document);
      if (fault === undefined) {
        const moved = new MovedDocument(document as Members, { mount, taken, authorization });
        Object.assign(paths, moved.paths);
        for (const [section, named] of Object.entries(moved.components())) {
          components[section] = { ...components[section], ...named };
        }
        leftOut = moved.leftOut;
      }
    }
    const description = descriptionOf(fault, leftOut);
    tags.push({ name: tagOfMount(mount), description, [MOUNT]: mount.path });
  }
  const merged: Record<string, unknown> = { ...own.components };
  for (const [section, named] of Object.entries(components)) {
    merged[section] = { ...own.components[section], ...named };
  }
  return {
    ...own,
    tags: [...own.tags, ...tags],
    paths: { ...own.paths, ...paths },
    components: merged,
  };
}

/** Paths that a tag says are left out. */
const MAX_NAMED_PATHS = 5;

function descriptionOf(fault: string | undefined, leftOut: readonly string[]): string {
  if (fault !== undefined) {
    return `A mounted server. Its operations are not here: ${fault}.`;
  }
  const named = leftOut.slice(0, MAX_NAMED_PATHS).join("; ");
  const more =
    leftOut.length > MAX_NAMED_PATHS ? `; and ${leftOut.length - MAX_NAMED_PATHS} more` : "";
  return `A mounted server, as it describes itself.${named === "" ? "" : ` Left out: ${named}${more}.`}`;
}

function faultOfDocument(document: unknown): string | undefined {
  const { openapi, paths } = isMembers(document) ? document : ({} as Members);
  if (typeof openapi !== "string" || !/^3\.[01](?:\.|$)/.test(openapi)) {
    return "its document is not of OpenAPI 3.0 or 3.1";
  }
  return isMembers(paths) ? undefined : "its document has no paths";
}

type Members = { readonly [name: string]: unknown };

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Paths of the platform that its own document does not describe. */
const UNDESCRIBED = ["/metrics", "/healthz"];

/** What a document of several parts has already. */
class Taken {
  readonly #manifest: ServiceManifest;
  readonly #shapes: Map<string, string>;
  readonly #names = new Map<string, Set<string>>();
  readonly #counts = new Map<string, number>();

  constructor({ paths, components }: OpenApiParts, manifest: ServiceManifest) {
    this.#manifest = manifest;
    const own = [...Object.keys(paths), ...UNDESCRIBED];
    this.#shapes = new Map(own.map((path) => [shapeOf(path), "the platform or an endpoint"]));
    for (const [section, named] of Object.entries(components)) {
      this.#names.set(section, new Set(Object.keys(named)));
    }
    this.#names.set("operationIds", new Set(operationIds(paths)));
  }

  /** Takes a path for a server. Returns why it cannot have it. */
  takePath(path: string, mount: MountManifest): string | undefined {
    const decoded = decode(path);
    const shape = shapeOf(path);
    const { path: nearest } = mountAt(this.#manifest, decoded) ?? {};
    const owner =
      endpointAt(this.#manifest, decoded) !== undefined
        ? "an endpoint"
        : nearest !== mount.path
          ? `the server at ${nearest}`
          : this.#shapes.get(shape);
    if (owner === undefined) {
      this.#shapes.set(shape, "another path");
    }
    return owner;
  }

  /** A name that nothing else has in a section: the wanted one, or with a number behind it. */
  takeName(section: string, wanted: string): string {
    const names = this.#names.get(section) ?? new Set();
    this.#names.set(section, names);
    const key = `${section}/${wanted}`;
    let count = this.#counts.get(key) ?? 1;
    let name = wanted;
    while (names.has(name)) {
      count += 1;
      name = `${wanted}${count}`;
    }
    this.#counts.set(key, count);
    names.add(name);
    return name;
  }
}

/** The same for paths that differ in the names of their parameters alone. */
function shapeOf(path: string): string {
  return decode(path).replace(/\{[^{}]*\}/g, "{}");
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Not encoded.
    return text;
  }
}

function operationIds(paths: OpenApiParts["paths"]): string[] {
  return Object.values(paths).flatMap((item) =>
    Object.values(item).flatMap((each) =>
      isMembers(each) && typeof each.operationId === "string" ? [each.operationId] : [],
    ),
  );
}

/** Sections of components that are merged. */
const SECTIONS: ReadonlySet<string> = new Set([
  ...["schemas", "parameters", "responses", "requestBodies", "headers"],
  "securitySchemes",
]);
const METHODS = ["get", "put", "post", "delete", "options", "head", "patch"];
/** Path of an operation of a mounted server. */
const MAX_PATH_CHARACTERS = 1_000;
/** Name of a component or an operation, as its server has it. */
const MAX_NAME_CHARACTERS = 100;
/** What the path of a server adds to such a name. */
const MAX_PREFIX_CHARACTERS = 40;

/** Keywords whose members have names of the author, and each of whose values is an object like others. */
const NAMED: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"],
  ...["responses", "headers", "content", "encoding"],
]);
/** Keywords whose value is data, also where that looks like a reference. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "example"]);
/** Ways from one operation to others, which are not followed. */
const WAYS: ReadonlySet<string> = new Set(["links", "callbacks", "servers"]);

const REFERENCE = /^#\/components\/([^/]+)\/([^/]+)(\/.*)?$/s;

interface MovedOptions {
  readonly mount: MountManifest;
  readonly taken: Taken;
  readonly authorization: boolean;
}

/** The document of one server, as it is in that of the deployment. */
class MovedDocument {
  readonly paths: { readonly [path: string]: JsonSchema };
  /** The paths that are not there, with the reason. */
  readonly leftOut: string[] = [];
  readonly #document: Members;
  readonly #options: MovedOptions;
  readonly #prefix: string;
  readonly #isOf30: boolean;
  /** The new names of components that were referred to, by section and name; their values are moved last. */
  readonly #names = new Map<
    string,
    { readonly section: string; readonly name: string; readonly value: unknown }
  >();

  constructor(document: Members, options: MovedOptions) {
    this.#document = document;
    this.#options = options;
    this.#prefix = prefixOf(options.mount.path);
    this.#isOf30 = String(document.openapi).startsWith("3.0");
    this.paths = this.#movedPaths(document.paths as Members);
  }

  #movedPaths(given: Members): Record<string, JsonSchema> {
    const { mount, taken } = this.#options;
    const isWhole = hasWholePaths(this.#document, mount.path);
    const moved: [string, JsonSchema][] = [];
    for (const [path, item] of Object.entries(given)) {
      const whole = isWhole || mount.path === "/" ? path : mount.path + path;
      const isPath =
        path.startsWith("/") && path.length <= MAX_PATH_CHARACTERS && !/[?#\s\p{C}]/u.test(path);
      const owner = isPath ? taken.takePath(whole, mount) : undefined;
      if (!isPath || !isMembers(item)) {
        this.leftOut.push(`${shown(path)} is no path`);
      } else if (owner !== undefined) {
        this.leftOut.push(`${shown(whole)} is of ${owner}`);
      } else {
        moved.push([whole, this.#movedItem(item, whole)]);
      }
    }
    return Object.fromEntries(moved);
  }

  #movedItem(item: Members, path: string): JsonSchema {
    const operations = METHODS.flatMap((method) => {
      const { [method]: operation } = item;
      return isMembers(operation) ? [[method, this.#movedOperation(operation, method, path)]] : [];
    });
    return {
      ...this.#parameters(item.parameters),
      ...Object.fromEntries(operations),
    };
  }

  #movedOperation(operation: Members, method: string, path: string): JsonSchema {
    const { mount, taken } = this.#options;
    const { operationId, parameters, security, summary, description, deprecated, ...rest } =
      operation;
    const { requestBody, responses } = rest;
    const wanted = typeof operationId === "string" ? operationId : `${method}${path}`;
    const body = requestBody === undefined ? undefined : this.#moved(requestBody);
    return {
      operationId: taken.takeName("operationIds", `${this.#prefix}.${wordOf(wanted)}`),
      tags: [tagOfMount(mount)],
      ...(typeof summary === "string" && { summary }),
      ...(typeof description === "string" && { description }),
      ...(deprecated === true && { deprecated }),
      ...this.#security(security ?? this.#document.security),
      ...this.#parameters(parameters),
      ...(isMembers(body) && ("content" in body || "$ref" in body) && { requestBody: body }),
      responses: isMembers(responses)
        ? this.#members(responses)
        : { default: { description: "What the server answers." } },
    };
  }

  #parameters(given: unknown): { readonly parameters?: readonly unknown[] } {
    if (!Array.isArray(given)) {
      return {};
    }
    const parameters = given
      .map((each) => this.#moved(each))
      .filter((each) => isMembers(each) && ("$ref" in each || ("name" in each && "in" in each)));
    return { parameters };
  }

  /** What the server asks for, besides the platform's token. */
  #security(given: unknown): { readonly security?: readonly Members[] } {
    const platform = this.#options.authorization ? { token: [] } : {};
    if (!Array.isArray(given)) {
      return {};
    }
    const security = given.filter(isMembers).map((scheme) => {
      const named = Object.entries(scheme).flatMap(([name, scopes]) => {
        const own = this.#nameOf("securitySchemes", name);
        return own !== undefined && Array.isArray(scopes) ? [[own, scopes]] : [];
      });
      return { ...platform, ...Object.fromEntries(named) };
    });
    return security.length === 0 ? {} : { security };
  }

  /** The components that were referred to, and those that they refer to. */
  components(): Record<string, Record<string, unknown>> {
    const moved: Record<string, Record<string, unknown>> = {};
    // Moving one may add others behind it.
    for (const { section, name, value } of this.#names.values()) {
      moved[section] ??= {};
      (moved[section] as Record<string, unknown>)[name] = this.#moved(value);
    }
    return moved;
  }

  /** The new name of a component; undefined where the document has none of this name. */
  #nameOf(section: string, given: string): string | undefined {
    const key = `${section}/${given}`;
    const known = this.#names.get(key);
    if (known !== undefined) {
      return known.name;
    }
    const { components } = this.#document;
    const named = isMembers(components) && SECTIONS.has(section) ? components[section] : undefined;
    const value = isMembers(named) && Object.hasOwn(named, given) ? named[given] : undefined;
    if (!isMembers(value)) {
      return undefined;
    }
    const name = this.#options.taken.takeName(section, `${this.#prefix}.${wordOf(given)}`);
    this.#names.set(key, { section, name, value });
    return name;
  }

  #reference(given: string): string | undefined {
    const [, section = "", name = "", rest = ""] = REFERENCE.exec(given) ?? [];
    const found = this.#nameOf(section, decode(name).replaceAll("~1", "/").replaceAll("~0", "~"));
    return found && `#/components/${section}/${found}${rest}`;
  }

  #moved(value: unknown): unknown {
    if (Array.isArray(value)) {
      return value.map((each) => this.#moved(each));
    }
    if (!isMembers(value)) {
      return value;
    }
    const { $ref } = value;
    if (typeof $ref === "string") {
      const reference = this.#reference($ref);
      return reference === undefined
        ? { description: `Left out: ${shown($ref)} is no component.` }
        : this.#converted({ ...this.#eachOf({ ...value, $ref: undefined }), $ref: reference });
    }
    return this.#converted(this.#eachOf(value));
  }

  /** The members of an object, by what their keywords mean. */
  #eachOf(value: Members): Members {
    return Object.fromEntries(
      Object.entries(value).flatMap(([key, member]) => {
        if (WAYS.has(key) || member === undefined) {
          return [];
        }
        if (DATA.has(key) || key.startsWith("x-")) {
          return [[key, member]];
        }
        if (key === "examples") {
          // A list is data, and members are examples, of which references are left out.
          return [[key, isMembers(member) ? withoutReferences(member) : member]];
        }
        if (key === "mapping" && isMembers(member)) {
          return [[key, this.#mapping(member)]];
        }
        return [
          [key, NAMED.has(key) && isMembers(member) ? this.#members(member) : this.#moved(member)],
        ];
      }),
    );
  }

  #members(named: Members): Members {
    return Object.fromEntries(
      Object.entries(named).map(([name, member]) => [name, this.#moved(member)]),
    );
  }

  /** Of a discriminator: names of schemas, or references to them. */
  #mapping(given: Members): Members {
    return Object.fromEntries(
      Object.entries(given).flatMap(([value, schema]) => {
        const text = String(schema);
        const reference = this.#reference(
          text.startsWith("#") ? text : `#/components/schemas/${text}`,
        );
        return reference === undefined ? [] : [[value, reference]];
      }),
    );
  }

  /** A schema of OpenAPI 3.0 as one of 3.1. */
  #converted(given: Members): Members {
    if (!this.#isOf30) {
      return given;
    }
    const { nullable, ...schema } = given;
    const rest = typeof nullable === "boolean" ? schema : given;
    const bounded = exclusive(exclusive(rest, "Minimum"), "Maximum");
    if (nullable !== true) {
      return bounded;
    }
    return typeof bounded.type === "string"
      ? { ...bounded, type: [bounded.type, "null"] }
      : { anyOf: [bounded, { type: "null" }] };
  }
}

/** In OpenAPI 3.0, a flag says whether a number may be its bound. */
function exclusive(schema: Members, which: "Minimum" | "Maximum"): Members {
  const flag = `exclusive${which}`;
  const bound = which.toLowerCase();
  const { [flag]: isExclusive, [bound]: limit, ...rest } = schema;
  if (typeof isExclusive !== "boolean") {
    return schema;
  }
  return limit === undefined ? rest : { ...rest, [isExclusive ? flag : bound]: limit };
}

function withoutReferences(examples: Members): Members {
  return Object.fromEntries(
    Object.entries(examples).filter(([, each]) => isMembers(each) && !("$ref" in each)),
  );
}

/**
 * Whether the paths of a document are those of requests to the host: applications that are told
 * where they are mounted describe what is below that, and say so in `servers`.
 */
function hasWholePaths({ servers, paths }: Members, mounted: string): boolean {
  const [server] = Array.isArray(servers) ? servers : [];
  const url = isMembers(server) && typeof server.url === "string" ? server.url : "";
  // The expression takes the square of their number for slashes, and no longer path can be meant.
  const given = url.slice(0, MAX_PATH_CHARACTERS);
  const [, base = ""] = /^(?:https?:\/\/[^/]*)?(\/.*?)\/*$/s.exec(given) ?? [];
  const below = Object.keys(paths as Members);
  return (
    base !== mounted && below.every((path) => path === mounted || path.startsWith(`${mounted}/`))
  );
}

/** The beginning of the names of what is of a server. */
function prefixOf(mounted: string): string {
  const word = mounted.slice(1).replaceAll(/[^A-Za-z0-9-]+/g, "_");
  return `server${word === "" ? "" : `_${word.slice(0, MAX_PREFIX_CHARACTERS)}`}`;
}

/** A name in letters that names of components may have. */
function wordOf(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9._-]+/g, "_").slice(0, MAX_NAME_CHARACTERS);
}

/** A text of a server, in a sentence of the platform's. */
function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
