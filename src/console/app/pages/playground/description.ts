/** A deployment's description of itself: its endpoints, and what each takes and gives. */
import { type FormSchema, plainSchema } from "./schema.ts";

export interface Argument {
  readonly name: string;
  readonly schema: FormSchema;
  readonly required: boolean;
  /** It is a file, or several, of these content types. */
  readonly file?: { readonly isList: boolean; readonly accept: string };
}

export interface PlaygroundEndpoint {
  readonly name: string;
  /** Its path, as URLs have it. */
  readonly route: string;
  readonly isTask: boolean;
  readonly description: string;
  readonly arguments: readonly Argument[];
  /** Arguments that it takes, without files. */
  readonly example: Readonly<Record<string, unknown>>;
  /** The content type of its result. */
  readonly resultType: string;
  /** Its result comes in pieces. */
  readonly streams: boolean;
  /** The document that references in schemas point into. */
  readonly document: object;
}

interface Route {
  readonly name: string;
  readonly route: string;
  readonly is_task: boolean;
  readonly description?: string;
  readonly output?: { readonly is_stream?: boolean };
}

interface Content {
  readonly schema?: FormSchema;
  readonly example?: Readonly<Record<string, unknown>>;
  readonly encoding?: Readonly<Record<string, { readonly contentType?: string }>>;
}

interface Post {
  readonly requestBody?: { readonly content?: Readonly<Record<string, Content>> };
  readonly responses?: Readonly<Record<string, { readonly content?: object }>>;
}

export interface DescriptionDocuments {
  readonly schema: { readonly name: string; readonly routes: readonly Route[] };
  readonly docs: {
    readonly tags?: readonly {
      readonly name: string;
      readonly description?: string;
      /** The path of the mounted server that it is of. */
      readonly "x-tessera-mount"?: string;
    }[];
    readonly paths: Readonly<Record<string, { readonly post?: Post }>>;
  };
}

/** `route` is of `/schema.json`, `docs` is `/docs.json`. */
export function readEndpoint(route: Route, docs: DescriptionDocuments["docs"]): PlaygroundEndpoint {
  const { requestBody, responses } = docs.paths[route.route]?.post ?? {};
  const form = requestBody?.content?.["multipart/form-data"];
  const json = requestBody?.content?.["application/json"];
  const { properties = {}, required = [] } = plainSchema(docs, (form ?? json)?.schema ?? {});
  const args = Object.entries(properties).map(([name, property]): Argument => {
    const schema = plainSchema(docs, property);
    const isList = schema.type === "array" && isFile(plainSchema(docs, schema.items ?? {}));
    const accept = form?.encoding?.[name]?.contentType ?? "*/*";
    return {
      name,
      schema,
      required: required.includes(name),
      ...(form && (isList || isFile(schema)) && { file: { isList, accept } }),
    };
  });
  const files = new Set(args.filter(({ file }) => file).map(({ name }) => name));
  const example = Object.entries(json?.example ?? {}).filter(([name]) => !files.has(name));
  return {
    name: route.name,
    route: route.route,
    isTask: route.is_task,
    description: route.description ?? "",
    arguments: args,
    example: Object.fromEntries(example),
    resultType: Object.keys(responses?.[200]?.content ?? {})[0] ?? "application/json",
    streams: route.output?.is_stream === true && !route.is_task,
    document: docs,
  };
}

const isFile = ({ type, format }: FormSchema): boolean => type === "string" && format === "binary";

/** The path of an endpoint, or of a verb below it. */
export const pathOf = ({ route }: Pick<PlaygroundEndpoint, "route">, verb?: string): string =>
  verb === undefined ? route : `${route.replace(/\/$/, "")}/${verb}`;
